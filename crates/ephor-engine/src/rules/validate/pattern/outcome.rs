//! Patterns and what a match comes to (validate-mutate-autogen.md 1.5).

use std::sync::Arc;

use ephor_expr::Value;
use ephor_expr::budget::{Budget, BudgetError};

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
    /// The work allowed is used up, so that nothing can be said.
    #[error(transparent)]
    Spent(#[from] BudgetError),
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
    pub fn is_match(&self, resource: &Value, budget: &Budget) -> Result<bool, BudgetError> {
        match self.walk(Quiet, resource, budget) {
            Ok(()) => Ok(true),
            Err((Stop::Spent(error), _)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Matches `resource`, which stands at the root `/`; says why if it does not match. The work is charged to
    /// `budget`.
    pub fn matches(&self, resource: &Value, budget: &Budget) -> Result<(), Mismatch> {
        // The second walk only finds the words for the answer of the first.
        if self.is_match(resource, budget)? {
            return Ok(());
        }
        self.walk(Verbose::default(), resource, budget).map_err(|(stop, log)| match stop {
            Stop::Spent(error) => Mismatch::Spent(error),
            Stop::Skip { text, .. } => Mismatch::Skip { message: text },
            Stop::Mismatch { path, text, negation: true } => Mismatch::Fail { path, message: text },
            Stop::Mismatch { path, text, .. } if path.is_empty() || log.keys_are_missing() => {
                Mismatch::Error { message: text }
            }
            Stop::Mismatch { path, text, .. } => Mismatch::Fail { path, message: text },
        })
    }

    fn walk<L: Log>(&self, log: L, resource: &Value, budget: &Budget) -> Result<(), (Stop<L::Text>, L)> {
        let mut walk = Walk::new(Picks::new(&self.blocks), log, budget);
        walk.node(&self.root, resource, &Trail::Root).map_err(|stop| (stop, walk.log))
    }
}
