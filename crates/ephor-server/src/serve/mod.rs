//! Wires the roles.
//!
//! [`admission`]: every replica follows policies, configuration, namespaces, roles and certificates, and answers
//! webhooks as soon as it knows them and has a certificate. One of them leads ([`Leading`]). A signal to stop ends
//! leading at once, so that another replica goes on, and then serving, when the requests in work are answered.
//! [`background()`], [`reports()`] and [`cleanup()`] have files of their own; [`all()`] runs all four in one process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum_server::Handle;
use ephor_admission::certs::{CertSettings, CertStore, CertWatchers};
use ephor_admission::http::{self, Callers, CallersError, Limits, Reviews};
use ephor_admission::leading::Leading;
use ephor_admission::policy_admission::{Accounts, PolicyAdmission};
use ephor_admission::review::results::{RequestResults, queue_settings};
use ephor_admission::review::roles::Roles;
use ephor_admission::review::{Effort, HandlerOptions, Handlers, Parts, Waiting};
use ephor_admission::webhooks::{WebhookSettings, follow_registered, paths};
use ephor_cluster::Cluster;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::config::ConfigStore;
use ephor_runtime::decision::observe::Observer;
use ephor_runtime::decision::path::{self, Webhook, WebhookScope};
use ephor_runtime::decision::{AdmissionRequest, Answer};
use ephor_runtime::lease::{self, LeaseOptions};
use ephor_runtime::metrics::{CountedCluster, Metrics};
use ephor_runtime::policies::{ExceptionScope, PolicyStore, PolicyWatchers};
use ephor_runtime::results::ResultQueue;
use ephor_runtime::settings::{AdmissionSettings, CommonSettings};
use ephor_runtime::threads;
use ephor_runtime::watcher::Watcher;
use jiff::Timestamp;

mod aggregated;
mod all;
mod answers;
mod background;
mod cleanup;
mod metrics;
mod reports;

pub use aggregated::aggregated;
pub use all::all;
use answers::RoleAnswers;
pub use background::background;
pub use cleanup::cleanup;
pub use reports::reports;

/// Why a role does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The port cannot be had.
    #[error("cannot listen on port {port}: {error}")]
    Listen {
        /// The port.
        port: u16,
        /// Why.
        error: io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The certificates of callers cannot be checked.
    #[error(transparent)]
    Callers(#[from] CallersError),
    /// Something ended that the role cannot do without.
    #[error("{0}")]
    Failed(String),
    /// The operating system refuses something.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// How long requests in work are waited for when the role stops.
const DRAIN: Duration = Duration::from_secs(25);
/// Threads that read, judge and answer.
const WORKERS: usize = 2;
/// Threads for requests that wait for the cluster, at most.
const BLOCKING: usize = 64;
/// The lease of the admission role.
pub const ADMISSION_LEASE: &str = "kyverno";
/// The lease of a shadow: it stands beside the engine that decides.
const SHADOW_LEASE: &str = "ephor-shadow";

/// Serves until `stop`. Returns when all requests in work are answered.
pub fn admission(
    cluster: &Arc<dyn Cluster>,
    settings: &AdmissionSettings,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    announce(&settings.common, if settings.shadow { "admission, for the record only" } else { "admission" });
    // What requests need goes on until the last one is answered.
    let serving = stop.detached_token();
    let process = Process::start(cluster, &settings.common, own_address(settings), &serving)?;
    admission_in(&process, settings, stop, &serving)
}

/// Serves until `stop`; what requests need goes on until `serving` ends, which is when the last one is answered.
fn admission_in(
    process: &Process,
    settings: &AdmissionSettings,
    stop: &CancellationToken,
    serving: &CancellationToken,
) -> Result<(), ServeError> {
    let role = Admission::start(process, settings, serving);
    let election = role.elect(&process.cluster, settings, stop);
    let served = role.serve(settings, stop);
    stop.cancel();
    if let Some(election) = election {
        let _ = election.join();
    }
    serving.cancel();
    served?;
    stop.failure().map_or(Ok(()), |reason| Err(ServeError::Failed(reason)))
}

/// What the roles of one process share.
struct Process {
    /// The cluster, with what it is asked counted.
    cluster: Arc<dyn Cluster>,
    metrics: Metrics,
}

impl Process {
    /// Serves metrics where the settings say, until `stop`: on the loopback address if that is the process' `own`, else
    /// on all addresses.
    fn start(
        cluster: &Arc<dyn Cluster>,
        common: &CommonSettings,
        own: Option<IpAddr>,
        stop: &CancellationToken,
    ) -> Result<Self, ServeError> {
        let metrics = Metrics::default();
        if let Some(port) = common.metrics_port {
            let address = own.filter(IpAddr::is_loopback).unwrap_or(Ipv4Addr::UNSPECIFIED.into());
            metrics::listen(&metrics, (address, port).into(), stop)
                .map_err(|error| ServeError::Listen { port, error })?;
        }
        let process = Self::counting(cluster, metrics);
        process.metrics.follow_config(&process.cluster, &common.namespace, &common.metrics_config_name, stop);
        Ok(process)
    }

    fn counting(cluster: &Arc<dyn Cluster>, metrics: Metrics) -> Self {
        Self { cluster: Arc::new(CountedCluster::new(Arc::clone(cluster), metrics.clone())), metrics }
    }
}

/// Writes to the log which role begins, and which of its flags have no effect.
fn announce(common: &CommonSettings, role: &str) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        identity = %common.identity,
        namespace = %common.namespace,
        role,
        "ephor serves"
    );
    for (flag, why) in &common.without_effect {
        tracing::info!(flag, why, "a flag has no effect");
    }
    if common.exceptions == ExceptionScope::Disabled {
        tracing::info!("policy exceptions do not count: --enablePolicyException and --exceptionNamespace say which do");
    }
}

