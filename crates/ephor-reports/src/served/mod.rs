//! Reports that are served instead of stored: a [`Cluster`] that has only reports, in memory, and only lets them be
//! read.
//!
//! Results go in by [`ServedReports::set`]; out come the documents that an API server would answer. The same reports
//! are there in every [`Dialect`] that is served. A report is built when it is asked for.
//!
//! Each replica computes its own reports, so each has its own resource versions. A version of another replica is
//! answered as one that is too old, and the client lists again.

mod results;
mod store;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;

use ephor_cluster::raw::{self, Method, RawRequest};
use ephor_cluster::resource::Origin;
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, Discovery, List, ListQuery, Patch, Resource, Watch, WatchQuery,
    WriteOptions,
};
use ephor_expr::Value;
use jiff::Timestamp;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::report::{Dialect, Scope};
use store::{Key, Store};
use watch::ReportWatch;

/// The bounds of what is kept for readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many changes are remembered for watches and pages of lists.
    pub history: usize,
    /// How many watches there may be at once.
    pub watches: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { history: 10_000, watches: 1_000 }
    }
}

/// Which of the four kinds of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    dialect: Dialect,
    namespaced: bool,
}

#[derive(Debug)]
struct Shared {
    store: Mutex<Store>,
    changed: Condvar,
    /// Each watch holds one more of it.
    slots: Arc<()>,
    watches: usize,
    discovery: Arc<Discovery>,
}

/// Reports in memory, as a cluster that can be read. Clones are the same reports.
#[derive(Debug, Clone)]
pub struct ServedReports {
    shared: Arc<Shared>,
}

impl ServedReports {
    /// No reports yet. `now` tells the versions of this process from those of others.
    pub fn new(dialects: &[Dialect], limits: Limits, now: Timestamp) -> Self {
        let mut discovery = Discovery::default();
        for (dialect, namespaced) in dialects.iter().flat_map(|dialect| [(dialect, false), (dialect, true)]) {
            if let Some(known) = Discovery::kubernetes().find(dialect.api_version(), dialect.kind(namespaced)) {
                discovery.add(Resource { origin: Origin::Aggregated, subresources: Arc::default(), ..known.clone() });
            }
        }
        let start = u64::try_from(now.as_millisecond()).unwrap_or_default() << REVISIONS_PER_MILLISECOND;
        let shared = Shared {
            store: Mutex::new(Store::new(start, limits.history)),
            changed: Condvar::new(),
            slots: Arc::default(),
            watches: limits.watches,
            discovery: Arc::new(discovery),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Makes the report about `scope` show `results`, rendered and in order; without results there is no report.
    /// Returns whether anything changed.
    pub fn set(&self, scope: &Scope, results: Vec<Value>, now: Timestamp) -> bool {
        let changed = self.store().set(scope, results, now);
        if changed {
            self.shared.changed.notify_all();
        }
        changed
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.shared.store.lock()
    }

    fn kind(&self, resource: &Resource) -> Result<Kind, ClusterError> {
        let served = self.shared.discovery.find(&resource.api_version(), &resource.kind);
        let dialects = [Dialect::WgPolicy, Dialect::OpenReports].into_iter();
        let found = served.and_then(|served| {
            let dialect =
                dialects.into_iter().find(|dialect| dialect.api_version() == served.api_version().as_str())?;
            Some(Kind { dialect, namespaced: served.namespaced })
        });
        found.ok_or_else(ClusterError::no_such_path)
    }
}

/// How many bits of a revision count changes. A process that changes fewer than a million reports in each millisecond
/// gives no version that one started later gives too.
const REVISIONS_PER_MILLISECOND: u32 = 20;

fn too_old(revision: u64) -> ClusterError {
    ClusterError::expired(format!("too old resource version: {revision}"))
}

fn refused<T>(resource: &Resource, verb: &str) -> Result<T, ClusterError> {
    Err(ClusterError::method_not_supported(resource, verb))
}

impl Cluster for ServedReports {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        Ok(Arc::clone(&self.shared.discovery))
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        let found = self.shared.discovery.find(api_version, kind).cloned();
        found.ok_or_else(|| ClusterError::no_such_kind(api_version, kind))
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        let kind = self.kind(resource)?;
        let namespace = namespace.unwrap_or_default();
        let key = Key { namespace: namespace.into(), name: name.into() };
        let found = if namespace.is_empty() == kind.namespaced { None } else { self.store().get(&key) };
        found.map(|report| report.document(kind)).ok_or_else(|| ClusterError::not_found(resource, name))
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        let kind = self.kind(resource)?;
        self.store().list(kind, query)
    }

    fn create(&self, resource: &Resource, _: Value, _: &WriteOptions) -> Result<Value, ClusterError> {
        refused(resource, "create")
    }

    fn update(&self, resource: &Resource, _: Value, _: &WriteOptions) -> Result<Value, ClusterError> {
        refused(resource, "update")
    }

    fn patch(
        &self,
        resource: &Resource,
        _: Option<&str>,
        _: &str,
        _: &Patch,
        _: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        refused(resource, "patch")
    }

    fn delete(
        &self,
        resource: &Resource,
        _: Option<&str>,
        _: &str,
        _: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        refused(resource, "delete")
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        let kind = self.kind(resource)?;
        let store = self.store();
        // The lock is held, so that no two watches take the last place.
        if Arc::strong_count(&self.shared.slots) > self.shared.watches {
            return Err(ClusterError::denied(429, "TooManyRequests", "too many watches"));
        }
        let (first, revision) = match query.resource_version.as_str() {
            "" | "0" => (store.selected(kind, &query.filter), store.revision),
            given => {
                let revision: u64 = given
                    .parse()
                    .map_err(|_| ClusterError::bad_request(format!("invalid resource version {given:?}")))?;
                if store.since(revision).is_none() {
                    return Err(too_old(revision));
                }
                (VecDeque::new(), revision)
            }
        };
        Ok(Box::new(ReportWatch {
            shared: Arc::clone(&self.shared),
            kind,
            filter: query.filter.clone(),
            metadata_only: query.metadata_only,
            bookmarks: query.bookmarks,
            first,
            revision,
            slot: Arc::clone(&self.shared.slots),
        }))
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        let verb = match request.method {
            Method::Get => return raw::answer(self, request),
            Method::Post => "create",
            Method::Put => "update",
            Method::Patch(_) => "patch",
            Method::Delete => "delete",
        };
        // Before the body is looked at: there is none that would be taken.
        let path = request.path.split('?').next().unwrap_or_default();
        match raw::target(&self.shared.discovery, path) {
            Some(target) => refused(&target.resource, verb),
            None => raw::answer(self, request),
        }
    }
}
