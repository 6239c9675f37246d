//! `ephor sandbox`: an API server in one process, with policies, and nothing that runs.
//!
//! A [`MemoryCluster`] behind HTTP ([`server`], `api`, `ephor-api`), with the admission handlers and the background
//! controllers of production asked in process (`engine`, `admit`). Who may come in is decided by [`gate`]. kubectl and
//! other clients need no more than the kubeconfig.

mod accounts;
mod admission_policies;
mod admit;
mod api;
mod cells;
mod columns;
mod engine;
pub mod gate;
pub mod kubeconfig;
mod lists;
pub mod live;
mod namespaces;
mod observe;
mod openapi;
mod scheduling;
pub mod server;
pub mod state;
#[cfg(test)]
mod tests;
pub mod tls;
mod versions;
mod workloads;

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ephor_cluster::admission::User;
use ephor_cluster::memory::Options;
use ephor_cluster::{Cluster as _, ClusterError, DeleteOptions, ListQuery, MemoryCluster, WriteOptions, object};
use ephor_expr::{Map, Str, Value};
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::policies::{PolicyId, PolicyStore};
use ephor_runtime::threads;
use jiff::Timestamp;
use tokio::sync::Semaphore;

use self::gate::Gate;
use self::server::Served;
use self::state::{Identity, State};
use self::tls::Certificate;
use crate::live::Live;

/// How long [`Sandbox::settle`] waits at most.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often it looks.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A sandbox, running. Dropping it does not stop it; its [`CancellationToken`] does.
pub struct Sandbox {
    cluster: MemoryCluster,
    live: Live,
    identity: Identity,
    listener: TcpListener,
    stop: CancellationToken,
    enforced: OnceLock<PolicyStore>,
}

/// An object that the sandbox did not take, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The object.
    pub object: Value,
    /// Why.
    pub error: ClusterError,
}

/// The result of adding objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Added {
    /// Those that are not there.
    pub refused: Vec<Refused>,
    /// What was warned of, with the object.
    pub warnings: Vec<(Value, String)>,
}

impl Sandbox {
    /// Starts a sandbox with the objects of a new cluster, or with identity and objects of a kept one. It judges
    /// nothing before [`Sandbox::enforce`].
    ///
    /// `port` is one of the loopback interface; 0 takes the kept one if it is free, else any.
    pub fn new(port: u16, kept: Option<State>, stop: &CancellationToken) -> io::Result<Self> {
        let State { identity, objects } = kept.unwrap_or_default();
        let listener = match (port, &identity) {
            (0, Some(kept)) => server::listen(kept.port).or_else(|_| server::listen(0))?,
            (port, _) => server::listen(port)?,
        };
        let port = listener.local_addr()?.port();
        let identity = match identity {
            Some(kept) => Identity { port, ..kept },
            None => Identity { token: kubeconfig::token()?, certificate: Certificate::new()?, port },
        };
        // A seed of its own for each start: names drawn by chance must not repeat those of the run before.
        let seed = kubeconfig::token()?;
        let options = Options {
            seed: u64::from_str_radix(seed.get(..16).unwrap_or_default(), 16).unwrap_or_default(),
            clock: Some(Arc::new(now)),
            ..Options::server()
        };
        let cluster = MemoryCluster::new(options);
        let sandbox =
            Self { cluster, live: Live::new(), identity, listener, stop: stop.clone(), enforced: OnceLock::new() };
        let namespace = Value::from([
            ("apiVersion", Value::from("v1")),
            ("kind", Value::from("Namespace")),
            ("metadata", Value::from([("name", Value::from(engine::NAMESPACE))])),
        ]);
        // Kept objects replace these.
        let first = ephor_install::crds::all().into_iter().chain([namespace]);
        let added = sandbox.add(first);
        debug_assert!(added.refused.is_empty(), "{added:?}");
        for left in sandbox.cluster.load(objects) {
            tracing::warn!(error = %left.error, "an object of the saved state is skipped");
        }
        Ok(sandbox)
    }

    /// Creates objects, or makes those that exist be so.
    pub fn add(&self, objects: impl IntoIterator<Item = Value>) -> Added {
        let writer = self.cluster.acting_as(User::default());
        let mut added = Added::default();
        for object in objects {
            let put = self.put(&writer, &object);
            added.warnings.extend(writer.take_warnings().into_iter().map(|warning| (object.clone(), warning)));
            if let Err(error) = put {
                added.refused.push(Refused { object, error });
            }
        }
        added
    }

    fn put(&self, cluster: &MemoryCluster, object: &Value) -> Result<(), ClusterError> {
        let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
        let resource = cluster.resolve(text("apiVersion"), text("kind"))?;
        let mut object = object.clone();
        if resource.namespaced
            && object.str_at(&["metadata", "namespace"]).is_none_or(str::is_empty)
            && let Some(metadata) =
                object.as_object_mut().and_then(|members| members.get_mut("metadata")).and_then(Value::as_object_mut)
        {
            metadata.insert("namespace", "default");
        }
        note_applied(&mut object);
        let options = WriteOptions { field_manager: "ephor-sandbox".into(), ..WriteOptions::default() };
        if resource.namespaced {
            self.make_namespace(object.str_at(&["metadata", "namespace"]).unwrap_or_default(), &options)?;
        }
        match cluster.create(&resource, object.clone(), &options) {
            Err(error) if error.kind() == ephor_cluster::ErrorKind::AlreadyExists => {
                let name = object.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
                let namespace = object.str_at(&["metadata", "namespace"]).filter(|_| resource.namespaced);
                let namespace = namespace.map(str::to_owned);
                let patch = ephor_cluster::Patch::merge(object);
                cluster.patch(&resource, namespace.as_deref(), &name, &patch, &options).map(drop)
            }
            created => created.map(drop),
        }
    }

