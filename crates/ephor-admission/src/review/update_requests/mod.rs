//! `UpdateRequest`s: work for the background role that only an admission request knows of.
//!
//! They are made for requests that go on, never on a dry run. Where nothing else would remember
//! the event (a deletion, a connection, a subresource, a rule without `synchronize` or one that looks at the user) they
//! are written before the reply, and a failure to write is a verdict by the policy's failure policy. Work that
//! synchronizes follows from what watches see; its requests only make it quick, so they are written after the reply and
//! may be dropped.
//!
//! - `plan`: the work that follows from a request. `write`: how it gets into the cluster.
//!
//! Names are hashes: of policy and trigger where synchronizing work coalesces, of the admission request
//! otherwise. A request carries the object only where it cannot be read later, never the values of a Secret, and never
//! more than 256 KiB.

mod plan;
mod write;

use ephor_engine::policy::FailurePolicy;
use ephor_runtime::update_request::UpdateRequest;

pub(super) use plan::plan;
pub(super) use write::UpdateRequests;
pub use write::Waiting;

/// A request to write.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    pub(super) request: UpdateRequest,
    /// Whether the reply waits until it is written.
    pub(super) urgent: bool,
    /// What it means if it cannot be.
    failure_policy: FailurePolicy,
}
