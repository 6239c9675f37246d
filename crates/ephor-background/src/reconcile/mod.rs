//! What the generate rules of one policy want for one trigger, made good.
//!
//! The same way for watch events, requests and existing triggers: the live trigger is judged by the whole policy, each
//! rule's objects are planned against the live ones, and what a synchronizing rule owns and does not want any more
//! goes. Nothing here depends on what has happened, only on what is; requests add who asked and what was before.
//!
//! - `context`: inputs and results of one reconciliation. `key`: one policy and one trigger.
//! - `reconciler`: its rules, one after the other. `judge`: what the engine says about the trigger.
//! - `want`: what a rule renders, made good. `ensure`: one object of it. `remove`: what is wanted no more.

mod context;
mod ensure;
mod judge;
mod key;
mod reconciler;
mod remove;
mod want;

pub use context::{Done, Lookup, PERSISTENCE_TIMEOUT, ReconcileContext, ReconcileError, TriggerRequest};
