//! The policy engine.

pub mod policy;
