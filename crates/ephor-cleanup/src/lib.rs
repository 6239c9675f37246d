//! The cleanup role: deletes what cleanup policies select, when their schedules say so, and objects whose label for a
//! lifetime says that their time has come.
//!
//! In go the policies (`CleanupPolicy`, `ClusterCleanupPolicy`, `DeletingPolicy`, `NamespacedDeletingPolicy`),
//! exceptions, settings and objects. Out come deletions, each bound to the UID and the version that was judged,
//! statuses, Events and metrics.
//!
//! - [`policy`]: a stored policy, when it is due, and what it is told by annotations. [`select`]: the kinds that it
//!   means.
//! - [`judge`]: what a policy says of one object. [`run`]: one run of a policy, page by page. [`status`]: what is
//!   written about a run.
//! - [`writer`]: the only one that writes. It looks at the scope of the policy and asks the fence first.
//! - [`controller`]: which policy is due, and one run at a time, without threads or a clock of its own, so that tests
//!   decide what happens when.
//! - [`ttl`]: the label for lifetimes: one queue of timers over watches of metadata.
//! - [`serve`]: watchers, workers and the lease around both. [`forecast`]: what would be deleted, for `ephor plan`.

pub mod controller;
pub mod env;
pub mod forecast;
pub mod judge;
pub mod policy;
pub mod run;
pub mod select;
pub mod serve;
pub mod status;
#[cfg(test)]
mod tests;
pub mod ttl;
pub mod writer;

pub use controller::Controller;
pub use env::{CleanupOptions, Env};

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A piece of work.
    Worked,
    /// Nothing: no work is due before that moment.
    Idle(Option<ephor_runtime::queue::Moment>),
}
