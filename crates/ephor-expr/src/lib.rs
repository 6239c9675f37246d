//! Values, text formats and expressions: everything about data that knows no policy.
//!
//! This crate is pure: no files, no network, no clock, no environment. What an expression needs from outside
//! (the time, a seed for `random()`, a name lookup) comes in through [`jmespath::Runtime`].
//!
//! - [`value`]: the JSON-like tree that every part of Ephor works on; cloning is a reference count.
//! - [`yaml`]: YAML and JSON text into values, with positions, bounded in size and depth; values into YAML text.
//! - [`scalar`]: the small languages inside strings: quantities, durations, wildcards, versions, times, images.
//! - [`jmespath`]: the expression language of `kyverno.io` policies.
//! - [`cel`]: the expression language of Kubernetes.

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

pub mod budget;
pub mod cel;
pub mod jmespath;
pub mod scalar;
pub mod value;
pub mod yaml;

pub use value::{Map, Str, Value};