    /// Deletes an object that was added. One that does not exist is no error.
    pub fn remove(&self, object: &Value) -> Result<(), ClusterError> {
        let cluster = self.cluster.acting_as(User::default());
        let text = |keys: &[&str]| object.str_at(keys).unwrap_or_default();
        let resource = cluster.resolve(text(&["apiVersion"]), text(&["kind"]))?;
        let namespace = Some(text(&["metadata", "namespace"])).filter(|_| resource.namespaced);
        let namespace = namespace.map(|name| if name.is_empty() { "default" } else { name });
        match cluster.delete(&resource, namespace, text(&["metadata", "name"]), &DeleteOptions::default()) {
            Err(error) if error.kind() == ephor_cluster::ErrorKind::NotFound => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Files are taken out of their context, so the namespaces that they take for granted are made.
    fn make_namespace(&self, name: &str, options: &WriteOptions) -> Result<(), ClusterError> {
        let namespaces = self.cluster.resolve("v1", "Namespace")?;
        if self.cluster.get(&namespaces, None, name).is_ok() {
            return Ok(());
        }
        let metadata = Value::from([("name", Value::from(name))]);
        let namespace = Value::from([
            ("apiVersion", Value::from("v1")),
            ("kind", Value::from("Namespace")),
            ("metadata", metadata),
        ]);
        self.cluster.create(&namespaces, namespace, options).map(drop)
    }

    /// Has every write judged by policies from now on, and starts the controllers.
    pub fn enforce(&self) {
        self.enforced.get_or_init(|| {
            namespaces::create_namespace_defaults(&self.cluster, &self.identity.certificate.pem);
            engine::start(&self.cluster, &self.live, &self.identity.certificate.pem, &self.stop)
        });
    }

    /// Starts controllers that make workloads ready, as if they ran.
    pub fn run_workloads(&self) {
        let (cluster, stop) = (self.cluster.clone(), self.stop.clone());
        threads::spawn("workloads", threads::LARGE, &self.stop, move || workloads::run(&cluster, &stop));
    }

    /// Waits until all stored policies are enforced as they are stored: what happens to them is followed by watches.
    pub fn settle(&self) {
        let Some(enforced) = self.enforced.get() else { return };
        let begun = Instant::now();
        while !self.is_settled(enforced) && begun.elapsed() < SETTLE_TIMEOUT && !self.stop.is_cancelled() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn is_settled(&self, enforced: &PolicyStore) -> bool {
        let known = enforced.snapshot();
        ["ClusterPolicy", "Policy"].iter().all(|kind| {
            let Ok(resource) = self.cluster.resolve("kyverno.io/v1", kind) else { return true };
            let Ok(stored) = self.cluster.list(&resource, &ListQuery::all()) else { return true };
            stored.items.iter().all(|document| {
                let generation = document.at(&["metadata", "generation"]).and_then(Value::as_i64);
                known.policies.get(&PolicyId::of(document)).is_some_and(|policy| {
                    policy.uid() == object::text(document, "uid") && Some(policy.generation()) == generation
                })
            })
        })
    }

    /// The cluster.
    pub fn cluster(&self) -> &MemoryCluster {
        &self.cluster
    }

    /// What makes its kubeconfig valid in another run.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The URL of the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.identity.port)
    }

    /// The URL of the live view, for browsers.
    pub fn live_url(&self) -> String {
        format!("http://127.0.0.1:{}/ephor/#{}", self.identity.port, self.identity.token)
    }

    /// The text of the kubeconfig.
    pub fn kubeconfig(&self) -> String {
        kubeconfig::text(&self.url(), &self.identity.certificate.pem, &self.identity.token)
    }

    /// Serves until the stop signal.
    pub fn serve(&self) -> io::Result<()> {
        let gate = Gate::new(self.identity.port, self.identity.token.clone());
        let certificate = self.identity.certificate.pem.as_str().into();
        let watches = Arc::new(Semaphore::new(server::WATCHES));
        let served = Served { cluster: self.cluster.clone(), gate, certificate, stop: self.stop.clone(), watches };
        server::serve(
            self.listener.try_clone()?,
            &self.identity.certificate,
            served,
            self.live.clone(),
            &self.identity.token,
        )?;
        self.stop.failure().map_or(Ok(()), |reason| Err(io::Error::other(reason)))
    }
}

/// The time as objects carry it.
fn now() -> Str {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

/// The annotation by which `kubectl apply` knows what it applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How long a document is at most, in bytes, that is noted: an object has room for annotations of 256 KiB.
const MAX_LAST_APPLIED: usize = 200 << 10;

/// Notes an object as `kubectl apply` does, which otherwise warns when it applies the same file.
fn note_applied(object: &mut Value) {
    let document = format!("{}\n", object.to_json());
    let Some(metadata) = object.as_object_mut().and_then(|members| members.get_mut("metadata")) else { return };
    let Some(metadata) = metadata.as_object_mut().filter(|_| document.len() <= MAX_LAST_APPLIED) else { return };
    let annotations = metadata.entry("annotations");
    if annotations.is_null() {
        *annotations = Value::object(Map::new());
    }
    // What is no map is the API server's to refuse.
    if let Some(annotations) = annotations.as_object_mut().filter(|annotations| !annotations.contains_key(LAST_APPLIED))
    {
        annotations.insert(LAST_APPLIED, document);
    }
}
