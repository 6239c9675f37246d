//! A cluster in memory with admission before it, the controller, and the watches between them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ephor_cluster::admission::User;
use ephor_cluster::memory::Options;
use ephor_cluster::{Cluster, DeleteOptions, ListQuery, MemoryCluster, Watch, WatchEvent, WatchQuery, WriteOptions};
use ephor_engine::policy::ProgramKind;
use ephor_expr::{Str, Value, yaml};
use ephor_runtime::facts::{Answers, ClusterFacts};
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::{ExceptionScope, PolicyStore, Snapshot, StoredKind};
use ephor_runtime::update_request::LABEL_GIVEN_UP;
use ephor_runtime::watcher::StoreEvent;

use super::admission_stub::AdmissionStub;
use super::entries::Entries;
use crate::plan::{Claim, ObjectId};
use crate::writer::{Env, Fence, Note};
use crate::{Controller, Step};

pub(super) struct Harness {
    pub(super) cluster: MemoryCluster,
    pub(super) controller: Controller,
    pub(super) now: u64,
    pub(super) notes: Arc<Mutex<Vec<Note>>>,
    pub(super) metrics: Metrics,
    /// What global context entries say.
    pub(super) entries: Entries,
    fence: Fence,
    store: PolicyStore,
    watches: BTreeMap<Str, Pump>,
    /// Admission.
    pub(super) admission: AdmissionStub,
    /// The cluster as the controller sees it.
    seen: Arc<dyn Cluster>,
    /// What may happen to watch events of objects, and of what the controller works by.
    pub(super) chaos: Option<Chaos>,
    pub(super) chaos_of_records: Option<Chaos>,
    held: Vec<(Str, GroupKind, bool, StoreEvent)>,
}

/// A source of numbers that look random.
#[derive(Debug, Clone)]
pub(super) struct Chaos(pub(super) u64);

impl Chaos {
    pub(super) fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next(n) == 0
    }
}

/// What the controller works by: policies, exceptions and requests.
const POLICIES: [(StoredKind, &str); 5] = [
    (StoredKind::CLUSTER_POLICY, "kyverno.io/v1"),
    (StoredKind::POLICY, "kyverno.io/v1"),
    (StoredKind::Policy(ProgramKind::GeneratingPolicy), "policies.kyverno.io/v1beta1"),
    (StoredKind::Policy(ProgramKind::NamespacedGeneratingPolicy), "policies.kyverno.io/v1beta1"),
    (StoredKind::Exception, "kyverno.io/v2"),
];
const REQUESTS: &str = "UpdateRequest";

/// A watch and whom it tells.
struct Pump {
    watch: Box<dyn Watch>,
    kind: GroupKind,
    wide: bool,
}

/// `2026-01-01T00:00:00Z`.
const START: u64 = 1_767_225_600_000;

/// A cluster as the background role's account sees it.
pub(super) fn as_controller(cluster: &MemoryCluster) -> MemoryCluster {
    cluster.acting_as(User::service_account("kyverno", "kyverno-background-controller"))
}

pub(super) fn documents(text: &str) -> Vec<Value> {
    yaml::parse_values(text, &yaml::Limits::default()).unwrap()
}

pub(super) fn document(text: &str) -> Value {
    yaml::parse_value(text).unwrap()
}

impl Harness {
    pub(super) fn new() -> Self {
        let cluster = MemoryCluster::new(Options::default());
        let seen = Arc::new(as_controller(&cluster));
        Self::over(cluster, seen)
    }

    /// Over a cluster that the controller sees in another way than the test does.
    pub(super) fn over(cluster: MemoryCluster, seen: Arc<dyn Cluster>) -> Self {
        Self::fenced(cluster, seen, Arc::new(|| Ok(())))
    }

    /// The same, with something to ask before each write.
    pub(super) fn fenced(cluster: MemoryCluster, seen: Arc<dyn Cluster>, fence: Fence) -> Self {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let metrics = Metrics::default();
        let admission = AdmissionStub::before(&cluster);
        let entries = Entries::default();
        let answers = Self::answers(&seen, &admission, &entries);
        let mut harness = Self {
            controller: Self::controller(&seen, &notes, &metrics, answers, &fence),
            entries,
            now: START,
            notes,
            metrics,
            fence,
            store: PolicyStore::new(ExceptionScope::Everywhere),
            watches: BTreeMap::new(),
            admission,
            cluster,
            seen,
            chaos: None,
            chaos_of_records: None,
            held: Vec::new(),
        };
        harness.tick(0);
        harness.cluster_create(&document("{apiVersion: v1, kind: Namespace, metadata: {name: kyverno}}"));
        harness.start();
        harness
    }

