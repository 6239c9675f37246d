//! The roles of Ephor in a cluster: admission, background; and the sandbox, which runs both in memory.
//!
//! Everything here works over `dyn` [`Cluster`](ephor_cluster::Cluster): a real one in production, one in memory in
//! tests and in the sandbox. Controllers are plain threads that end when their [`Stop`] says so; only HTTP is
//! asynchronous. Policies are judged by [`facts::evaluate`], the one loop around the engine.
//!
//! - [`feed`]: what exists of a kind, and what happens to it. [`policies`]: stored policies, compiled.
//! - [`policy_admission`]: what is refused of Ephor's own kinds.
//! - [`events`]: what users are told in the cluster. [`metrics`]: what is counted.
//! - [`facts`]: answers to the engine's questions. [`lease`]: one leader at a time.
//! - [`globalcontext`]: cached data that all policies read.
//! - [`webhooks`]: which requests come in. [`certs`]: how callers know us. [`status`]: which
//!   policies hold. [`leading`]: all that the leader does of it.
//! - [`sandbox`]: all of it in one process, over the cluster in memory.
//! - [`background`]: generate and mutate-existing rules. [`plan`]: what generate rules change, and why they may.
//! - [`admission`]: requests in, verdicts and patches out. [`settings`]: flags and environment; [`config`]: the ConfigMap.

pub(crate) mod access;
pub mod admission;
pub mod background;
pub mod certs;
pub mod config;
pub mod crds;
pub mod events;
pub mod explain;
pub mod facts;
#[cfg(test)]
pub(crate) mod faults;
pub mod feed;
pub mod globalcontext;
pub mod install;
pub mod leading;
pub mod lease;
pub mod live;
pub mod metrics;
pub mod network;
pub mod plain_http;
pub mod plan;
pub mod policies;
pub mod policy_admission;
pub mod sandbox;
pub mod serve;
pub mod settings;
pub mod signal;
pub mod status;
pub mod stop;
pub mod threads;
pub mod uninstall;
pub mod update_request;
pub mod webhooks;

pub use stop::Stop;
