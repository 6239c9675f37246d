//! What global context entries answered. No watch tells of their data, so the controller asks them again.

use std::collections::BTreeMap;

use ephor_engine::fetch::Fact;
use ephor_engine::gate::AllowedFetch;
use ephor_runtime::queue::Moment;

use super::memory::State;
use crate::queue::{Task, WorkKey};

/// Questions to entries.
#[derive(Debug, Default)]
pub(super) struct Entries(BTreeMap<AllowedFetch, Answer>);

/// What an entry said last, and the keys that heard it, each with the number of its last read.
#[derive(Debug)]
struct Answer {
    said: Fact,
    readers: BTreeMap<WorkKey, u64>,
}

impl Entries {
    /// Forgets what entries said to a key before a number.
    pub(super) fn forget(&mut self, key: &WorkKey, before: u64) {
        self.0.retain(|_, answer| {
            if answer.readers.get(key).is_some_and(|number| *number < before) {
                answer.readers.remove(key);
            }
            !answer.readers.is_empty()
        });
    }

    /// The keys that were judged by entries. A key that asked several entries comes several times.
    pub(super) fn readers(&self) -> impl Iterator<Item = &WorkKey> {
        self.0.values().flat_map(|answer| answer.readers.keys())
    }
}

impl State {
    /// Notes that a key was judged by what an entry said.
    pub fn heard_of_entry(&mut self, key: &WorkKey, fetch: &AllowedFetch, said: &Fact, now: Moment) {
        self.entry_says(fetch, said, now);
        let number = self.dependencies.next();
        let first = || Answer { said: said.clone(), readers: BTreeMap::new() };
        self.dependencies.entries.0.entry(fetch.clone()).or_insert_with(first).readers.insert(key.clone(), number);
    }

    /// Takes in what an entry says now. Keys that were judged by another answer are judged again.
    pub fn entry_says(&mut self, fetch: &AllowedFetch, says: &Fact, now: Moment) {
        let Some(Answer { said, readers }) = self.dependencies.entries.0.get_mut(fetch) else { return };
        if said != says {
            *said = says.clone();
            for key in readers.keys() {
                self.queue.add(Task::Reconcile(key.clone()), now);
            }
        }
    }

    /// What is asked of entries.
    pub fn asked_of_entries(&self) -> Vec<AllowedFetch> {
        self.dependencies.entries.0.keys().cloned().collect()
    }
}
