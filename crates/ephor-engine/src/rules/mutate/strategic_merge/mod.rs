//! Strategic merge patches with anchors (`mutate.patchStrategicMerge`).
//!
//! Two steps, as in the reference: [`preprocess`] decides the anchors of a patch against the resource and takes them
//! out, [`merge`] lays what is left over the resource. Both follow validate-mutate-autogen.md, sections 3.2 and 3.3,
//! and were compared with the reference on generated patches. They differ from it where it loses or mangles data by
//! accident; `docs/compatibility.md` lists how.

mod apply;
mod cleanup;
mod conditions;
mod error;
mod keyed;
mod merge;
mod preprocess;
mod schema;
#[cfg(test)]
mod tests;

pub use apply::apply_strategic_merge;
pub use error::{MergeError, NodeKind};
pub use merge::merge;
pub use preprocess::preprocess;
pub use schema::MergeSchema;
