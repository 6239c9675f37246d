//! Reports in memory: computes them, and serves their API over TLS to the API server, which forwards requests for it.
//!
//! Every replica serves. The leader makes the serving certificate, and registers the API when its own reports are
//! complete, and again when the CA changes. A certificate by a new CA comes only after the registration carries that
//! CA.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use axum_server::Handle;
use ephor_admission::certs::{CertKeeper, CertSettings, CertStore, CertWatchers};
use ephor_admission::http::{self, Caller, Limits};
use ephor_admission::registration::{Registration, RegistrationBoard};
use ephor_api::delegated::DelegatedAccess;
use ephor_api::front_proxy::{ClientCertificates, FrontProxy};
use ephor_api::registration::{Endpoint, RegistrationError, register, unregister};
use ephor_api::reports::{self, router};
use ephor_cluster::{Cluster, ErrorKind};
use ephor_expr::Str;
use ephor_reports::Dialect;
use ephor_reports::served::{self, ServedReports};
use ephor_runtime::CancellationToken;
use ephor_runtime::lease::Term;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::notify::Notify;
use ephor_runtime::settings::{AggregatedSettings, KeyAlgorithm, ReportsSettings};
use ephor_runtime::threads;
use ephor_scan::aggregated::Aggregated;
use ephor_scan::serve::{Completion, Reports};
use jiff::Timestamp;
use rustls::ServerConfig;

use super::reports::dialect;
use super::{BLOCKING, ServeError, WORKERS, drain, listen, serve_and_drain};

/// How long before their end certificates are renewed.
const RENEW_BEFORE: Duration = Duration::from_hours(15 * 24);
/// How long after a failure a registration is removed again.
const UNREGISTRATION_INTERVAL: Duration = Duration::from_mins(1);
/// How often the registration is looked at.
const REGISTRATION_INTERVAL: Duration = Duration::from_secs(10);

/// What serves reports, as one replica follows it.
#[derive(Clone)]
pub(super) struct Front {
    cluster: Arc<dyn Cluster>,
    settings: CertSettings,
    certs: CertStore,
    watchers: CertWatchers,
    proxy: FrontProxy,
    completion: Completion,
    dialect: Dialect,
    port: u16,
    service_port: u16,
    owner: Option<Str>,
}

impl Front {
    /// Follows certificates and what authenticates the API server.
    pub(super) fn follow(
        cluster: &Arc<dyn Cluster>,
        settings: &ReportsSettings,
        aggregated: &AggregatedSettings,
        stop: &CancellationToken,
    ) -> Self {
        let secret = |kind| format!("{}.{}.svc.kyverno-tls-{kind}", aggregated.service, settings.common.namespace);
        let cert_settings = CertSettings {
            namespace: settings.common.namespace.clone(),
            service: aggregated.service.clone(),
            ca_secret: secret("ca").into(),
            pair_secret: secret("pair").into(),
            algorithm: KeyAlgorithm::Ecdsa,
            renew_before: RENEW_BEFORE,
            outside_host: None,
            makes_them: true,
        };
        let certs = CertStore::new(cert_settings.clone());
        let proxy = FrontProxy::default();
        proxy.follow(cluster, stop);
        Self {
            watchers: certs.follow(cluster, stop),
            cluster: Arc::clone(cluster),
            settings: cert_settings,
            certs,
            proxy,
            completion: Completion::default(),
            dialect: dialect(settings),
            port: aggregated.port,
            service_port: aggregated.service_port,
            owner: aggregated.owner.clone(),
        }
    }

    /// Whether this replica can answer: its reports are complete, its certificate holds and it knows who asks.
    pub(super) fn readiness(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let front = self.clone();
        move || {
            front.completion.is_complete()
                && front.watchers.synced()
                && front.certs.ready(Timestamp::now()).is_ok()
                && front.proxy.is_known()
        }
    }

    /// Computes and serves reports until `stop`.
    pub(super) fn serve(self, role: Reports, stop: &CancellationToken) -> Result<(), ServeError> {
        let served = ServedReports::new(&[self.dialect], served::Limits::default(), Timestamp::now());
        let metrics = role.metrics.clone();
        let replica = Aggregated::new(role, served.clone(), &self.completion);
        let tls = Arc::new(self.certs.server_config(Some(Arc::new(self.proxy.clone())))?);
        let listener = listen(None, self.port)?;
        tracing::info!(address = %listener.local_addr()?, "listening");
        let access = Arc::new(DelegatedAccess::new(Arc::clone(&self.cluster), self.proxy.clone()));
        let completion = self.completion.clone();
        let is_complete = move || completion.is_complete();
        let api = router(served, access, is_complete, reports::Limits::default(), stop);
        replica.start(stop, move |term| self.lead(term, &metrics));
        aggregated(listener, tls, api, stop)
    }

