//! Prometheus metrics under upstream's names.
//!
//! Label sets are closed: every value comes from a fixed list, from a stored policy, or from a bounded number of kinds
//! and existing namespaces; what is beyond the bound is counted under `_other`. What the `ConfigMap` `kyverno-metrics`
//! switches off or cuts is not even stored. A handle of every counter that requests move is kept, so that counting
//! costs a look-up and no text.

mod background;
mod counted;
mod exposure;
mod families;
mod labels;
mod observe;
mod policies;
pub mod text;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use ephor_cluster::Cluster;
use ephor_expr::{Map, Str, Value};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use crate::cancellation::CancellationToken;
use crate::facts::NamespaceLabels;
use crate::policies::{PolicyStore, Snapshot};
use crate::watcher::{StoreEvent, WatchTarget, Watcher};
pub use background::{BackgroundHealth, Backlog};
pub use counted::CountedCluster;
pub use exposure::Exposure;
use families::{About, Families, Group};

/// All metrics of a process. Clones are the same metrics.
#[derive(Clone)]
pub struct Metrics(Arc<Shared>);

struct Shared {
    families: ArcSwap<Families>,
    events_dropped: Counter,
    /// The policies of the last change, for those of the next and for `kyverno_policy_rule_info_total`.
    snapshot: Mutex<Arc<Snapshot>>,
    /// The namespaces there are, in a role that follows them.
    namespaces: OnceLock<NamespaceLabels>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(Exposure::default())
    }
}

/// A counter of controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reconciled {
    /// Something was looked at.
    Done,
    /// It has to be looked at again.
    Again {
        /// How often it failed in a row.
        failures: u32,
    },
    /// It was given up.
    Dropped,
}

impl Metrics {
    /// Metrics, told what to expose.
    pub fn new(exposure: Exposure) -> Self {
        let events_dropped = Counter::default();
        Self(Arc::new(Shared {
            families: ArcSwap::from_pointee(Families::new(exposure, events_dropped.clone())),
            events_dropped,
            snapshot: Mutex::default(),
            namespaces: OnceLock::new(),
        }))
    }

