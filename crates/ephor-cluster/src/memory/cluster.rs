//! The store behind its lock.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use ephor_expr::{Str, Value};

use super::load::Unloaded;
use super::options::Options;
use super::state::State;
use super::watch::{Bell, MemoryWatch};
use crate::cluster::{Cluster, Watch};
use crate::discovery::Discovery;
use crate::error::ClusterError;
use crate::query::{List, ListQuery, WatchQuery};
use crate::raw::{RawRequest, answer};
use crate::resource::Resource;
use crate::write::{DeleteOptions, Deletion, Patch, WriteOptions};

/// A [`Cluster`] in memory; see [the module](super). Clones are the same cluster.
#[derive(Clone)]
pub struct MemoryCluster {
    shared: Arc<Shared>,
}

/// What clones and watches have in common.
pub(super) struct Shared {
    state: RwLock<State>,
    pub(super) bell: Bell,
}

impl Shared {
    // A panic while the lock is held can only come from a patch, which is applied before anything is changed. So
    // what a poisoned lock guards is sound.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state);
        let revision = state.revision;
        drop(state);
        self.bell.ring(revision);
        result
    }
}

impl Default for MemoryCluster {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl fmt::Debug for MemoryCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCluster").field("revision", &self.shared.read().revision).finish_non_exhaustive()
    }
}

impl MemoryCluster {
    /// A new cluster.
    pub fn new(options: Options) -> Self {
        Self { shared: Arc::new(Shared { state: RwLock::new(State::new(options)), bell: Bell::default() }) }
    }

    /// Takes in objects as they are: nothing is checked, set or dropped. UIDs, versions, times and status stay what
    /// they are, or stay missing; a namespaced object without namespace goes to `default`. Definitions are loaded
    /// before everything else, and an object loaded again replaces the one before.
    ///
    /// Gives back what could not be loaded: objects without kind or name, and of unknown kinds in a strict cluster.
    #[must_use = "objects may have been refused"]
    pub fn load(&self, objects: impl IntoIterator<Item = Value>) -> Vec<Unloaded> {
        // Collected first: the iterator must not run under the lock, it may ask the cluster something.
        let objects: Vec<Value> = objects.into_iter().collect();
        self.shared.write(|state| state.load(objects))
    }

    /// Sets the time (RFC 3339) that new objects and deletions get.
    pub fn set_now(&self, now: impl Into<Str>) {
        let now = now.into();
        self.shared.write(|state| state.now = now);
    }

    /// Does what Kubernetes' garbage collector does in the background: deletes objects without living owner, ends
    /// foreground deletions, cuts orphans loose. How many objects were touched.
    pub fn collect_garbage(&self) -> usize {
        self.shared.write(State::collect_garbage)
    }

    /// The resource version of the latest change.
    pub fn revision(&self) -> u64 {
        self.shared.read().revision
    }

    /// All objects, by group, plural, namespace and name.
    pub fn objects(&self) -> Vec<Value> {
        let state = self.shared.read();
        state.tables.values().flat_map(|table| table.objects.values().cloned()).collect()
    }
}

impl Cluster for MemoryCluster {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        Ok(self.shared.read().discovery.clone())
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.shared.read().resolve(api_version, kind)
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        let state = self.shared.read();
        let key = state.key(resource, namespace, name)?;
        state.get(resource, &key)
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        self.shared.read().list(resource, query)
    }

    fn create(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.shared.write(|state| state.create(resource, object, options.dry_run))
    }

    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.shared.write(|state| state.update(resource, object, options))
    }

    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        self.shared.write(|state| {
            let key = state.key(resource, namespace, name)?;
            state.patch(resource, &key, patch, options)
        })
    }

    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        self.shared.write(|state| {
            let key = state.key(resource, namespace, name)?;
            state.delete(resource, &key, options)
        })
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        let state = self.shared.read();
        Ok(Box::new(MemoryWatch::start(self.shared.clone(), &state, resource, query)?))
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        answer(self, request)
    }
}
