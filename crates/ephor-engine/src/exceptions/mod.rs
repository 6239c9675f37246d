//! `PolicyException`s: objects that rules let off.

mod set;

pub use set::{Exception, ExceptionSet};