    /// Follows the `ConfigMap` about metrics until `stop`. A change of what is exposed starts all counts over.
    pub fn follow_config(
        &self,
        cluster: &Arc<dyn Cluster>,
        namespace: &str,
        name: &str,
        stop: &CancellationToken,
    ) -> Watcher {
        let metrics = self.clone();
        let watched = WatchTarget::all("v1", "ConfigMap").in_namespace(namespace).named(name);
        Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| {
            let document = match change {
                StoreEvent::Reset(documents) => documents.into_iter().next(),
                StoreEvent::Apply(document) => Some(document),
                StoreEvent::Delete(_) => None,
            };
            let none = Map::new();
            let data = document.as_ref().and_then(|document| document.get("data")).and_then(Value::as_object);
            let (exposure, problems) = Exposure::of_data(data.unwrap_or(&none));
            for problem in problems {
                tracing::warn!(problem, "the ConfigMap about metrics");
            }
            metrics.expose(exposure);
        })
    }

    fn expose(&self, exposure: Exposure) {
        if self.families().exposure != exposure {
            self.0.families.store(Arc::new(Families::new(exposure, self.0.events_dropped.clone())));
        }
    }

    /// Counts changes of policies, and knows the rules there are.
    pub fn follow_policies(&self, store: &PolicyStore) {
        let metrics = self.clone();
        store.subscribe(move |snapshot| {
            let mut last = metrics.0.snapshot.lock();
            policies::count_changes(&metrics.families(), &last, snapshot);
            *last = Arc::clone(snapshot);
            metrics.families().forget_handles();
        });
    }

    /// Tells apart no other namespaces than these: a client of the port may name any.
    pub fn know_namespaces(&self, namespaces: &NamespaceLabels) {
        let _ = self.0.namespaces.set(namespaces.clone());
    }

    /// The handles for requests about something; `about` becomes what is counted.
    ///
    /// Who reaches the port can make up kinds and namespaces. Namespaces that do not exist are one, and kinds that no
    /// policy names have a bound of their own, so that they take no place from what is real.
    fn told_apart(&self, families: &Families, about: &mut About) -> Group {
        if let Some(known) = families.known(about) {
            return known;
        }
        let missing = |namespaces: &NamespaceLabels| !namespaces.contains(&about.namespace);
        if about.namespace != labels::NO_NAMESPACE && self.0.namespaces.get().is_some_and(missing) {
            about.namespace = labels::OTHER.into();
        }
        let set = Arc::clone(&self.0.snapshot.lock().set);
        let named = set.names_kind(&about.kind, &about.namespace);
        families.add(about, named)
    }

    fn families(&self) -> arc_swap::Guard<Arc<Families>> {
        self.0.families.load()
    }

    /// The counter of dropped Events.
    pub fn events_dropped(&self) -> Counter {
        self.0.events_dropped.clone()
    }

    /// An HTTP request came in.
    pub fn http_request(&self, method: &str, path: &str, took: std::time::Duration) {
        let families = self.families();
        let method = labels::method(method);
        let url = labels::url(path);
        let labels = [("http_method", method), ("http_url", &*url)];
        families.http_requests.inc(&labels);
        families.http_duration.observe(&labels, took);
    }

    /// A controller did something.
    pub fn reconciled(&self, controller: &'static str, what: Reconciled) {
        let families = self.families();
        match what {
            Reconciled::Done => families.reconcile.inc(&[("controller_name", controller)]),
            Reconciled::Again { failures } => {
                let requeues = failures.min(20).to_string();
                families.requeue.inc(&[("controller_name", controller), ("num_requeues", &requeues)]);
            }
            Reconciled::Dropped => families.drop.inc(&[("controller_name", controller)]),
        }
    }

    /// The cluster was asked something.
    pub fn client_query(&self, operation: &'static str, kind: &str, namespace: &str) {
        let namespace = labels::namespace(namespace);
        self.families().client_queries.inc(&[
            ("operation", operation),
            ("client_type", "dynamic"),
            ("resource_kind", kind),
            ("resource_namespace", namespace),
        ]);
    }

    /// Work was asked for of something that has a bound; whether it was dropped.
    pub fn breaker(&self, circuit: &'static str, dropped: bool) {
        let families = self.families();
        families.breaker_total.inc(&[("circuit_name", circuit)]);
        if dropped {
            families.breaker_drops.inc(&[("circuit_name", circuit)]);
        }
    }

    /// How many `UpdateRequest`s there are.
    pub fn update_requests(&self, namespace: &str, count: usize) {
        self.families()
            .update_requests
            .set(&[("resource_namespace", namespace)], i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// What became of an object that a cleanup policy selects.
    pub fn cleaned_up(&self, about: &CleanedUp<'_>, what: Cleanup) {
        let families = self.families();
        let of_cel = about.policy_kind.ends_with("DeletingPolicy");
        let mut labels = vec![
            ("policy_type", about.policy_kind),
            ("policy_namespace", about.policy_namespace),
            ("policy_name", about.policy_name),
            (if of_cel { "resource" } else { "resource_kind" }, about.resource),
            ("resource_namespace", about.namespace),
        ];
        labels.extend(about.propagation.map(|propagation| ("deletion_propagation", propagation)));
        match (what, of_cel) {
            (Cleanup::Deleted, false) => families.cleanup_deleted.inc(&labels),
            (Cleanup::Failed, false) => families.cleanup_errors.inc(&labels),
            (Cleanup::Deleted, true) => families.deleting_deleted.inc(&labels),
            (Cleanup::Failed, true) => families.deleting_errors.inc(&labels),
            (Cleanup::Audited, _) => families.cleanup_audited.inc(&labels),
        }
    }

    /// The label for lifetimes counts for objects of these kinds, and no others.
    pub fn ttl_followed<'r>(&self, resources: impl Iterator<Item = &'r ephor_cluster::Resource>) {
        let families = self.families();
        families.ttl_info.clear();
        for resource in resources {
            let labels = [
                ("resource_group", &*resource.group),
                ("resource_version", &*resource.version),
                ("resource_resource", &*resource.plural),
            ];
            families.ttl_info.set(&labels, 1);
        }
    }

    /// The label for lifetimes deleted an object, or failed to.
    pub fn ttl(&self, resource: &ephor_cluster::Resource, namespace: &str, done: bool) {
        let families = self.families();
        let labels = [
            ("resource_namespace", labels::namespace(namespace)),
            ("resource_group", &*resource.group),
            ("resource_version", &*resource.version),
            ("resource_resource", &*resource.plural),
        ];
        if done { families.ttl_deleted.inc(&labels) } else { families.ttl_errors.inc(&labels) }
    }

    /// Everything, in Prometheus' text format.
    pub fn text(&self) -> String {
        let snapshot = Arc::clone(&*self.0.snapshot.lock());
        let families = self.families();
        policies::set_rules(&families, &snapshot);
        text::classic(&families.registry)
    }
}

/// An object that a cleanup policy selects, as metrics call it.
#[derive(Debug, Clone, Copy)]
pub struct CleanedUp<'c> {
    /// The kind of the policy.
    pub policy_kind: &'static str,
    /// Its namespace; empty for none.
    pub policy_namespace: &'c str,
    /// Its name.
    pub policy_name: &'c str,
    /// The object's kind, as the policy writes it.
    pub resource: &'c str,
    /// The object's namespace; empty for none.
    pub namespace: &'c str,
    /// How dependents are treated, if the policy says it.
    pub propagation: Option<&'static str>,
}

/// What became of such an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// It was deleted.
    Deleted,
    /// It could not be judged or deleted.
    Failed,
    /// The policy only tells of it.
    Audited,
}

/// A text label value, empty for none.
type Label<'l> = (&'static str, &'l str);

/// Shared text, for keys.
type Text = Str;

#[cfg(test)]
mod tests;