/// The running role.
struct Admission {
    reviews: Arc<Served>,
    leading: Arc<Leading>,
    certs: CertStore,
    policies: PolicyWatchers,
    config: Watcher,
}

impl Admission {
    fn start(process: &Process, settings: &AdmissionSettings, stop: &CancellationToken) -> Self {
        let Process { cluster, metrics } = process;
        let common = &settings.common;
        let policies = PolicyStore::new(common.exceptions.clone());
        let config = ConfigStore::new(&common.namespace, &common.config_name);
        let certs = CertStore::new(CertSettings::of(settings));
        let config_watcher = config.follow(cluster, stop);
        let cert_watchers = certs.follow(cluster, stop);
        let RoleAnswers { facts, namespaces, global, watchers: answer_watchers } =
            RoleAnswers::follow(cluster, common, &config, stop);
        metrics.know_namespaces(&namespaces);
        let (roles, role_watchers) = Roles::follow(cluster, stop);
        let parts = Parts {
            cluster: Arc::clone(cluster),
            policies: policies.clone(),
            config: config.clone(),
            answers: Arc::new(facts),
            namespaces,
            roles,
            observer: Arc::new(observers(cluster, settings, metrics, &config, stop)),
        };
        metrics.follow_policies(&policies);
        policies.subscribe({
            let answers = Arc::clone(&parts.answers);
            move |policies| answers.prepare(policies)
        });
        let policy_watchers = policies.follow(cluster, stop);
        let own = PolicyAdmission::new(Arc::clone(cluster), accounts(settings), common.exceptions.clone());
        let handlers = Handlers::new(parts, HandlerOptions::of(settings, stop));
        let counted = {
            let (metrics, namespace) = (metrics.clone(), common.namespace.clone());
            move |count| metrics.update_requests(&namespace, count)
        };
        let (waiting, waiting_watcher) = Waiting::follow(cluster, &common.namespace, counted, stop);
        handlers.count_update_requests(waiting);
        let mut watchers = vec![config_watcher.clone(), waiting_watcher];
        watchers.extend(answer_watchers);
        watchers.extend(role_watchers);
        watchers.extend(follow_registered(cluster, WebhookSettings::of(settings).serving, certs.path_tokens(), stop));
        Self {
            leading: Arc::new(
                Leading::new(cluster, settings, &policies, &config, &certs)
                    .with_global_context(cluster, &global)
                    .counted_by(metrics),
            ),
            reviews: Arc::new(Served {
                handlers,
                own,
                shadow: settings.shadow,
                policies: policy_watchers.clone(),
                watchers,
                cert_watchers,
                certs: certs.clone(),
                metrics: metrics.clone(),
            }),
            certs,
            policies: policy_watchers,
            config: config_watcher,
        }
    }

