//! A real API server as a [`Cluster`](ephor_cluster::Cluster).
//!
//! [`KubeCluster`] connects as kubectl does (kubeconfig, context, inside a Pod) and answers the calls of the trait:
//! objects go in and out as [`Value`](ephor_expr::Value)s, failures are what the server said.
//!
//! ```no_run
//! use ephor_cluster::{Cluster, ListQuery};
//! use ephor_kube::{ConnectOptions, KubeCluster};
//!
//! let cluster = KubeCluster::connect(&ConnectOptions::default())?;
//! let pods = cluster.resolve("v1", "Pod")?;
//! for pod in cluster.list(&pods, &ListQuery::in_namespace("default").limit(100))?.items {
//!     println!("{:?}", pod.str_at(&["metadata", "name"]));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A call blocks its thread and nothing else: input and output run on a thread of the cluster's own, so calls may
//! be made on any thread, also within another asynchronous runtime (where they block a worker).
//!
//! - [`options`]: where to connect to and how much to ask of it. [`connect`]: connecting.
//! - `request`, `exchange`: one call, with retries. `limit`: how many a second.
//! - `served`, `definitions`: which kinds there are. `page`: lists. `watch`: what happens.

mod cluster;
pub mod connect;
mod definitions;
mod exchange;
mod limit;
pub mod options;
mod page;
mod request;
mod runtime;
mod served;
mod watch;

pub use cluster::KubeCluster;
pub use connect::ConnectError;
pub use options::{Access, ConnectOptions, Definitions, Impersonation, Limits, ManagedFields, RateLimit};