    /// Starts what the leader does for all replicas, in threads that end with the term.
    fn lead(&self, term: &Term, metrics: &Metrics) {
        let other: &'static [Dialect] = match self.dialect {
            Dialect::WgPolicy => &[Dialect::OpenReports],
            Dialect::OpenReports => &[Dialect::WgPolicy],
        };
        start_unregistering(&self.cluster, &self.settings.namespace, term, other);
        let board = RegistrationBoard::default();
        let keeper = CertKeeper::new(Arc::clone(&self.cluster), self.settings.clone(), &self.certs, board.clone());
        let (keeping, metrics) = (term.clone(), metrics.clone());
        threads::spawn("certificates", threads::LARGE, term.token(), move || keeper.run(&keeping, &metrics));
        let (front, registering) = (self.clone(), term.clone());
        threads::spawn("registration", threads::LARGE, term.token(), move || {
            front.keep_registered(&registering, &board);
        });
    }

    /// Keeps the API registered until the term ends.
    fn keep_registered(&self, term: &Term, board: &RegistrationBoard) {
        let notify = Notify::new();
        self.certs.subscribe({
            let notify = notify.clone();
            move || notify.notify()
        });
        let ready = self.readiness();
        let mut last = None;
        loop {
            // Readers keep what they have until these reports are complete.
            if ready() {
                if term.fence().is_err() {
                    return;
                }
                let ca_bundle = self.certs.ca_bundle();
                let failure = self.register(&ca_bundle).err().map(|error| error.to_string());
                match &failure {
                    None => board.publish(Registration { ca_bundle, ..Registration::default() }),
                    // Once is enough: it is tried again and again.
                    Some(why) if last.as_ref() != Some(why) => tracing::error!("reports are not served: {why}"),
                    Some(_) => {}
                }
                last = failure;
            }
            if !notify.wait(REGISTRATION_INTERVAL, term.token()) {
                return;
            }
        }
    }

    fn register(&self, ca_bundle: &Arc<[u8]>) -> Result<(), RegistrationError> {
        let endpoint = Endpoint {
            namespace: self.settings.namespace.clone(),
            service: self.settings.service.clone(),
            port: self.service_port,
            ca_bundle: Arc::clone(ca_bundle),
            owner: self.owner.clone(),
        };
        if register(&*self.cluster, self.dialect, &endpoint)? {
            tracing::info!(group = self.dialect.api_version(), "reports are registered with the API server");
        }
        Ok(())
    }
}

/// Removes registrations of the APIs of `dialects`, which nothing serves now, in a thread that ends with the term.
/// As long as one exists, the API server does not serve the definitions of its kinds.
pub(super) fn start_unregistering(
    cluster: &Arc<dyn Cluster>,
    namespace: &Str,
    term: &Term,
    dialects: &'static [Dialect],
) {
    let (cluster, namespace, ending) = (Arc::clone(cluster), namespace.clone(), term.clone());
    threads::spawn("registration", threads::LARGE, term.token(), move || {
        let mut rest = dialects.to_vec();
        loop {
            rest.retain(|dialect| {
                if ending.fence().is_err() {
                    return true;
                }
                match unregister(&*cluster, *dialect, &namespace) {
                    Ok(removed) => {
                        if removed {
                            tracing::info!(group = dialect.api_version(), "the registration of reports is removed");
                        }
                        false
                    }
                    // An account that may not look at registrations has made none.
                    Err(RegistrationError::Cluster(error)) if error.kind() == ErrorKind::Forbidden => false,
                    Err(error) => {
                        tracing::warn!(%error, group = dialect.api_version(), "a registration of reports may be left");
                        true
                    }
                }
            });
            if rest.is_empty() || ending.token().wait(UNREGISTRATION_INTERVAL) {
                return;
            }
        }
    });
}

/// Serves `router` until `stop`. Each request carries the certificates of its client, which `tls` has to ask for.
pub fn aggregated(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING)
        .thread_name("reports API")
        .enable_all()
        .build()?;
    let router = router.layer(map_request(with_certificates));
    let served = runtime.block_on(async {
        let handle = Handle::new();
        let draining = drain(stop.clone(), handle.clone());
        serve_and_drain(http::serve(listener, tls, router, Limits::default(), handle), draining).await
    });
    runtime.shutdown_background();
    Ok(served?)
}

/// The request with what its connection has shown, in the form that the API of reports reads.
async fn with_certificates(mut request: Request) -> Request {
    let shown = request.extensions().get::<Caller>().map(|caller| Arc::clone(caller.certificates()));
    if let Some(shown) = shown {
        request.extensions_mut().insert(ClientCertificates(shown));
    }
    request
}