    /// Takes part in the election, in a thread that ends with `stop`.
    fn elect(
        &self,
        cluster: &Arc<dyn Cluster>,
        settings: &AdmissionSettings,
        stop: &CancellationToken,
    ) -> Option<std::thread::JoinHandle<()>> {
        let options = LeaseOptions {
            namespace: settings.common.namespace.clone(),
            name: if settings.shadow { SHADOW_LEASE } else { ADMISSION_LEASE }.into(),
            identity: settings.common.identity.clone(),
            retry: settings.common.leader_retry,
        };
        let owned = stop.clone();
        let (cluster, stop, leading) = (Arc::clone(cluster), stop.clone(), Arc::clone(&self.leading));
        let (policies, config) = (self.policies.clone(), self.config.clone());
        let elect = move || {
            // A leader that does not know the policies yet would take their webhooks away.
            while !(policies.synced() && config.synced()) {
                if stop.wait(Duration::from_millis(50)) {
                    return;
                }
            }
            lease::run(&cluster, &options, &stop, |term| leading.start(term));
        };
        threads::spawn("election", threads::LARGE, &owned, elect)
    }

    /// Answers requests until `stop`.
    fn serve(&self, settings: &AdmissionSettings, stop: &CancellationToken) -> Result<(), ServeError> {
        let (verifier, callers) = match &settings.client_ca_file {
            Some(file) => (Some(http::verifier(file)?), Callers::Named(settings.client_names.clone().into())),
            None => (None, Callers::All),
        };
        let tls = Arc::new(self.certs.server_config(verifier)?);
        let listener = listen(own_address(settings), settings.port)?;
        tracing::info!(address = %listener.local_addr()?, "listening");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(BLOCKING)
            .thread_name("admission")
            .enable_all()
            .build()?;
        let limits = Limits::default();
        let router = http::router(Arc::clone(&self.reviews) as Arc<dyn Reviews>, limits, callers);
        let served = runtime.block_on(async {
            let handle = Handle::new();
            let draining = drain(stop.clone(), handle.clone());
            serve_and_drain(http::serve(listener, tls, router, limits, handle), draining).await
        });
        // Threads that wait for the cluster are not waited for.
        runtime.shutdown_timeout(Duration::from_secs(1));
        Ok(served?)
    }
}

/// Who is told of decisions: metrics, and unless this is a shadow, which writes nothing, Events and reports.
fn observers(
    cluster: &Arc<dyn Cluster>,
    settings: &AdmissionSettings,
    metrics: &Metrics,
    config: &ConfigStore,
    stop: &CancellationToken,
) -> Vec<Arc<dyn Observer>> {
    let mut observers: Vec<Arc<dyn Observer>> = vec![Arc::new(metrics.clone())];
    if settings.shadow {
        return observers;
    }
    observers.push(Arc::new(background::recorder(cluster, &settings.common, metrics, config, stop)));
    if settings.admission_reports {
        let queue = queue_settings(settings.max_admission_reports, Some(settings.common.namespace.clone()));
        let queue = ResultQueue::start(cluster, queue, stop);
        observers.push(Arc::new(RequestResults::new(queue, settings.common.reporting.clone())));
    }
    observers
}

/// Serves, and drains meanwhile. Both are one task, so that a panic in either ends serving: a server that is never told
/// to drain would outlive its role.
async fn serve_and_drain<T>(serving: impl Future<Output = T>, draining: impl Future<Output = ()>) -> T {
    tokio::pin!(serving);
    tokio::select! {
        served = &mut serving => served,
        () = draining => serving.await,
    }
}

/// Ends serving when `stop` is given. Leading ends by the same signal and does not wait for the requests in work.
async fn drain(stop: CancellationToken, handle: Handle<std::net::SocketAddr>) {
    while !stop.is_cancelled() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tracing::info!("ending");
    handle.graceful_shutdown(Some(DRAIN));
}

/// The address by which callers reach this server, if it is one and no name.
fn own_address(settings: &AdmissionSettings) -> Option<IpAddr> {
    let host = settings.server_address.as_ref()?.host.as_str();
    if host == "localhost" { Some(Ipv4Addr::LOCALHOST.into()) } else { host.parse().ok() }
}

