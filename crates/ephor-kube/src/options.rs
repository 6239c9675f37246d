//! Where to connect to, as whom, and how much to ask of a server.

use std::path::PathBuf;
use std::time::Duration;

/// How to connect.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Which server.
    pub access: Access,
    /// As whom, where that is not who the credentials say.
    pub impersonate: Option<Impersonation>,
    /// How many requests a second; `None` for as many as come.
    pub rate: Option<RateLimit>,
    /// What a call may take.
    pub limits: Limits,
    /// What a call by path ([`ephor_cluster::Cluster::raw`]) may take: those are the calls that policies make.
    pub limits_of_paths: Limits,
    /// How often a request is sent before a passing failure is passed on. At least once.
    pub attempts: u32,
    /// The same for requests that change something. A leader, which may write for a limited time only, sets 1: a second
    /// attempt could begin after its lease has ended.
    pub attempts_to_write: u32,
    /// Whether objects keep the record of who wrote which field.
    pub managed_fields: ManagedFields,
    /// How new kinds become known.
    pub definitions: Definitions,
    /// In whose name fields are written ([`ephor_cluster::WriteOptions::field_manager`] is more specific), and how
    /// the client calls itself.
    pub client_name: String,
}

impl Default for ConnectOptions {
    /// As kubectl connects.
    fn default() -> Self {
        Self {
            access: Access::Inferred { context: None },
            impersonate: None,
            rate: None,
            limits: Limits::default(),
            limits_of_paths: Limits::default(),
            attempts: 5,
            attempts_to_write: 5,
            managed_fields: ManagedFields::Dropped,
            definitions: Definitions::AskedFor,
            client_name: "ephor".to_owned(),
        }
    }
}

/// What a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take until the whole answer is there, all attempts together.
    pub timeout: Duration,
    /// How large the answer may be, in bytes.
    pub answer: usize,
}

impl Default for Limits {
    /// 30 seconds, 256 MiB.
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), answer: 256 << 20 }
    }
}

/// Which server, with which credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// As kubectl finds it: the files of `KUBECONFIG`, `~/.kube/config`, and without any of them the server whose
    /// cluster this process runs in.
    Inferred {
        /// The context of the kubeconfig, if not its current one.
        context: Option<String>,
    },
    /// That of a kubeconfig.
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The context, if not the current one.
        context: Option<String>,
    },
    /// The server whose cluster this process runs in, as the service account of its Pod.
    InCluster,
}

/// The user that the client impersonates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonation {
    /// The name of the user.
    pub user: String,
    /// Its groups.
    pub groups: Vec<String>,
}

/// How many requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Each second, in the long run.
    pub qps: f64,
    /// At once, after a quiet time.
    pub burst: u32,
}

/// What happens to `metadata.managedFields` in objects that are read. A write without them leaves them as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedFields {
    /// They are dropped: they are larger than many objects, and few policies look at them.
    Dropped,
    /// They stay.
    Kept,
}

/// How kinds that are defined later become known. A kind that is asked for and not known is always looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definitions {
    /// On demand.
    AskedFor,
    /// At once: a thread watches `CustomResourceDefinition`s. Needs the permission to list and watch them.
    Followed,
}
