//! The languages of patches, as an API server applies them.
//!
//! The policy engine has its own strategic merge and JSON patch, which follow the reference with its leniencies. What
//! is here follows the API server, which is stricter, and appends where the engine's merge prepends.

pub(super) mod json;
pub(super) mod merge;
pub(super) mod strategic;

/// The nesting that JSON documents of the API may have; deeper patches are refused.
pub(super) const MAX_DEPTH: usize = 128;

/// A patch that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatchFault {
    /// The patch is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object.
    #[error("{0}")]
    Misfit(String),
}
