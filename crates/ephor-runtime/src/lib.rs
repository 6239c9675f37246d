//! What every role of Ephor in a cluster needs, and the command line too.
//!
//! Everything here works over `dyn` [`Cluster`](ephor_cluster::Cluster): a real one in production, one in memory in
//! tests and in the sandbox. Controllers are plain threads that end when their [`CancellationToken`] says so. No module
//! serves HTTP.
//!
//! - [`watcher`]: lists and watches of one kind. [`shared_watches`]: one stream for all roles of a process.
//!   [`policies`]: stored policies, compiled. [`settings`]: flags and environment. [`config`]: the ConfigMap.
//! - [`facts`]: the one loop around the engine ([`facts::evaluate`]) and answers from a cluster. [`network`]: service
//!   calls. [`globalcontext`]: cached data that all policies read. [`kinds`]: what discovery says about kinds in rules.
//! - [`deadline`]: bounds the time and the memory of evaluations.
//! - [`decision`]: admission requests, answers, and observers of what was decided. [`events`] and [`metrics`] observe.
//!   [`explain`]: why a rule decided. [`redact`]: values of Secrets, out of everything that is shown.
//! - [`lease`]: one leader at a time. [`queue`]: keyed work. [`threads`], [`cancellation`], [`notify`], [`poison`]: how
//!   controllers run.
//! - [`update_request`]: work that admission hands to the background role. [`content`]: when two objects are equal.

pub mod access;
pub mod cancellation;
pub mod config;
pub mod content;
pub mod deadline;
pub mod decision;
pub mod events;
pub mod explain;
pub mod facts;
pub mod globalcontext;
pub mod kinds;
pub mod lease;
pub mod metrics;
pub mod network;
pub mod notify;
pub mod poison;
pub mod policies;
pub mod queue;
pub mod redact;
pub mod results;
pub mod schemas;
pub mod settings;
pub mod shared_watches;
pub mod threads;
pub mod traits;
pub mod update_request;
pub mod watcher;

pub use cancellation::CancellationToken;
