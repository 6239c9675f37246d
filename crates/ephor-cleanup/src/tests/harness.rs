//! The controllers on a cluster in memory, whose clock and watchers stand still until a test moves them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ephor_cluster::query::{Filter, LabelSelector};
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, ErrorKind, ListQuery, MemoryCluster, Patch, Resource, WriteOptions, object,
};
use ephor_engine::cleanup::ttl::TTL_LABEL;
use ephor_engine::matching::ResourceFilters;
use ephor_expr::{Value, yaml};
use ephor_faults::FaultyCluster;
use ephor_runtime::CancellationToken;
use ephor_runtime::events::Recorder;
use ephor_runtime::facts::ClusterFacts;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::{ExceptionScope, PolicyStore, StoredKind};
use ephor_runtime::queue::Moment;
use ephor_runtime::watcher::{StoreEvent, WatcherEvent};

use crate::controller::Controller;
use crate::env::{CleanupOptions, Env, timestamp};
use crate::policy::Kind;
use crate::ttl::controller::Lifetimes;
use crate::ttl::kinds::permitted;
use crate::{Step, writer};

/// The first moment: 2026-01-01T00:00:30Z.
pub(super) const BEGIN: Moment = 1_767_225_630_000;

/// What happens to an object just before it is deleted.
pub(super) type Race = Arc<Mutex<Option<Box<dyn FnOnce(&MemoryCluster, &str) + Send>>>>;

pub(super) struct Harness {
    pub(super) inner: MemoryCluster,
    pub(super) now: Moment,
    pub(super) options: CleanupOptions,
    pub(super) metrics: Metrics,
    pub(super) filters: String,
    /// Whether deletions are allowed.
    pub(super) allowed: Arc<AtomicBool>,
    pub(super) race: Race,
    /// Names of the objects that were deleted by the role.
    pub(super) deleted: Arc<Mutex<Vec<String>>>,
    pub(super) leads: Arc<AtomicBool>,
    controller: Controller,
    lifetimes: Lifetimes,
    store: PolicyStore,
}

impl Harness {
    pub(super) fn new() -> Self {
        Self::with(CleanupOptions::default(), "[*/*,kube-system,*]")
    }

    pub(super) fn with(options: CleanupOptions, filters: &str) -> Self {
        let inner = MemoryCluster::default();
        inner.set_now(timestamp(BEGIN).to_string());
        let unused = || -> Arc<dyn Cluster> { Arc::new(MemoryCluster::default()) };
        let fence: writer::Fence = Arc::new(|| Ok(()));
        let mut harness = Self {
            now: BEGIN,
            options,
            metrics: Metrics::default(),
            filters: filters.to_owned(),
            allowed: Arc::new(AtomicBool::new(true)),
            race: Race::default(),
            deleted: Arc::default(),
            leads: Arc::new(AtomicBool::new(true)),
            controller: Controller::new(Env {
                cluster: unused(),
                answers: Arc::new(ClusterFacts::new(unused())),
                fence: Arc::clone(&fence),
                filters: Box::new(Arc::default),
                options,
                events: Recorder::silent(),
                metrics: Metrics::default(),
                stop: CancellationToken::new(),
            }),
            lifetimes: Lifetimes::new(unused(), fence, Metrics::default()),
            store: PolicyStore::deleting(ExceptionScope::Everywhere),
            inner,
        };
        for (group, kind, plural, scope) in [
            ("kyverno.io", "CleanupPolicy", "cleanuppolicies", "Namespaced"),
            ("kyverno.io", "ClusterCleanupPolicy", "clustercleanuppolicies", "Cluster"),
            ("policies.kyverno.io", "DeletingPolicy", "deletingpolicies", "Cluster"),
            ("policies.kyverno.io", "NamespacedDeletingPolicy", "namespaceddeletingpolicies", "Namespaced"),
            ("policies.kyverno.io", "PolicyException", "policyexceptions", "Namespaced"),
        ] {
            let version = if group == "kyverno.io" { "v2" } else { "v1beta1" };
            harness.create(&format!(
                "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, \
                 metadata: {{name: {plural}.{group}}}, spec: {{group: {group}, scope: {scope}, \
                 names: {{kind: {kind}, plural: {plural}, singular: {}}}, versions: [{{name: {version}, served: true, \
                 storage: true, subresources: {{status: {{}}}}, \
                 schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}]}}}}",
                kind.to_lowercase()
            ));
        }
        for namespace in ["a", "b"] {
            harness.create(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}"));
        }
        harness.restart();
        harness
    }

