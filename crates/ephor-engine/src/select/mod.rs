//! Which rules can match: an index over a set of policies.
//!
//! Evaluation looks only at rules whose kind selectors and policy namespace fit the request, so that its cost depends
//! on the rules that match and not on how many are loaded.

mod set;

pub use set::{PolicySet, RuleRef};
