//! What to list and what to watch.

mod fields;
mod labels;
mod list;

pub use fields::FieldSelector;
pub use labels::{LabelSelector, Requirement, Test};
pub use list::{Filter, List, ListQuery, OnUnreadable, UnreadableItem, WatchQuery};

/// A selector text or object that Kubernetes refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unable to parse selector {text:?}: {problem}")]
pub struct SelectorError {
    /// The selector as given.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

impl From<SelectorError> for crate::error::ClusterError {
    fn from(error: SelectorError) -> Self {
        Self::bad_request(error.to_string())
    }
}
