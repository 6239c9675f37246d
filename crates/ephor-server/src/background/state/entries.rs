//! What global context entries said to those who asked. No watch tells of their data, so they are asked again.

use std::collections::{BTreeMap, BTreeSet};

use ephor_engine::fetch::Fact;
use ephor_engine::gate::AllowedFetch;

use super::memory::State;
use crate::background::queue::{Moment, Task, WorkKey};

/// Questions to entries, each with the last answer and with who asked.
pub(super) type Entries = BTreeMap<AllowedFetch, (Fact, BTreeSet<WorkKey>)>;

impl State {
    /// Notes that a key was judged by what an entry said.
    pub fn heard_of_entry(&mut self, key: &WorkKey, fetch: &AllowedFetch, said: &Fact, now: Moment) {
        self.entry_says(fetch, said, now);
        self.entries.entry(fetch.clone()).or_insert_with(|| (said.clone(), BTreeSet::new())).1.insert(key.clone());
    }

    /// Takes in what an entry says now: whoever was judged by something else is judged anew.
    pub fn entry_says(&mut self, fetch: &AllowedFetch, says: &Fact, now: Moment) {
        let Some((said, keys)) = self.entries.get_mut(fetch) else { return };
        if said != says {
            *said = says.clone();
            for key in keys.iter() {
                self.queue.add(Task::Reconcile(key.clone()), now);
            }
        }
    }

    /// What is asked of entries.
    pub fn asked_of_entries(&self) -> Vec<AllowedFetch> {
        self.entries.keys().cloned().collect()
    }

    pub(super) fn forget_entries(&mut self, key: &WorkKey) {
        self.entries.retain(|_, (_, keys)| {
            keys.remove(key);
            !keys.is_empty()
        });
    }
}
