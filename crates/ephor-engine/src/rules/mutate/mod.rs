//! Bodies of `mutate` rules.
//!
//! - [`strategic_merge`]: patches that look like the resource, with conditions;
//! - [`json_patch`]: patches that are lists of operations, and differences as such patches;
//! - [`identity`]: a patched target is still the object that was read;
//! - [`admission`]: policies of Kubernetes;
//! - `run`, `targets`: rules as a whole.

pub mod admission;
#[cfg(test)]
mod arbitrary;
pub mod identity;
pub mod json_patch;
mod limits;
pub mod policy;
mod run;
pub mod strategic_merge;
mod targets;

pub use json_patch::{JsonPatch, JsonPatchError};
pub(crate) use run::Run;
pub use strategic_merge::apply_strategic_merge;
