//! The policy engine.

pub mod policy;
pub mod rules;
