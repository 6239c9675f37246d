//! The trait.

use std::sync::Arc;
use std::time::Duration;

use ephor_expr::{Str, Value};

use crate::discovery::Discovery;
use crate::error::{ClusterError, ErrorKind};
use crate::object;
use crate::query::{Filter, List, ListQuery, WatchQuery};
use crate::raw::RawRequest;
use crate::resource::Resource;
use crate::write::{DeleteOptions, Deletion, Part, Patch, WriteOptions};

/// A Kubernetes cluster, as far as policies and their controllers need one.
///
/// Objects go in and out as [`Value`]s with `apiVersion`, `kind` and `metadata`. Namespaces are `None` for kinds
/// that live outside of them; a namespaced kind needs one wherever a single object is meant. Objects of one group
/// and kind are the same objects in every version.
///
/// The calls block. Hosts fetch facts in batches, in threads of their own; in memory the
/// answer is there at once, and a client of a real cluster waits on its own runtime. So the trait can be used as
/// `dyn Cluster`, and neither engine nor tests depend on a runtime.
pub trait Cluster: Send + Sync {
    /// The kinds that are served now.
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError>;

    /// The resource behind an object's `apiVersion` and `kind`. [`ErrorKind::NotFound`](crate::ErrorKind) if
    /// there is no such kind, as of now: kinds defined a moment ago are found.
    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError>;

    /// One object.
    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError>;

    /// The objects that a query selects.
    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError>;

    /// Creates an object, in the namespace that its metadata names. Gives back what was stored, or for a review the
    /// answer.
    fn create(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError>;

    /// Replaces an object, named by its metadata. A `resourceVersion` in it must be the present one (else
    /// [`ErrorKind::Conflict`](crate::ErrorKind)); without one the write is unconditional, which custom resources
    /// and some built-in kinds refuse. Gives back what is stored then; a write that changes nothing leaves the
    /// version as it is. An object marked as deleted whose last finalizer is taken away is gone.
    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError>;

    /// Replaces the status of an object and nothing else; otherwise as [`Cluster::update`].
    fn update_status(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.update(resource, object, &WriteOptions { part: Part::Status, ..options.clone() })
    }

    /// Changes an object; otherwise as [`Cluster::update`]. A patch that sets `metadata.resourceVersion` asks for
    /// that version to be the present one.
    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError>;

    /// Deletes an object, or marks it as deleted while finalizers hold it.
    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError>;

    /// Deletes all objects that a filter selects, and says how many there were; those that finalizers hold are only
    /// marked. Preconditions of the options count for each object.
    fn delete_collection(
        &self,
        resource: &Resource,
        filter: &Filter,
        options: &DeleteOptions,
    ) -> Result<usize, ClusterError> {
        let mut deleted = 0;
        let query = ListQuery { filter: filter.clone(), metadata_only: true, ..ListQuery::all() };
        for object in self.list(resource, &query)?.items {
            let namespace = Some(object::namespace(&object)).filter(|namespace| !namespace.is_empty());
            match self.delete(resource, namespace, object::name(&object), options) {
                Ok(_) => deleted += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(deleted)
    }

    /// What happens to the selected objects. [`ErrorKind::Gone`](crate::ErrorKind) if the cluster no longer knows
    /// what happened since the version asked for: list again and watch from there.
    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError>;

    /// Answers an HTTP request as the API server would; see [`crate::raw`].
    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError>;
}

/// A running watch.
pub trait Watch: Send {
    /// The next event, waiting for it as long as `wait` (zero: not at all); `None` if there was none by then. After
    /// an error the watch is over.
    fn next(&mut self, wait: Duration) -> Result<Option<WatchEvent>, ClusterError>;
}

/// What happened to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent {
    /// It was created, or began to be selected.
    Added(Value),
    /// It was changed.
    Modified(Value),
    /// It was removed, or ceased to be selected; this is its last state, in the version of the removal.
    Deleted(Value),
    /// Nothing: all events up to this version have been reported.
    Bookmark(Str),
}

impl WatchEvent {
    /// The object that it is about.
    pub fn object(&self) -> Option<&Value> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark(_) => None,
        }
    }
}
