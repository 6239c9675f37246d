//! JSON patches (`mutate.patchesJson6902`): RFC 6902 with the leniencies of the reference.
//!
//! `add` creates missing parents, `remove` of what is missing does nothing, negative indexes count from the end, and a
//! missing member tests equal to null; validate-mutate-autogen.md, section 3.4, has the table. Error texts are those
//! of the reference, without the `failed to patch resource: ` that rule messages put before them.
//!
//! API servers patch with fewer leniencies ([`JsonPatch::apply_as_api_server`]).
//!
//! - [`JsonPatch`]: parsed once, applied to many documents, all or nothing;
//! - [`json_patch_between`]: the patch that leads from one document to another.

mod apply;
mod diff;
mod error;
mod operation;
mod parse;
mod pointer;
#[cfg(test)]
mod tests;

pub use diff::json_patch_between;
pub use error::{JsonPatchError, OperationFault, PlaceFault};
pub use operation::{JsonPatch, PatchOp};
pub use pointer::Pointer;
