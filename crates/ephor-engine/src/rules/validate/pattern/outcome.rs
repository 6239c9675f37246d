//! Patterns and what a match comes to (validate-mutate-autogen.md 1.5).

use std::sync::Arc;

use ephor_expr::Value;

use super::compile::{Compiler, MapNode, Node};
use super::log::{Log, Quiet, Verbose};
use super::scalar::Scalars;
use super::trail::Trail;
use super::walk::{Stop, Walk};
use super::wildcard_keys::Picks;

/// A pattern, ready to match.
#[derive(Debug, Clone)]
pub struct Pattern {
    root: Node,
    /// Blocks with wildcard keys, by number.
    blocks: Vec<Arc<MapNode>>,
}

/// Why a resource does not match a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// A condition or global anchor does not hold: the pattern does not apply to this resource.
    #[error("{message}")]
    Skip {
        /// The unmet conditions, joined by `; `.
        message: String,
    },
    /// The resource is not as demanded.
    #[error("{message}")]
    Fail {
        /// Where in the resource; begins and ends with `/`, keys without anchors.
        path: String,
        /// What was found there and what was demanded.
        message: String,
    },
    /// The resource is not as demanded, but the pattern cannot say so: some condition or existence key was never
    /// present in any map it was looked for, or a list is too short. A plain pattern gives an error; among
    /// alternatives (`anyPattern`) it counts as a failure.
    #[error("{message}")]
    Error {
        /// As in [`Mismatch::Fail`].
        message: String,
    },
}

impl Pattern {
    /// Compiles a `validate.pattern`. Never fails: what is no anchor or operator is taken literally.
    pub fn compile(pattern: &Value) -> Self {
        Self::compile_with(pattern, Scalars::Typed)
    }

    /// Compiles a pattern whose scalars are understood as `scalars` says.
    pub fn compile_with(pattern: &Value, scalars: Scalars) -> Self {
        let (root, blocks) = Compiler::compile(pattern, scalars);
        Pattern { root, blocks }
    }

    /// Whether `resource` matches. Cheaper than [`Pattern::matches`] when it does not, and the same otherwise.
    pub fn is_match(&self, resource: &Value) -> bool {
        self.walk(Quiet, resource).is_ok()
    }

    /// Matches `resource`, which stands at the root `/`; says why if it does not match.
    pub fn matches(&self, resource: &Value) -> Result<(), Mismatch> {
        // The second walk only finds the words for the answer of the first.
        if self.is_match(resource) {
            return Ok(());
        }
        self.walk(Verbose::default(), resource).map_err(|(stop, log)| match stop {
            Stop::Skip { text, .. } => Mismatch::Skip { message: text },
            Stop::Mismatch { path, text, negation: true } => Mismatch::Fail { path, message: text },
            Stop::Mismatch { path, text, .. } if path.is_empty() || log.keys_are_missing() => {
                Mismatch::Error { message: text }
            }
            Stop::Mismatch { path, text, .. } => Mismatch::Fail { path, message: text },
        })
    }

    fn walk<L: Log>(&self, log: L, resource: &Value) -> Result<(), (Stop<L::Text>, L)> {
        let mut walk = Walk::new(Picks::new(&self.blocks), log);
        walk.node(&self.root, resource, &Trail::Root).map_err(|stop| (stop, walk.log))
    }
}
