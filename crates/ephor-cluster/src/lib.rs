//! Kubernetes as Ephor sees it: the [`Cluster`] trait and an implementation in memory.
//!
//! The engine never talks to a cluster; it asks its host for facts. A host answers them from a [`Cluster`]: offline
//! from a [`MemoryCluster`] filled with files, in a sandbox from a [`MemoryCluster`] that behaves like an API
//! server, in production from a client of a real one. All three answer the same calls with the same errors.
//!
//! ```
//! use ephor_cluster::{Cluster, LabelSelector, ListQuery, MemoryCluster, WriteOptions};
//! use ephor_expr::Value;
//!
//! let cluster: Box<dyn Cluster> = Box::new(MemoryCluster::default());
//! let config_maps = cluster.resolve("v1", "ConfigMap")?;
//! let text =
//! r#"{"metadata":{"name":"colours","namespace":"default","labels":{"app":"paint"}},"data":{"sky":"blue"}}"#;
//! cluster.create(&config_maps, Value::from_json(text)?, &WriteOptions::default())?;
//!
//! let query = ListQuery::in_namespace("default").labels(LabelSelector::parse("app in (paint,ink)")?);
//! let found = cluster.list(&config_maps, &query)?;
//! assert_eq!(found.items[0].str_at(&["data", "sky"]), Some("blue"));
//!
//! let error = cluster.get(&config_maps, Some("default"), "shapes").unwrap_err();
//! assert_eq!(error.to_string(), r#"configmaps "shapes" not found"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`cluster`]: the trait. [`query`]: what to list and watch. [`write`](mod@write): how to write.
//! - [`resource`], [`discovery`]: which kinds there are, also those of `CustomResourceDefinition` objects.
//! - [`object`]: metadata of objects.
//! - [`error`]: failures with the words and codes of the API server.
//! - [`raw`]: the HTTP face, for policies that name a URL path.
//! - [`memory`]: the store. [`admission`]: who is asked before it stores. [`schema`]: how objects of a kind look.

pub mod admission;
mod backoff;
mod cause;
pub mod cluster;
pub mod discovery;
pub mod error;
pub mod memory;
pub mod object;
pub mod query;
pub mod raw;
pub mod resource;
pub mod schema;
pub mod write;

pub use backoff::Backoff;
pub use cause::Cause;
pub use cluster::{Cluster, Watch, WatchEvent};
pub use discovery::Discovery;
pub use error::{ClusterError, ErrorKind};
pub use memory::MemoryCluster;
pub use query::{FieldSelector, LabelSelector, List, ListQuery, OnUnreadable, UnreadableItem, WatchQuery};
pub use resource::Resource;
pub use write::{DeleteOptions, Deletion, FieldValidation, Patch, PatchKind, WriteOptions};
