//! A cluster in memory, with the manners of an API server.
//!
//! [`MemoryCluster`] keeps objects and runs nothing. It has what programs that write to clusters depend on: names and
//! UIDs, resource versions and optimistic locking, generations, finalizers, namespaces and definitions that take
//! their contents with them, owners and garbage collection, pages and watches with a bounded memory, patches of all
//! kinds with server-side apply, and [`Admission`](crate::admission::Admission) before every write.
//!
//! With [`Options::server`] it also holds objects against the schemas of their kinds: defaults, unknown fields, the
//! rules of definitions, those in CEL included, and who owns which field. What it only stores, it warns of
//! (`unenforced`).
//!
//! The way of a write (`write`): `create` and `update` compute the new state, `view` says which part of an object a
//! request is about, `patch` and `ownership` apply patches, `defaults`, `schemas` and `rules` make the result one of
//! its kind.
//!
//! Everything is reproducible: the time is what [`MemoryCluster::set_now`] says, UIDs and generated names follow
//! from a seed.
//!
//! [`Options::default`] is a strict server with the usual namespaces; [`Options::offline`] takes objects as they
//! come, for evaluating policies against files.

mod caller;
mod cluster;
mod containers;
mod controllers;
mod create;
mod defaults;
mod definitions;
mod delete;
mod events;
mod garbage;
mod history;
mod identity;
mod kinds;
mod list;
mod load;
mod merge;
mod names;
mod options;
mod ownership;
mod patch;
mod pods;
mod reviews;
mod rules;
mod schemas;
mod state;
mod subresources;
#[cfg(test)]
mod tests;
mod unenforced;
mod update;
mod validate;
mod view;
mod watch;
mod write;

pub use cluster::MemoryCluster;
pub use load::Unloaded;
pub use merge::MergeError;
pub use options::{Clock, Collection, Options, Schemas, Strictness};
pub use view::View;
