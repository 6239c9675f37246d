//! A cluster in memory, with the manners of an API server.
//!
//! [`MemoryCluster`] keeps objects and nothing else: there are no nodes, no admission, no schemas, no defaults beyond
//! metadata and the first status. What it has is what programs that write to clusters depend on: names and UIDs,
//! resource versions and optimistic locking, generations, finalizers, namespaces and definitions that take their
//! contents with them, owners and garbage collection, pages and watches with a bounded memory.
//!
//! Everything is reproducible: the time is what [`MemoryCluster::set_now`] says, UIDs and generated names follow
//! from a seed.
//!
//! [`Options::default`] is a strict server with the usual namespaces; [`Options::offline`] takes objects as they
//! come, for evaluating policies against files.

mod cluster;
mod containers;
mod create;
mod delete;
mod garbage;
mod history;
mod identity;
mod kinds;
mod list;
mod load;
mod merge_patch;
mod names;
mod options;
mod reviews;
mod state;
#[cfg(test)]
mod tests;
mod update;
mod validate;
mod watch;

pub use cluster::MemoryCluster;
pub use load::Unloaded;
pub use options::{Options, PatchError, Patches, Strictness};
