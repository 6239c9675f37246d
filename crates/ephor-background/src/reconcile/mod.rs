//! What the generate rules of one policy want for one trigger, made good.
//!
//! The same way for watch events, requests and existing triggers: the live trigger is judged by the whole policy, each
//! rule's objects are planned against the live ones, and what a synchronizing rule owns and does not want any more
//! goes. Nothing here depends on what has happened, only on what is; requests add who asked and what was before.
//!
//! - `pass`: one piece of work at hand, and what comes of it. `key`: one policy and one trigger.
//! - `work`: its rules, one after the other. `judge`: what the engine says about the trigger.
//! - `want`: what a rule renders, made good. `ensure`: one object of it. `remove`: what is wanted no more.

mod ensure;
mod judge;
mod key;
mod pass;
mod remove;
mod want;
mod work;

pub use pass::{Asked, Done, Failure, Found, PATIENCE, Pass};
