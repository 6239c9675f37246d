//! The certificates as each replica reads them from the Secrets and serves them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use ephor_cluster::Cluster;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::decision::proof::{PathToken, PathTokens};
use ephor_runtime::watcher::{StoreEvent, WatchTarget, Watcher};
use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoClientAuth, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::inspect::{CertFault, Certificate, certified, verify};
use super::secrets::TlsSecret;
use super::settings::CertSettings;

/// The certificates as they are stored now. Clones are the same store.
///
/// The serving certificate is looked up at each handshake, so that a renewed one counts at once.
#[derive(Clone)]
pub struct CertStore(Arc<Shared>);

struct Shared {
    settings: CertSettings,
    secrets: Mutex<Secrets>,
    served: Arc<Served>,
    trusted: ArcSwap<Trusted>,
    tokens: PathTokens,
    subscribers: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
}

#[derive(Default)]
struct Secrets {
    ca: Option<TlsSecret>,
    pair: Option<TlsSecret>,
}

/// What is derived from the Secrets.
#[derive(Default)]
struct Trusted {
    bundle: Arc<[u8]>,
    cas: Vec<Certificate>,
    chain: Vec<Certificate>,
    fault: Option<CertFault>,
}

/// The certificate that is served.
#[derive(Default)]
struct Served(ArcSwapOption<CertifiedKey>);

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Served({})", if self.0.load().is_some() { "a certificate" } else { "nothing" })
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

impl fmt::Debug for CertStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertStore({:?})", self.0.served)
    }
}

/// The watchers behind a store.
#[derive(Debug, Clone)]
pub struct CertWatchers([Watcher; 2]);

impl CertWatchers {
    /// Whether the stored Secrets are known.
    pub fn synced(&self) -> bool {
        self.0.iter().all(Watcher::synced)
    }

    /// Waits until the stored Secrets are known.
    pub fn wait_synced(&self, wait: Duration) -> bool {
        self.0.iter().all(|watcher| watcher.wait_synced(wait))
    }
}

#[derive(Clone, Copy)]
enum Which {
    Ca,
    Pair,
}

impl CertStore {
    /// A store that knows nothing yet.
    pub fn new(settings: CertSettings) -> Self {
        let store = Self(Arc::new(Shared {
            settings,
            secrets: Mutex::default(),
            served: Arc::default(),
            trusted: ArcSwap::default(),
            tokens: PathTokens::default(),
            subscribers: Mutex::default(),
        }));
        store.derive();
        store
    }

    /// Follows the Secrets until `stop`.
    pub fn follow(&self, cluster: &Arc<dyn Cluster>, stop: &CancellationToken) -> CertWatchers {
        let settings = &self.0.settings;
        let watcher = |name: &str, which: Which| {
            let watched = WatchTarget::all("v1", "Secret").in_namespace(&settings.namespace).named(name);
            let store = self.clone();
            Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| store.apply(which, change))
        };
        CertWatchers([watcher(&settings.ca_secret, Which::Ca), watcher(&settings.pair_secret, Which::Pair)])
    }

    fn apply(&self, which: Which, change: StoreEvent) {
        let object = match change {
            StoreEvent::Reset(objects) => objects.into_iter().next(),
            StoreEvent::Apply(object) => Some(object),
            StoreEvent::Delete(_) => None,
        };
        let secret = object.as_ref().map(TlsSecret::of);
        {
            let mut secrets = self.0.secrets.lock();
            match which {
                Which::Ca => secrets.ca = secret,
                Which::Pair => secrets.pair = secret,
            }
        }
        self.derive();
        for subscriber in self.0.subscribers.lock().iter() {
            subscriber();
        }
    }

    /// The certificates that vouch for what is served, PEM; empty as long as there are none.
    pub fn ca_bundle(&self) -> Arc<[u8]> {
        Arc::clone(&self.0.trusted.load().bundle)
    }

    /// The tokens in webhook paths that prove a caller. The present one follows the key that is served.
    pub fn path_tokens(&self) -> &PathTokens {
        &self.0.tokens
    }

    /// Whether a caller who trusts [`CertStore::ca_bundle`] would take what is served at `now`.
    pub fn ready(&self, now: Timestamp) -> Result<(), CertFault> {
        let trusted = self.0.trusted.load();
        if let Some(fault) = &trusted.fault {
            return Err(fault.clone());
        }
        verify(&trusted.chain, &trusted.cas, &self.0.settings.called_name(), now).map_err(CertFault::Invalid)
    }

    /// Calls `subscriber` after each change. It must be quick.
    pub fn subscribe(&self, subscriber: impl Fn() + Send + Sync + 'static) {
        self.0.subscribers.lock().push(Box::new(subscriber));
    }

    /// How to serve TLS: 1.2 or newer, with whatever certificate is stored at the time of the handshake. `callers`
    /// checks the certificates of those who call, if they must show one.
    pub fn server_config(&self, callers: Option<Arc<dyn ClientCertVerifier>>) -> Result<ServerConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_client_cert_verifier(callers.unwrap_or_else(|| Arc::new(NoClientAuth)))
            .with_cert_resolver(Arc::clone(&self.0.served) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Derives what is trusted and served from the Secrets.
    fn derive(&self) {
        // Held to the end, so that of two changes the later one is seen last.
        let secrets = self.0.secrets.lock();
        let settings = &self.0.settings;
        let mut trusted = Trusted::default();
        let unreadable = |name: &str, why: String| CertFault::Unreadable { name: name.to_owned(), why };
        let mut served = None;
        match &secrets.pair {
            None => trusted.fault = Some(CertFault::Missing(settings.pair_secret.to_string())),
            Some(secret) => {
                let read = Certificate::all(&secret.certificates)
                    .and_then(|chain| certified(&chain, &secret.key).map(|key| (chain, key)));
                match read {
                    Ok((chain, key)) => {
                        trusted.chain = chain;
                        served = Some(Arc::new(key));
                        self.0.tokens.set_present(&PathToken::of_key(&secret.key));
                    }
                    Err(why) => trusted.fault = Some(unreadable(&settings.pair_secret, why)),
                }
            }
        }
        match &secrets.ca {
            None => trusted.fault = Some(CertFault::Missing(settings.ca_secret.to_string())),
            Some(secret) => match bundle(secret, &trusted.chain, &settings.called_name()) {
                Ok((pem, cas)) => {
                    trusted.bundle = pem.into();
                    trusted.cas = cas;
                }
                Err(why) => trusted.fault = Some(unreadable(&settings.ca_secret, why)),
            },
        }
        // A Secret that turned bad does not take away what worked.
        if served.is_some() {
            self.0.served.0.store(served);
        }
        self.0.trusted.store(Arc::new(trusted));
    }
}

/// The CAs of a Secret: its certificates, or where these are not the chain's, what its issuer left beside them.
fn bundle(secret: &TlsSecret, chain: &[Certificate], name: &str) -> Result<(Vec<u8>, Vec<Certificate>), String> {
    let own = Certificate::all(&secret.certificates);
    if let Ok(beside) = Certificate::all(&secret.issuers) {
        let vouches = |cas: &[Certificate]| verify(chain, cas, name, Timestamp::now()).is_ok();
        if !own.as_deref().is_ok_and(vouches) && vouches(&beside) {
            return Ok((secret.issuers.clone(), beside));
        }
    }
    own.map(|cas| (secret.certificates.clone(), cas))
}
