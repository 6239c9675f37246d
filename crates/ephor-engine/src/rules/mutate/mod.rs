//! Bodies of `mutate` rules.

mod json_patch;
mod limits;
mod run;
pub mod strategic_merge;
mod targets;

pub use json_patch::{JsonPatch, JsonPatchError};
pub(crate) use run::Run;
pub use strategic_merge::apply_strategic_merge;
