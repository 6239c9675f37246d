//! The one rule loop.
//!
//! An [`Evaluation`] takes one review through one phase of a policy set. [`Evaluation::step`] runs until it is done or
//! needs facts; finished rules are kept, so that a step after new facts goes on where the last one stopped.

mod conditions;
mod rule;
mod step;

pub use conditions::meets_conditions;
pub use step::{Done, Evaluation, Step};
