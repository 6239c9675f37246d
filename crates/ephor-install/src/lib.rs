//! Installing Ephor into a cluster and taking it out.
//!
//! [`crds`]: the definitions of Ephor's kinds, derived from the types that the engine decodes. [`manifests`]: the
//! objects of an installation, rendered from the chart. [`uninstall`]: removes them, webhooks first.

pub mod crds;
pub mod manifests;
pub mod uninstall;
