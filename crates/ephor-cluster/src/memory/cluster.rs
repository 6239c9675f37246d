//! The store behind its lock.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard};
use std::time::Duration;

use ephor_expr::{Str, Value};

use super::caller::{Caller, Ownership, Warnings};
use super::create::{Noted, shaped};
use super::load::Unloaded;
use super::options::Options;
use super::state::State;
use super::update::Change;
use super::view::View;
use super::watch::{MemoryWatch, RevisionNotify};
use crate::admission::{Admission, User};
use crate::cluster::{Cluster, Watch};
use crate::discovery::Discovery;
use crate::error::ClusterError;
use crate::query::{List, ListQuery, WatchQuery};
use crate::raw::{RawRequest, answer};
use crate::resource::Resource;
use crate::write::{DeleteOptions, Deletion, Patch, WriteOptions};

/// A [`Cluster`] in memory; see [the module](super). Clones are the same cluster.
///
/// A handle writes on behalf of a user: the administrator, or whom [`MemoryCluster::acting_as`] names.
#[derive(Clone)]
pub struct MemoryCluster {
    shared: Arc<Shared>,
    caller: Caller,
}

/// Says why a cluster can no longer be used.
const HALF_WRITTEN: &str = "an earlier write to the cluster in memory panicked half-way";

/// What clones and watches have in common.
pub(super) struct Shared {
    state: RwLock<State>,
    admission: OnceLock<Arc<dyn Admission>>,
    pub(super) revisions: RevisionNotify,
    attempts: AtomicU64,
}

impl Shared {
    // A write changes tables, history and kinds one after the other. After a panic half-way nothing may use them, so
    // every access panics too, and the process that holds the cluster ends.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        let Ok(state) = self.state.read() else { panic!("{HALF_WRITTEN}") };
        state
    }

    fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let Ok(mut state) = self.state.write() else { panic!("{HALF_WRITTEN}") };
        let result = change(&mut state);
        let revision = state.revision;
        drop(state);
        self.revisions.advance(revision);
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
        let state = RwLock::new(State::new(options));
        let shared = Shared {
            state,
            admission: OnceLock::new(),
            revisions: RevisionNotify::default(),
            attempts: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared), caller: Caller::default() }
    }

    /// Asks `admission` before every write from now on, through all handles. It is told once; whether it was.
    pub fn set_admission(&self, admission: Arc<dyn Admission>) -> bool {
        self.shared.admission.set(admission).is_ok()
    }

    /// A handle of the same cluster for another user. It keeps warnings for
    /// [`take_warnings`](MemoryCluster::take_warnings).
    #[must_use]
    pub fn acting_as(&self, user: User) -> Self {
        let caller = Caller { user: Arc::new(user), warnings: Warnings::kept(), ownership: self.caller.ownership };
        Self { shared: self.shared.clone(), caller }
    }

    /// The same handle, giving objects with `metadata.managedFields`. Others leave them out, as clients of a real
    /// cluster do.
    #[must_use]
    pub fn showing_ownership(mut self) -> Self {
        self.caller.ownership = Ownership::Shown;
        self
    }

    /// The schema by which objects of a custom kind are judged; `None` if there is none.
    pub fn schema_document(&self, resource: &Resource) -> Option<Value> {
        self.read(|state| state.schema_of(resource).document())
    }

    /// What the writes of this handle were warned of since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.caller.warnings.take()
    }

    /// On whose behalf this handle writes.
    pub fn user(&self) -> &User {
        &self.caller.user
    }

    pub(super) fn warn(&self, warnings: Vec<String>) {
        self.caller.warnings.extend(warnings);
    }

    /// The number of an attempt to write.
    pub(super) fn next_serial(&self) -> u64 {
        self.shared.attempts.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn admission(&self) -> Option<&Arc<dyn Admission>> {
        self.shared.admission.get()
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.read())
    }

    pub(super) fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.shared.write(change)
    }

    /// Waits until something changes after `revision`, at most for `wait`. The present revision.
    pub fn wait_for_change(&self, revision: u64, wait: Duration) -> u64 {
        self.shared.revisions.wait(revision, wait);
        self.revision()
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

    /// Serves the kinds of `objects` without taking in the objects: as their definitions among them say, or guessed
    /// where that is allowed.
    pub fn serve_kinds_of(&self, objects: &[Value]) {
        self.shared.write(|state| state.serve_kinds_of(objects));
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
        state.get(resource, &key).map(|object| self.caller.ownership.show(object))
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        let mut list = self.shared.read().list(resource, query)?;
        for object in &mut list.items {
            *object = self.caller.ownership.show(std::mem::take(object));
        }
        Ok(list)
    }

    fn create(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        let created = self.create_object(resource, object, options, Noted::Not)?;
        Ok(self.caller.ownership.show(created))
    }

    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.read(|state| state.check_served(resource))?;
        let submitted = shaped(resource, object)?;
        let key = self.read(|state| state.key_of(resource, &submitted))?;
        let view = View::of_part(resource, options.part)?;
        let changed = self.change_object(resource, &key, &view, Change::Replace(&submitted), options)?;
        Ok(self.caller.ownership.show(changed))
    }

    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        let key = self.read(|state| state.key(resource, namespace, name))?;
        let view = View::of_part(resource, options.part)?;
        let changed = self.change_object(resource, &key, &view, Change::Patch(patch), options)?;
        Ok(self.caller.ownership.show(changed))
    }

    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        let key = self.read(|state| state.key(resource, namespace, name))?;
        Ok(match self.delete_object(resource, &key, options)? {
            Deletion::Done(object) => Deletion::Done(self.caller.ownership.show(object)),
            Deletion::Pending(object) => Deletion::Pending(self.caller.ownership.show(object)),
        })
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        let state = self.shared.read();
        Ok(Box::new(MemoryWatch::start(self.shared.clone(), &state, resource, query, self.caller.ownership)?))
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        match self.below_object(request) {
            Some(answer) => answer,
            None => answer(self, request),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_half_written_cluster_answers_nothing() {
        let cluster = MemoryCluster::default();
        let write = || cluster.write(|_| panic!("as asked"));
        assert!(catch_unwind(AssertUnwindSafe(write)).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| cluster.revision())).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| cluster.set_now("2026-01-01T00:00:00Z"))).is_err());
    }

    #[test]
    fn a_read_that_panics_harms_nothing() {
        let cluster = MemoryCluster::default();
        assert!(catch_unwind(AssertUnwindSafe(|| cluster.read(|_| panic!("as asked")))).is_err());
        cluster.set_now("2026-01-01T00:00:00Z");
        assert_eq!(cluster.revision(), cluster.read(|state| state.revision));
    }
}
