//! The HTTP face of a cluster.
//!
//! Policies name URL paths (`/api/v1/namespaces/prod/pods?labelSelector=app%3Dweb`). A client of a real cluster
//! sends them; [`answer`] gives the same answers from any other [`Cluster`](crate::Cluster). Watches are streams
//! and not for here: see [`Cluster::watch`](crate::Cluster::watch).

mod answer;
pub(crate) mod path;
pub(crate) mod query;
mod target;
#[cfg(test)]
mod tests;

use ephor_expr::Value;

use crate::write::PatchKind;

pub use answer::answer;
pub use target::{Target, target, watch};

/// An HTTP request to an API server.
#[derive(Debug, Clone, PartialEq)]
pub struct RawRequest {
    /// The method.
    pub method: Method,
    /// Path and query, percent-encoded where need be: `/api/v1/pods?limit=1`.
    pub path: String,
    /// What is sent along, decoded.
    pub body: Option<Value>,
    /// Whether nothing may be stored, as with `dryRun=All` in the query. A host that evaluates policies offline
    /// sets this, so that evaluations do not influence each other.
    pub dry_run: bool,
}

/// An HTTP method, as far as the Kubernetes API has a use for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Read an object, a list or a document about the server.
    Get,
    /// Create an object, or have a review answered.
    Post,
    /// Replace an object.
    Put,
    /// Change an object; the body is in this language.
    Patch(PatchKind),
    /// Delete an object.
    Delete,
}

impl RawRequest {
    /// A request that reads.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::Get, path: path.into(), body: None, dry_run: false }
    }

    /// A request that creates, or asks for a review.
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::Post, path: path.into(), body: Some(body), dry_run: false }
    }

    /// A request that replaces.
    pub fn put(path: impl Into<String>, body: Value) -> Self {
        Self { method: Method::Put, path: path.into(), body: Some(body), dry_run: false }
    }
}
