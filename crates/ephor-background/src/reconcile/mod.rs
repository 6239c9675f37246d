//! Reconciles the generate rules of one policy with one trigger.
//!
//! Watch events, requests and existing triggers take the same path: the whole policy is evaluated for the live trigger,
//! the objects that each rule renders are planned against the live ones, and downstreams that a synchronizing rule does
//! not want any more are removed. The result depends on the present state of the cluster, not on events; requests only
//! add the user and the old object.
//!
//! - `context`: inputs and results of one reconciliation. `key`: one policy and one trigger.
//! - `decide`: what a rule does for its trigger, as a pure function. `reconciler`: the rules, one after the other.
//! - `judge`: what the engine says about the trigger.
//! - `want`: writes the objects that a rule renders. `ensure`: writes one of them. `remove`: removes unwanted ones.

mod context;
mod decide;
mod ensure;
mod judge;
mod key;
mod reconciler;
mod remove;
mod want;

pub use context::{Done, Lookup, PERSISTENCE_TIMEOUT, ReconcileContext, ReconcileError, TriggerRequest};
