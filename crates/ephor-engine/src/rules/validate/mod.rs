//! Bodies of `validate` rules.

pub mod pattern;
pub mod pod_security;
