//! How a cluster in memory behaves.

use std::sync::Arc;

use ephor_expr::{Str, Value};

use crate::resource::Resource;

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
    /// Applies JSON patches and strategic merge patches; without it the cluster refuses them.
    pub patches: Option<Arc<dyn Patches>>,
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
    /// A strict cluster on the first of January 2000, which refuses all but merge patches.
    fn default() -> Self {
        Self {
            strictness: Strictness::Strict,
            history: 4096,
            seed: 0,
            now: Str::new_static("2000-01-01T00:00:00Z"),
            patches: None,
        }
    }
}

impl Options {
    /// A lenient cluster, otherwise as [`Options::default`].
    pub fn offline() -> Self {
        Self { strictness: Strictness::Lenient, ..Self::default() }
    }
}

/// The languages of patches that the policy engine brings along.
pub trait Patches: Send + Sync {
    /// Applies a JSON patch (RFC 6902) to an object.
    fn json(&self, object: &Value, patch: &Value) -> Result<Value, PatchError>;

    /// Applies a strategic merge patch to an object of that kind.
    fn strategic(&self, resource: &Resource, object: &Value, patch: &Value) -> Result<Value, PatchError>;
}

/// A patch that does not fit the object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatchError {
    /// What does not fit, for the user.
    pub message: String,
}
