//! The libraries of Kyverno's policies.

pub(super) mod data;
pub(super) mod image;
pub(super) mod world;
