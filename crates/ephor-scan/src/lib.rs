//! The reports role: judges what exists by the policies of the cluster, and keeps policy reports.
//!
//! In go policies, exceptions, settings, the objects of every kind that a policy matches, the reports that are stored,
//! and the results that other roles leave as `EphemeralReport`s. Out come reports, written only where they would say
//! something else than what is stored.
//!
//! - [`reportable`]: which policies, rules and kinds are scanned. [`judge`]: what they say about one object.
//! - [`state`]: what is known of objects and reports, and what is to be done. It holds no object longer than it takes
//!   to judge it.
//! - [`events`]: what is told of new violations.
//! - [`in_memory`]: a cluster whose reports are in memory, for the same controller. [`aggregated`] runs the controller
//!   over it in every replica; [`requests`] holds the results of requests for it, and [`prune`] deletes old ones.
//! - [`existing`]: judges a cluster once, for `ephor report --compute`. [`verdicts`]: what a change of policies would
//!   change, for `ephor plan`.
//! - [`controller`]: does one piece of work at a time, without threads or a clock of its own, so that tests decide what
//!   happens when. [`serve`]: watchers, workers and the lease around it.

pub mod adopt;
pub mod aggregated;
pub mod controller;
pub mod events;
pub mod existing;
pub mod in_memory;
pub mod judge;
pub mod prune;
pub mod reportable;
pub mod requests;
pub mod serve;
pub mod settle;
pub mod state;
#[cfg(test)]
mod tests;
pub mod verdicts;

pub use controller::{Controller, Env, Step};