    fn answers(seen: &Arc<dyn Cluster>, admission: &AdmissionStub, entries: &Entries) -> Arc<dyn Answers> {
        let facts = ClusterFacts::new(Arc::clone(seen)).within(admission.config().clone());
        Arc::new(facts.with(Arc::new(entries.clone())))
    }

    fn controller(
        seen: &Arc<dyn Cluster>,
        notes: &Arc<Mutex<Vec<Note>>>,
        metrics: &Metrics,
        answers: Arc<dyn Answers>,
        fence: &Fence,
    ) -> Controller {
        let notes = Arc::clone(notes);
        let controller = Controller::new(Env::new(
            Arc::clone(seen),
            Arc::clone(fence),
            answers,
            "kyverno".into(),
            Arc::new(move |note| notes.lock().unwrap().push(note.clone())),
            metrics.clone(),
        ));
        // The view may be one whose calls fail at times.
        let discovery = (0..100).find_map(|_| seen.discovery().ok()).unwrap();
        controller.observe_discovery(discovery, START);
        controller.sweep(START);
        controller
    }

    /// The controller is killed and comes back knowing nothing, seeing the cluster in its own way.
    pub(super) fn restart_over(&mut self, seen: Arc<dyn Cluster>) {
        self.seen = seen;
        self.restart();
    }

    /// All watchers start over, and tell again what there is.
    pub(super) fn relist(&mut self) {
        self.held.clear();
        self.watches.clear();
        self.start();
    }

    /// The controller is killed and comes back knowing nothing.
    pub(super) fn restart(&mut self) {
        self.held.clear();
        self.watches.clear();
        let answers = Self::answers(&self.seen, &self.admission, &self.entries);
        self.controller = Self::controller(&self.seen, &self.notes, &self.metrics, answers, &self.fence);
        self.store = PolicyStore::new(ExceptionScope::Everywhere);
        self.start();
    }

    /// The controller is killed; nobody is there until [`Harness::restart`].
    pub(super) fn stop(&mut self) {
        self.watches.clear();
        let answers = Self::answers(&self.seen, &self.admission, &self.entries);
        self.controller = Self::controller(&self.seen, &self.notes, &self.metrics, answers, &self.fence);
        self.store = PolicyStore::new(ExceptionScope::Everywhere);
    }

    pub(super) fn start(&mut self) {
        for (kind, version) in POLICIES {
            let change = StoreEvent::Reset(self.list(version, kind.as_str()));
            self.store.apply(kind, change);
            self.watch(kind.as_str(), version, kind.as_str(), false);
        }
        self.controller.observe_filters(&self.admission.config().get().resource_filters, self.now);
        self.controller.observe_policies(self.store.snapshot(), self.now);
        let change = StoreEvent::Reset(self.list("kyverno.io/v2", REQUESTS));
        self.controller.observe_requests(change, self.now);
        self.watch(REQUESTS, "kyverno.io/v2", REQUESTS, false);
    }

    fn watch(&mut self, name: &str, api_version: &str, kind: &str, wide: bool) {
        let resource = self.cluster.resolve(api_version, kind).unwrap();
        let version = self.cluster.list(&resource, &ListQuery::all()).unwrap().resource_version;
        let query = WatchQuery { resource_version: version, ..WatchQuery::default() };
        let watch = self.cluster.watch(&resource, &query).unwrap();
        self.watches.insert(name.into(), Pump { watch, kind: GroupKind::new(api_version, kind), wide });
    }

