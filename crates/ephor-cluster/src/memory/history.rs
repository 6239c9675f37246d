//! What happened lately.

use std::collections::VecDeque;

use ephor_expr::Value;

use super::state::{Key, TableId};

/// One change of one object.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) revision: u64,
    pub(super) table: TableId,
    pub(super) key: Key,
    /// The object before; `None` if it was created.
    pub(super) before: Option<Value>,
    /// The object after; `None` if it was removed.
    pub(super) after: Option<Value>,
}

/// The latest changes, oldest first.
#[derive(Debug)]
pub(super) struct History {
    records: VecDeque<Record>,
    limit: usize,
    /// The revision of the latest change that is forgotten.
    forgotten: u64,
}

impl History {
    pub(super) fn new(limit: usize) -> Self {
        Self { records: VecDeque::new(), limit, forgotten: 0 }
    }

    pub(super) fn push(&mut self, record: Record) {
        self.records.push_back(record);
        while self.records.len() > self.limit
            && let Some(oldest) = self.records.pop_front()
        {
            self.forgotten = oldest.revision;
        }
    }

    /// The changes after `revision`, oldest first; `None` if some of them are forgotten.
    pub(super) fn since(&self, revision: u64) -> Option<impl DoubleEndedIterator<Item = &Record>> {
        if revision < self.forgotten {
            return None;
        }
        let first = self.records.partition_point(|r| r.revision <= revision);
        Some(self.records.range(first..))
    }

    /// The oldest revision that [`History::since`] can answer for.
    pub(super) fn oldest(&self) -> u64 {
        self.forgotten
    }
}
