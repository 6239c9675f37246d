//! Deletes objects whose time has come, one a step.

use std::collections::BTreeMap;
use std::sync::Arc;

use ephor_cluster::{Cluster, Resource};
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::poison::PoisonMutex;
use ephor_runtime::queue::Moment;
use ephor_runtime::watcher::WatcherEvent;

use super::state::{Due, Settled, State};
use crate::Step;
use crate::writer::{Deleted, Fence, Writer};

/// The controller. Clones share everything.
#[derive(Debug, Clone)]
pub struct Lifetimes(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    writer: Writer,
    metrics: Metrics,
    state: PoisonMutex<State>,
}

impl Lifetimes {
    /// A controller that knows no object yet.
    pub fn new(cluster: Arc<dyn Cluster>, fence: Fence, metrics: Metrics) -> Self {
        let writer = Writer::new(cluster, fence);
        Self(Arc::new(Shared { writer, metrics, state: PoisonMutex::default() }))
    }

    /// Follows these kinds and no others. Gives those that are new.
    pub fn follow(&self, kinds: &BTreeMap<GroupKind, Resource>) -> Vec<GroupKind> {
        let mut state = self.0.state.lock();
        let known: BTreeMap<GroupKind, Resource> =
            state.kinds().map(|(kind, resource)| (kind.clone(), resource.clone())).collect();
        for kind in known.keys().filter(|kind| !kinds.contains_key(*kind)) {
            state.remove_kind(kind);
        }
        let new = kinds.iter().filter(|(kind, resource)| {
            known.get(*kind).is_none_or(|known| known.version != resource.version || known.plural != resource.plural)
        });
        let mut added = Vec::new();
        for (kind, resource) in new {
            state.add_kind(kind.clone(), resource.clone());
            added.push(kind.clone());
        }
        drop(state);
        self.0.metrics.ttl_followed(kinds.values());
        added
    }

    /// Takes in what a watcher of a kind reports.
    pub fn observe(&self, kind: &GroupKind, event: WatcherEvent) {
        self.0.state.lock().observe(kind, event);
    }

    /// How many objects wait for their time.
    pub fn len(&self) -> usize {
        self.0.state.lock().len()
    }

    /// Whether no object waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Deletes one object that is due.
    pub fn step(&self, now: Moment) -> Step {
        let due = {
            let mut state = self.0.state.lock();
            match state.take(now) {
                Some(due) => due,
                None => return Step::Idle(state.next_due()),
            }
        };
        let settled = self.0.state.contain(|| self.delete(&due)).unwrap_or(Settled::Failed);
        self.0.state.lock().settle(&due.target, settled, now);
        Step::Worked
    }

    fn delete(&self, due: &Due) -> Settled {
        let Due { resource, target, propagation } = due;
        let told = (resource.qualified_plural(), &target.namespace, &target.name);
        match self.0.writer.delete(None, resource, target, *propagation) {
            Ok(Deleted::Done) => {
                tracing::info!(kind = %told.0, namespace = %told.1, name = %told.2, "an object's time had come");
                self.0.metrics.ttl(resource, &target.namespace, true);
                Settled::Gone
            }
            Ok(Deleted::Gone) => Settled::Gone,
            Ok(Deleted::Changed) => Settled::Changed,
            Ok(Deleted::Refused(error)) => {
                tracing::warn!(kind = %told.0, namespace = %told.1, name = %told.2, %error,
                    "an object's time has come, and it cannot be deleted");
                self.0.metrics.ttl(resource, &target.namespace, false);
                Settled::Failed
            }
            // Whoever leads now deletes it.
            Err(_) => Settled::Failed,
        }
    }
}
