//! A watch of served reports.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::query::Filter;
use ephor_cluster::{ClusterError, Watch, WatchEvent, object};
use ephor_expr::Value;

use super::store::{Change, Report};
use super::{Kind, Shared, too_old};

/// A reader of changes. It holds no changes itself: one that reads too slowly is told that what it missed is forgotten.
pub(super) struct ReportWatch {
    pub(super) shared: Arc<Shared>,
    pub(super) kind: Kind,
    pub(super) filter: Filter,
    pub(super) metadata_only: bool,
    pub(super) bookmarks: bool,
    /// Reports that are told of as added first.
    pub(super) first: VecDeque<Arc<Report>>,
    /// All changes up to this revision are told.
    pub(super) revision: u64,
    /// Counts the watches that there are.
    pub(super) slot: Arc<()>,
}

impl std::fmt::Debug for ReportWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReportWatch({:?} from {}, one of {})", self.kind, self.revision, Arc::strong_count(&self.slot) - 1)
    }
}

impl ReportWatch {
    fn shown(&self, document: Value) -> Value {
        if self.metadata_only { object::metadata_of(&document) } else { document }
    }

    fn event(&self, change: &Change) -> Option<WatchEvent> {
        let selected = |report: &Option<Arc<Report>>| {
            report.as_ref().filter(|report| report.is_selected(self.kind, &self.filter)).cloned()
        };
        match (selected(&change.before), selected(&change.after)) {
            (None, None) => None,
            (None, Some(after)) => Some(WatchEvent::Added(self.shown(after.document(self.kind)))),
            (Some(_), Some(after)) => Some(WatchEvent::Modified(self.shown(after.document(self.kind)))),
            (Some(before), None) => Some(WatchEvent::Deleted(self.shown(change.removed(&before, self.kind)))),
        }
    }
}

impl Watch for ReportWatch {
    fn next(&mut self, wait: Duration) -> Result<Option<WatchEvent>, ClusterError> {
        if let Some(report) = self.first.pop_front() {
            return Ok(Some(WatchEvent::Added(self.shown(report.document(self.kind)))));
        }
        let until = Instant::now() + wait;
        let shared = Arc::clone(&self.shared);
        let mut store = shared.store.lock();
        loop {
            let told = store
                .since(self.revision)
                .ok_or_else(|| too_old(self.revision))?
                .find_map(|change| self.event(change).map(|event| (change.revision, event)));
            if let Some((revision, event)) = told {
                self.revision = revision;
                return Ok(Some(event));
            }
            let moved = self.revision != store.revision;
            self.revision = store.revision;
            if moved && self.bookmarks {
                return Ok(Some(WatchEvent::Bookmark(self.revision.to_string().into())));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            shared.changed.wait_for(&mut store, left);
        }
    }
}
