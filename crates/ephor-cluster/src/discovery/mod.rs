//! Which kinds a cluster serves.
//!
//! A [`Discovery`] is a table of [`Resource`](crate::resource::Resource)s, found by kind or by URL name. It starts
//! with the kinds of Kubernetes and of the policy engine ([`Discovery::kubernetes`]) and grows with the
//! `CustomResourceDefinition`s of a cluster ([`resources_of`]). The table of a real cluster is read from what its
//! server says ([`Discovery::add_groups`], [`Discovery::add_group_version`]).

mod catalog;
mod definition;
mod documents;
mod kubernetes;
mod policy;
mod served;
mod table;
#[cfg(test)]
mod tests;
mod version;

pub use catalog::Discovery;
pub use definition::resources_of;
pub use documents::{aggregated, group, groups, resources, versions};
pub use version::{KUBERNETES_VERSION, priority};
