//! Watches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_expr::{Str, Value};
use parking_lot::{Condvar, Mutex};

use super::caller::Ownership;
use super::cluster::Shared;
use super::history::Record;
use super::list::{selected, selects};
use super::state::{State, TableId, shown, table_id};
use crate::cluster::{Watch, WatchEvent};
use crate::error::ClusterError;
use crate::object;
use crate::query::{Filter, WatchQuery};
use crate::resource::Resource;

/// The latest revision. Watches wait here until it grows.
#[derive(Default)]
pub(super) struct RevisionNotify {
    revision: Mutex<u64>,
    advanced: Condvar,
}

impl RevisionNotify {
    pub(super) fn advance(&self, revision: u64) {
        let mut latest = self.revision.lock();
        if *latest < revision {
            *latest = revision;
            self.advanced.notify_all();
        }
    }

    /// Waits until something changed after `seen`, at most for `wait`.
    pub(super) fn wait(&self, seen: u64, wait: Duration) {
        self.advanced.wait_while_for(&mut self.revision.lock(), |latest| *latest <= seen, wait);
    }
}

/// A place in the history. It holds no events of its own beyond the first ones, so a watch that is not read costs
/// nothing, and one that falls behind the history is told so.
pub(super) struct MemoryWatch {
    shared: Arc<Shared>,
    resource: Resource,
    table: TableId,
    filter: Filter,
    bookmarks: bool,
    metadata_only: bool,
    ownership: Ownership,
    /// Present objects that are still to be reported.
    present: VecDeque<Value>,
    /// All changes up to this one have been looked at.
    seen: u64,
    /// The latest revision that the reader knows of.
    told: u64,
}

impl MemoryWatch {
    pub(super) fn start(
        shared: Arc<Shared>,
        state: &State,
        resource: &Resource,
        query: &WatchQuery,
        ownership: Ownership,
    ) -> Result<Self, ClusterError> {
        state.check_served(resource)?;
        if !resource.stored {
            return Err(ClusterError::method_not_allowed());
        }
        let table = table_id(resource);
        let mut present = VecDeque::new();
        let seen = match query.resource_version.as_str() {
            "" | "0" => {
                if let Some(table) = state.tables.get(&table) {
                    present.extend(
                        selected(resource, &table.objects, &query.filter, None).map(|(_, o)| shown(o, resource)),
                    );
                }
                state.revision
            }
            text => text
                .parse()
                .map_err(|_| ClusterError::bad_request(format!("resourceVersion: Invalid value: {text:?}")))?,
        };
        if seen > state.revision {
            let message = format!("Too large resource version: {seen}, current: {}", state.revision);
            return Err(ClusterError::timeout(&message));
        }
        if state.history.since(seen).is_none() {
            return Err(too_old(seen, state));
        }
        let &WatchQuery { ref filter, bookmarks, metadata_only, .. } = query;
        Ok(Self {
            shared,
            resource: resource.clone(),
            table,
            filter: filter.clone(),
            bookmarks,
            metadata_only,
            ownership,
            present,
            seen,
            told: seen,
        })
    }

    /// The next event, if there is one already.
    fn poll(&mut self) -> Result<Option<WatchEvent>, ClusterError> {
        if let Some(object) = self.present.pop_front() {
            return Ok(Some(WatchEvent::Added(self.told_of(object))));
        }
        let shared = self.shared.clone();
        let state = shared.read();
        for record in state.history.since(self.seen).ok_or_else(|| too_old(self.seen, &state))? {
            self.seen = record.revision;
            if let Some(event) = self.event(record) {
                self.told = record.revision;
                return Ok(Some(event));
            }
        }
        self.seen = state.revision;
        if self.bookmarks && self.told < self.seen {
            self.told = self.seen;
            return Ok(Some(WatchEvent::Bookmark(self.seen.to_string().into())));
        }
        Ok(None)
    }

    /// As much of an object as was asked for.
    fn told_of(&self, object: Value) -> Value {
        let object = self.ownership.show(object);
        if self.metadata_only { object::metadata_of(&object) } else { object }
    }

    /// The event that a change is for a watch with selectors.
    fn event(&self, record: &Record) -> Option<WatchEvent> {
        if record.table != self.table || self.filter.namespace().is_some_and(|n| record.key.namespace != n) {
            return None;
        }
        let selects = |object: &&Value| selects(&self.filter, &self.resource, object);
        let show = |object: &Value| self.told_of(shown(object, &self.resource));
        match (record.before.as_ref().filter(selects), record.after.as_ref().filter(selects)) {
            (None, None) => None,
            (None, Some(after)) => Some(WatchEvent::Added(show(after))),
            (Some(_), Some(after)) => Some(WatchEvent::Modified(show(after))),
            (Some(before), None) => {
                let mut last = show(before);
                object::set(&mut last, "resourceVersion", Str::from(record.revision.to_string()));
                Some(WatchEvent::Deleted(last))
            }
        }
    }
}

impl Watch for MemoryWatch {
    fn next(&mut self, wait: Duration) -> Result<Option<WatchEvent>, ClusterError> {
        let started = Instant::now();
        loop {
            if let Some(event) = self.poll()? {
                return Ok(Some(event));
            }
            let left = wait.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            self.shared.revisions.wait(self.seen, left);
        }
    }
}

fn too_old(seen: u64, state: &State) -> ClusterError {
    ClusterError::expired(format!("too old resource version: {seen} ({})", state.history.oldest()))
}
