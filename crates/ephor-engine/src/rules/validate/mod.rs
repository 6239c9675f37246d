//! Bodies of `validate` rules.

pub mod pattern;