/// Listens on the address by which callers reach this server, if it is one of this machine; otherwise, as behind a
/// translation of addresses or under a name, on all of them.
fn listen(own: Option<IpAddr>, port: u16) -> Result<TcpListener, ServeError> {
    let bound = match own.map(|own| TcpListener::bind((own, port))) {
        Some(Err(error)) if error.kind() == io::ErrorKind::AddrNotAvailable => everywhere(port),
        Some(bound) => bound,
        None => everywhere(port),
    };
    let listener = bound.map_err(|error| ServeError::Listen { port, error })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Whether a role could listen there; see [`AdmissionSettings::server_address`].
pub fn can_listen(own: IpAddr, port: u16) -> Result<(), ServeError> {
    listen(Some(own), port).map(drop)
}

fn everywhere(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
}

fn accounts(settings: &AdmissionSettings) -> Accounts {
    let known = |account: &ephor_expr::Str| Some(account.clone()).filter(|account| !account.is_empty());
    Accounts {
        admission: Some(settings.common.own_account()),
        background: known(&settings.background_account),
        reports: known(&settings.reports_account),
        cleanup: known(&settings.cleanup_account),
    }
}

/// All webhooks of the role.
struct Served {
    handlers: Handlers,
    own: PolicyAdmission,
    shadow: bool,
    policies: PolicyWatchers,
    watchers: Vec<Watcher>,
    cert_watchers: CertWatchers,
    certs: CertStore,
    metrics: Metrics,
}

/// A webhook by its path.
enum Target {
    /// Resources.
    Resources(Webhook, WebhookScope),
    /// Ephor's own kinds.
    Own(fn(&PolicyAdmission, &AdmissionRequest) -> Answer, Own),
}

/// How long an answer about Ephor's own kinds takes.
#[derive(PartialEq)]
enum Own {
    Immediate,
    Blocking,
}

fn target(path: &str) -> Option<Target> {
    Some(match path {
        paths::POLICY_VALIDATE => Target::Own(PolicyAdmission::policy, Own::Blocking),
        paths::POLICY_MUTATE => Target::Own(PolicyAdmission::policy_mutation, Own::Immediate),
        paths::EXCEPTION_VALIDATE => Target::Own(PolicyAdmission::exception, Own::Immediate),
        paths::GLOBAL_CONTEXT_VALIDATE => Target::Own(PolicyAdmission::global_context, Own::Blocking),
        paths::CLEANUP_VALIDATE => Target::Own(PolicyAdmission::cleanup_policy, Own::Blocking),
        paths::VERIFY_TTL => Target::Own(PolicyAdmission::ttl, Own::Immediate),
        paths::VERIFY_MUTATE => Target::Own(PolicyAdmission::heartbeat, Own::Immediate),
        path => {
            let (webhook, scope) = path::parse(path)?;
            Target::Resources(webhook, scope)
        }
    })
}

/// How deep objects of Ephor's own kinds may be nested.
const OWN_DEPTH: usize = 120;

impl Served {
    /// The denial of what cannot be judged; a shadow denies nothing.
    fn refusal(&self, why: impl Into<String>) -> Answer {
        if self.shadow { Answer::allow() } else { Answer { code: Some(400), ..Answer::deny(why) } }
    }

    fn own(&self, answer: fn(&PolicyAdmission, &AdmissionRequest) -> Answer, request: &AdmissionRequest) -> Answer {
        // Objects of Ephor's own kinds are decoded into types, which takes the stack for each level.
        if request.object.is_deeper_than(OWN_DEPTH) || request.old_object.is_deeper_than(OWN_DEPTH) {
            return self.refusal(format!("the object has more than {OWN_DEPTH} levels of nesting"));
        }
        if self.shadow { Answer::allow() } else { answer(&self.own, request) }
    }
}

impl Reviews for Served {
    fn serves(&self, path: &str) -> bool {
        target(path).is_some()
    }

    fn proves(&self, token: &str) -> bool {
        self.certs.path_tokens().prove(token)
    }

    fn at_once(&self, path: &str, request: &AdmissionRequest) -> Option<Answer> {
        match target(path)? {
            Target::Resources(webhook, scope) => self.handlers.answer(webhook, &scope, request, Effort::Immediate).ok(),
            Target::Own(answer, Own::Immediate) => Some(self.own(answer, request)),
            Target::Own(_, Own::Blocking) => None,
        }
    }

    fn answer(&self, path: &str, request: &AdmissionRequest, until: Instant) -> Answer {
        match target(path) {
            Some(Target::Resources(webhook, scope)) => self.handlers.answer_until(webhook, &scope, request, until),
            Some(Target::Own(answer, _)) => self.own(answer, request),
            None => Answer::deny("there is no webhook at this path"),
        }
    }

    fn unreadable(&self, path: &str, why: &str) -> Answer {
        tracing::info!(path, why, "a review cannot be read");
        self.refusal(why)
    }

    fn is_ready(&self) -> bool {
        self.policies.synced()
            && self.watchers.iter().all(Watcher::synced)
            && self.cert_watchers.synced()
            && self.certs.ready(Timestamp::now()).is_ok()
    }

    fn answered(&self, method: &str, path: &str, took: Duration) {
        self.metrics.http_request(method, path, took);
    }
}

#[cfg(test)]
mod tests;
