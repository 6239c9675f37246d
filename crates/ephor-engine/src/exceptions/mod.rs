//! `PolicyException`s: objects that rules let off.

mod policies;
mod set;

pub use set::{Exception, ExceptionSet};
