//! `GlobalContextEntry`: cached data that the rules of all policies read.
//!
//! Entries about resources follow a watch, entries about calls repeat them. A [`GlobalContext`] is a source of facts:
//! it answers [`Fetch::Global`] from memory and never waits. What has no data yet, or lost it to an error, is a failure
//! that names the entry and the cause.

mod load;
mod status;
#[cfg(test)]
mod tests;
mod view;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_engine::check::check_global_context;
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::policy::GlobalContextEntry;
use ephor_expr::value::decode;
use ephor_expr::{Str, Value};
use load::Entry;
use parking_lot::RwLock;

use crate::cancellation::CancellationToken;
use crate::facts::Source;
use crate::watcher::{StoreEvent, WatchTarget, Watcher};
pub use status::write_statuses;

/// The store. Clones are the same store.
#[derive(Clone)]
pub struct GlobalContext(Arc<Shared>);

struct Shared {
    cluster: Arc<dyn Cluster>,
    services: Option<Arc<dyn Source>>,
    stop: CancellationToken,
    loading: Loading,
    entries: RwLock<BTreeMap<Str, Arc<Entry>>>,
}

/// How the data of entries comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loading {
    /// It is followed, by threads.
    Followed,
    /// It is read once, on the first fetch; later changes come from the caller.
    OnDemand,
}

impl fmt::Debug for GlobalContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GlobalContext({} entries)", self.read().len())
    }
}

impl GlobalContext {
    /// Follows the entries of a cluster until `stop`. Calls of services go to `services`; without it they fail.
    pub fn follow(
        cluster: &Arc<dyn Cluster>,
        services: Option<Arc<dyn Source>>,
        stop: &CancellationToken,
    ) -> (Self, Watcher) {
        let store = Self::new(cluster, services, stop, Loading::Followed);
        let sink = store.clone();
        let watched = WatchTarget::all("kyverno.io/v2", "GlobalContextEntry");
        let watcher = Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| sink.apply(change));
        (store, watcher)
    }

    /// A store without watches: the caller adds entries, and their data are read on the first fetch.
    pub fn on_demand(cluster: &Arc<dyn Cluster>) -> Self {
        Self::new(cluster, None, &CancellationToken::new(), Loading::OnDemand)
    }

    fn new(
        cluster: &Arc<dyn Cluster>,
        services: Option<Arc<dyn Source>>,
        stop: &CancellationToken,
        loading: Loading,
    ) -> Self {
        Self(Arc::new(Shared {
            cluster: Arc::clone(cluster),
            services,
            stop: stop.clone(),
            loading,
            entries: RwLock::default(),
        }))
    }

    fn read(&self) -> parking_lot::RwLockReadGuard<'_, BTreeMap<Str, Arc<Entry>>> {
        self.0.entries.read()
    }

    /// Takes in the entries that exist, or a change of one.
    pub fn apply(&self, change: StoreEvent) {
        match change {
            StoreEvent::Reset(documents) => {
                let names: Vec<Str> = documents.iter().map(name_of).collect();
                let mut entries = self.0.entries.write();
                entries.retain(|name, _| names.contains(name));
                drop(entries);
                for document in &documents {
                    self.set(document);
                }
            }
            StoreEvent::Apply(document) => self.set(&document),
            StoreEvent::Delete(document) => {
                let mut entries = self.0.entries.write();
                entries.remove(&name_of(&document));
            }
        }
    }

    fn set(&self, document: &Value) {
        let name = name_of(document);
        let spec = document.get("spec").cloned().unwrap_or_default();
        if self.read().get(&name).is_some_and(|entry| entry.spec == spec) {
            return;
        }
        let faults: Vec<String> = check_global_context(document)
            .iter()
            .filter(|finding| finding.is_error())
            .map(Diagnostic::to_string)
            .collect();
        let entry = match decode::<GlobalContextEntry>(document) {
            Ok(decoded) if faults.is_empty() => Entry::start(&self.0, name.clone(), spec, decoded.spec),
            _ => Entry::refused(name.clone(), spec, faults.join("; ")),
        };
        self.0.entries.write().insert(name, Arc::new(entry));
    }

    /// Takes in a change of an object that entries may be about.
    pub fn tell(&self, group: &str, kind: &str, change: &StoreEvent) {
        for entry in self.read().values() {
            entry.tell(group, kind, change);
        }
    }

    /// The entry that a reference means, and the projection of it: names may hold dots themselves, so the longest name
    /// that exists counts.
    fn find<'r>(&self, reference: &'r str) -> Option<(Arc<Entry>, Option<&'r str>)> {
        let entries = self.read();
        if let Some(entry) = entries.get(reference) {
            return Some((Arc::clone(entry), None));
        }
        reference.rmatch_indices('.').find_map(|(at, _)| {
            let entry = entries.get(reference.get(..at)?)?;
            Some((Arc::clone(entry), reference.get(at + 1..)))
        })
    }
}

impl Source for GlobalContext {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        let Fetch::Global { name } = fetch else { return None };
        Some(match self.find(name) {
            None => Fact::NotFound(format!("global context entry `{name}` not found")),
            Some((entry, projection)) => match entry.loaded(&self.0).data(projection) {
                Ok(value) => Fact::Found(value),
                Err(why) => Fact::Failed(format!("global context entry `{name}`: {why}")),
            },
        })
    }

    fn secrets(&self, fetch: &Fetch) -> Option<Value> {
        let Fetch::Global { name } = fetch else { return None };
        self.find(name)?.0.secrets()
    }
}

fn name_of(document: &Value) -> Str {
    Str::new(document.str_at(&["metadata", "name"]).unwrap_or_default())
}
