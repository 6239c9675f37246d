//! Cleanup policies: which existing objects are to be deleted.
//!
//! [`CleanupProgram`] is a `CleanupPolicy` or `ClusterCleanupPolicy`, compiled. [`CleanupProgram::evaluate`] says of
//! one object whether it is selected and whether the conditions hold. The host deletes it. [`ttl`] says when the label
//! of an object wants it to go.

mod program;
pub mod ttl;

pub use program::{Cleaned, CleanupProgram, CleanupVerdict};
