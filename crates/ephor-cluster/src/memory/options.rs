//! How a cluster in memory behaves.

use std::sync::Arc;

use ephor_expr::Str;

/// Settings of a [`MemoryCluster`](super::MemoryCluster).
#[derive(Clone)]
pub struct Options {
    /// What the cluster insists on.
    pub strictness: Strictness,
    /// How many past changes watches and pages can go back to.
    pub history: usize,
    /// Where UIDs and generated names come from: the same seed and calls give the same ones.
    pub seed: u64,
    /// The time at the start, RFC 3339.
    pub now: Str,
    /// The clock; without it the time stands still at `now` until it is set.
    pub clock: Option<Clock>,
    /// Whether objects are held against the schemas of their kinds.
    pub schemas: Schemas,
    /// When objects are deleted whose namespace, definition or owner was deleted.
    pub collection: Collection,
}

/// Tells the time, RFC 3339.
pub type Clock = Arc<dyn Fn() -> Str + Send + Sync>;

/// Whether objects are held against the schemas of their kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schemas {
    /// Objects are kept as they come; who owns which field is noted for those who apply.
    Ignored,
    /// Like an API server: unknown fields are dropped, defaults set, rules checked, and every writer's fields noted.
    Enforced,
}

/// When contents go with what contains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Collection {
    /// At once, as part of the deletion.
    AtOnce,
    /// When [`MemoryCluster::reconcile`](super::MemoryCluster::reconcile) is called: like on a real cluster, by the
    /// controllers' users, whom admission sees.
    ByControllers,
}

/// What the cluster insists on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// Like an API server: kinds must be defined and namespaces must exist. It begins with the namespaces
    /// `default`, `kube-node-lease`, `kube-public` and `kube-system`.
    Strict,
    /// For files out of context: every namespace counts as existing, unknown kinds are guessed. It begins empty.
    Lenient,
}

impl Default for Options {
    /// A strict cluster on the first of January 2000.
    fn default() -> Self {
        Self {
            strictness: Strictness::Strict,
            history: 4096,
            seed: 0,
            now: Str::new_static("2000-01-01T00:00:00Z"),
            clock: None,
            schemas: Schemas::Ignored,
            collection: Collection::AtOnce,
        }
    }
}

impl Options {
    /// A lenient cluster, otherwise as [`Options::default`].
    pub fn offline() -> Self {
        Self { strictness: Strictness::Lenient, ..Self::default() }
    }

    /// A strict cluster that does all that an API server does, otherwise as [`Options::default`].
    pub fn server() -> Self {
        Self { schemas: Schemas::Enforced, collection: Collection::ByControllers, ..Self::default() }
    }
}
