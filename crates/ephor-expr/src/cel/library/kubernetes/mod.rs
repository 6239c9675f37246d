//! The libraries of Kubernetes.

pub(super) mod authorizer;
pub(super) mod ip;
pub(super) mod named_format;
pub(super) mod quantity;
pub(super) mod semver;
pub(super) mod url;