    /// The process dies and another one takes over.
    pub(super) fn restart(&mut self) {
        let (allowed, race, deleted) = (Arc::clone(&self.allowed), Arc::clone(&self.race), Arc::clone(&self.deleted));
        let inner = self.inner.clone();
        let log = Arc::clone(&deleted);
        let view = FaultyCluster::new(Arc::new(self.inner.clone()))
            .before_writes(move |write| {
                if write.verb != "delete" {
                    return None;
                }
                assert!(write.bound, "a deletion without UID and version");
                if let Some(race) = race.lock().unwrap().take() {
                    race(&inner, &write.name);
                }
                (!allowed.load(Ordering::SeqCst))
                    .then(|| ClusterError::denied(403, "Forbidden", "you may not delete it"))
            })
            .after_writes(move |write| {
                if write.verb == "delete" {
                    log.lock().unwrap().push(write.name.clone());
                }
                None
            });
        let cluster: Arc<dyn Cluster> = Arc::new(view);
        let leads = Arc::clone(&self.leads);
        let fence: writer::Fence =
            Arc::new(move || if leads.load(Ordering::SeqCst) { Ok(()) } else { Err(ephor_runtime::lease::LostLease) });
        let filters = Arc::new(ResourceFilters::parse(&self.filters).unwrap());
        self.controller = Controller::new(Env {
            cluster: Arc::clone(&cluster),
            answers: Arc::new(ClusterFacts::new(Arc::clone(&cluster))),
            fence: Arc::clone(&fence),
            filters: Box::new(move || Arc::clone(&filters)),
            options: self.options,
            events: Recorder::silent(),
            metrics: self.metrics.clone(),
            stop: CancellationToken::new(),
        });
        self.lifetimes = Lifetimes::new(Arc::clone(&cluster), fence, self.metrics.clone());
        self.store = PolicyStore::deleting(ExceptionScope::Everywhere);
        self.observe();
    }

    /// Everything that happened so far arrives.
    pub(super) fn observe(&mut self) {
        for kind in Kind::CLEANUP {
            let policies = self.list(kind.api_version(), kind.as_str(), &Filter::default());
            self.controller.observe_cleanup(kind, StoreEvent::Reset(policies), self.now);
        }
        for (version, kind) in StoredKind::deleting() {
            let objects = self.list(version, kind.as_str(), &Filter::default());
            self.store.apply(kind, StoreEvent::Reset(objects));
        }
        self.controller.observe_snapshot(&self.store.snapshot(), self.now);
        let discovery = self.inner.discovery().unwrap();
        let kinds = permitted(&self.inner, &discovery).unwrap();
        self.lifetimes.follow(&kinds);
        let labelled = Filter { labels: LabelSelector::has(TTL_LABEL), ..Filter::default() };
        for (kind, resource) in kinds {
            let objects = self.list(&resource.api_version(), &resource.kind, &labelled);
            for event in [WatcherEvent::Init, WatcherEvent::InitPage(objects), WatcherEvent::InitDone] {
                self.lifetimes.observe(&kind, event);
            }
        }
    }

    /// Time passes, and everything that is due by then is done.
    pub(super) fn pass(&mut self, seconds: u64) {
        self.to(self.now + seconds * 1000);
    }

    /// The clock shows another time.
    pub(super) fn to(&mut self, now: Moment) {
        self.now = now;
        self.inner.set_now(timestamp(now).to_string());
        self.settle();
    }

    /// Does what is due, until nothing is.
    pub(super) fn settle(&mut self) {
        for _ in 0..10_000 {
            let steps = [self.controller.step(self.now), self.lifetimes.step(self.now)];
            if steps.iter().all(|step| matches!(step, Step::Idle(_))) {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    pub(super) fn take_deleted(&self) -> Vec<String> {
        std::mem::take(&mut *self.deleted.lock().unwrap())
    }

    pub(super) fn resource(&self, api_version: &str, kind: &str) -> Resource {
        self.inner.resolve(api_version, kind).unwrap()
    }

    fn list(&self, api_version: &str, kind: &str, filter: &Filter) -> Vec<Value> {
        let query = ListQuery { filter: filter.clone(), ..ListQuery::default() };
        self.inner.list(&self.resource(api_version, kind), &query).unwrap().items
    }

    pub(super) fn create(&self, text: &str) -> Value {
        create(&self.inner, text)
    }

    pub(super) fn patch(&self, (api_version, kind): (&str, &str), (namespace, name): (&str, &str), text: &str) {
        let resource = self.resource(api_version, kind);
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let patch = Patch::merge(yaml::parse_value(text).unwrap());
        self.inner.patch(&resource, namespace, name, &patch, &WriteOptions::default()).unwrap();
    }

    pub(super) fn get(&self, (api_version, kind): (&str, &str), (namespace, name): (&str, &str)) -> Option<Value> {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        match self.inner.get(&self.resource(api_version, kind), namespace, name) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates a ConfigMap with labels and annotations.
    pub(super) fn config_map(&self, namespace: &str, name: &str, metadata: &str) -> Value {
        self.create(&config_map(namespace, name, metadata))
    }

    pub(super) fn has(&self, namespace: &str, name: &str) -> bool {
        self.get(("v1", "ConfigMap"), (namespace, name)).is_some()
    }
}

pub(super) fn config_map(namespace: &str, name: &str, metadata: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}, {metadata}}}}}")
}

pub(super) fn create(cluster: &MemoryCluster, text: &str) -> Value {
    let object = yaml::parse_value(text).unwrap();
    let resource = cluster.resolve(object.str_at(&["apiVersion"]).unwrap(), object.str_at(&["kind"]).unwrap()).unwrap();
    cluster.create(&resource, object, &WriteOptions::default()).unwrap()
}

/// Deletes a ConfigMap, as somebody else would.
pub(super) fn remove(cluster: &MemoryCluster, namespace: &str, name: &str) {
    let resource = cluster.resolve("v1", "ConfigMap").unwrap();
    cluster.delete(&resource, Some(namespace), name, &DeleteOptions::default()).unwrap();
}

/// The UID of an object.
pub(super) fn uid(object: &Value) -> String {
    object::text(object, "uid").to_owned()
}