    pub(super) fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let resource = self.cluster.resolve(api_version, kind).unwrap();
        self.cluster.list(&resource, &ListQuery::all()).unwrap().items
    }

    /// Lets time pass, in milliseconds.
    pub(super) fn tick(&mut self, millis: u64) {
        self.now += millis;
        let time = jiff::Timestamp::from_millisecond(i64::try_from(self.now).unwrap()).unwrap();
        self.cluster.set_now(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }

    /// Brings what happened to the controller; whether anything did.
    pub(super) fn pump(&mut self) -> bool {
        self.controller.ask_entries(self.now);
        let mut any = self.follow_new_kinds();
        let names: Vec<Str> = self.watches.keys().cloned().collect();
        for name in names {
            // Watches of different kinds lag behind each other.
            let chaos = if &*name == "PolicyException" { &mut self.chaos_of_records } else { &mut self.chaos };
            if chaos.as_mut().is_some_and(|chaos| chaos.one_in(4)) {
                continue;
            }
            while let Some(pump) = self.watches.get_mut(&name) {
                let Ok(Some(event)) = pump.watch.next(Duration::ZERO) else { break };
                let (kind, wide) = (pump.kind.clone(), pump.wide);
                any = true;
                // A watch that selects by labels says of an object that loses them that it is gone.
                let selected = |object: &Value| wide || !name.contains('/') || Claim::of(object).is_some();
                let change = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) if selected(&object) => {
                        StoreEvent::Apply(object)
                    }
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                        StoreEvent::Delete(object)
                    }
                };
                self.tell(&name, &kind, wide, change);
            }
        }
        any
    }

    fn tell(&mut self, name: &str, kind: &GroupKind, wide: bool, change: StoreEvent) {
        let chaos = if is_record(name) { &mut self.chaos_of_records } else { &mut self.chaos };
        if let Some(chaos) = chaos {
            match chaos.next(12) {
                0 => return,
                1 => self.deliver(name, kind, wide, change.clone()),
                2 | 3 => {
                    self.held.push((name.into(), kind.clone(), wide, change));
                    return;
                }
                4 if !self.held.is_empty() => {
                    let late = usize::try_from(chaos.next(self.held.len() as u64)).unwrap();
                    let (name, kind, wide, late) = self.held.swap_remove(late);
                    self.deliver(&name, &kind, wide, late);
                }
                _ => {}
            }
        }
        self.deliver(name, kind, wide, change);
    }

    fn deliver(&mut self, name: &str, kind: &GroupKind, wide: bool, change: StoreEvent) {
        match name {
            REQUESTS => self.controller.observe_requests(change, self.now),
            _ if is_record(name) => {
                let kind = POLICIES.iter().map(|(kind, _)| *kind).find(|kind| kind.as_str() == name);
                self.store.apply(kind.unwrap(), change);
                self.controller.observe_policies(self.store.snapshot(), self.now);
            }
            _ => self.controller.observe(kind, wide, change, self.now),
        }
    }

    /// The policies as they are known.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.store.snapshot()
    }

    fn follow_new_kinds(&mut self) -> bool {
        let mut any = false;
        let watches = self.controller.watches();
        self.watches.retain(|name, pump| {
            let kept = !name.contains('/') || watches.contains_key(&pump.kind);
            if !kept {
                self.controller.state().forget_kind(&pump.kind);
            }
            kept
        });
        for (kind, watch) in watches {
            let name = format!("{}/{}", kind.group, kind.kind);
            if self.watches.get(name.as_str()).is_some_and(|pump| pump.wide == watch.wide) {
                continue;
            }
            any = true;
            self.watch(&name, &watch.api_version, &watch.kind, watch.wide);
            let mut objects = self.list(&watch.api_version, &watch.kind);
            objects.retain(|object| watch.wide || Claim::of(object).is_some());
            self.controller.observe(&kind, watch.wide, StoreEvent::Reset(objects), self.now);
        }
        any
    }

    /// Until there is nothing to do, retries and collections included (an hour at most).
    pub(super) fn settle(&mut self) {
        let end = self.now + 120_000;
        for _ in 0..100_000 {
            let pumped = self.pump();
            match self.controller.step(self.now) {
                Step::Worked => {}
                Step::Idle(_) if pumped => {}
                Step::Idle(Some(due)) if due <= end => {
                    let wait = due.saturating_sub(self.now).max(1);
                    self.tick(wait);
                }
                Step::Idle(_) => {
                    self.tick(1_000);
                    return;
                }
            }
        }
        panic!("it never comes to rest: {:?}", self.controller.state().failures);
    }

    // What users do.

    pub(super) fn apply(&mut self, text: &str) {
        for object in documents(text) {
            self.apply_object(&object);
        }
    }

    /// Creates an object, or replaces it.
    pub(super) fn apply_object(&mut self, object: &Value) {
        self.tick(1_000);
        match self.read(object) {
            None => {
                self.cluster_create(object);
            }
            Some(old) => {
                let mut new = self.placed(object);
                let resource = self.resource(&new);
                let version = old.at(&["metadata", "resourceVersion"]).cloned();
                ephor_runtime::content::set_meta(&mut new, "resourceVersion", version);
                let stored = self.cluster.update(&resource, new, &WriteOptions::default()).unwrap();
                self.show_policy(&stored);
            }
        }
    }

    pub(super) fn cluster_create(&self, object: &Value) -> Value {
        let object = self.placed(object);
        let stored = self.cluster.create(&self.resource(&object), object, &WriteOptions::default()).unwrap();
        self.show_policy(&stored);
        stored
    }

    /// The object with the namespace `default`, if it needs one and names none.
    fn placed(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if self.resource(&object).namespaced && object.str_at(&["metadata", "namespace"]).is_none() {
            ephor_runtime::content::set_meta(&mut object, "namespace", Some("default".into()));
        }
        object
    }

    pub(super) fn delete(&mut self, reference: &str) {
        self.tick(1_000);
        let object = document(reference);
        let old = self.read(&object).unwrap_or_else(|| panic!("{reference} is not there"));
        let id = ObjectId::of(&old);
        self.cluster.delete(&self.resource(&old), id.namespace(), &id.name, &DeleteOptions::default()).unwrap();
        if is_policy(&old) {
            self.admission.policy(StoredKind::of(&old).unwrap(), StoreEvent::Delete(old));
        }
    }

    /// Sets the settings, here and in admission.
    pub(super) fn set(&mut self, data: &str) {
        let settings = format!("{{metadata: {{name: kyverno, namespace: kyverno}}, data: {data}}}");
        self.admission.config().apply(StoreEvent::Apply(document(&settings)));
        self.controller.observe_filters(&self.admission.config().get().resource_filters, self.now);
    }

    fn show_policy(&self, stored: &Value) {
        if let Some(kind) = StoredKind::of(stored) {
            if kind.is_exception() {
                ephor_engine::exceptions::Exception::compile(stored).unwrap();
            } else {
                let compiled = ephor_runtime::policies::StoredPolicy::new(stored.clone());
                assert!(compiled.program.is_some(), "{:?}", compiled.findings);
            }
            self.admission.policy(kind, StoreEvent::Apply(stored.clone()));
        }
    }

    pub(super) fn resource(&self, object: &Value) -> ephor_cluster::Resource {
        let text = |key| object.str_at(&[key]).unwrap();
        self.cluster.resolve(text("apiVersion"), text("kind")).unwrap()
    }

    pub(super) fn read(&self, object: &Value) -> Option<Value> {
        let resource = self.resource(object);
        let namespace = object.str_at(&["metadata", "namespace"]).unwrap_or("default");
        let namespace = resource.namespaced.then_some(namespace);
        self.cluster.get(&resource, namespace, object.str_at(&["metadata", "name"])?).ok()
    }

    /// What is served now.
    pub(super) fn cluster_discovery(&self) -> Arc<ephor_cluster::Discovery> {
        self.cluster.discovery().unwrap()
    }

    pub(super) fn find(&self, reference: &str) -> Option<Value> {
        self.read(&document(reference))
    }

    /// How many requests ask for work, or did so a moment ago.
    pub(super) fn pending_requests(&self) -> usize {
        self.list("kyverno.io/v2", "UpdateRequest").len() - self.given_up().len()
    }

    /// The requests that are tried no more.
    pub(super) fn given_up(&self) -> Vec<Value> {
        let mut requests = self.list("kyverno.io/v2", "UpdateRequest");
        requests.retain(|request| request.at(&["metadata", "labels", LABEL_GIVEN_UP]).is_some());
        requests
    }
}

fn is_record(name: &str) -> bool {
    name == REQUESTS || POLICIES.iter().any(|(kind, _)| kind.as_str() == name)
}

fn is_policy(object: &Value) -> bool {
    StoredKind::of(object).is_some()
}
