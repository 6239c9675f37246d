//! The HTTP front of a Kubernetes API, over any [`Cluster`](ephor_cluster::Cluster).
//!
//! - [`reply`]: content negotiation, objects in the form that the client accepts, and the HTTP answer.
//! - [`table`] and [`mod@column`]: the output of `kubectl get`.
//! - [`watch`]: watches as lines of JSON.
//! - [`front_proxy`] and [`delegated`]: who sends a request through the API server, and whether the API server allows
//!   it.
//! - [`registration`]: the `APIService`s by which the API server forwards requests.
//! - [`reports`]: the extension API server that serves policy reports from memory.
//!
//! The sandbox serves its whole cluster through it; the reports role serves only reports.

pub mod column;
pub mod delegated;
pub mod front_proxy;
pub mod json_path;
pub mod openapi;
pub mod registration;
pub mod reply;
pub mod reports;
pub mod table;
pub mod watch;
