//! A cluster in memory, the controller, and what stands between them: watches, and admission's requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ephor_cluster::memory::Options;
use ephor_cluster::{Cluster, DeleteOptions, ListQuery, MemoryCluster, Watch, WatchEvent, WatchQuery, WriteOptions};
use ephor_engine::matching::Gvk;
use ephor_engine::outcome::{Phase, Verdict};
use ephor_engine::policy::Operation;
use ephor_engine::review::{Mode, Review};
use ephor_expr::{Map, Str, Value, yaml};

use crate::background::writer::{Env, Fence, Note};
use crate::background::{Controller, GroupKind, Step};
use crate::facts::{ClusterFacts, evaluate};
use crate::feed::Change;
use crate::metrics::Metrics;
use crate::plan::{Claim, ObjectId};
use crate::policies::{ExceptionScope, PolicyStore};
use crate::update_request::{ResourceSpec, RuleContext, UpdateRequest};

pub(super) struct Bed {
    pub(super) cluster: MemoryCluster,
    pub(super) controller: Controller,
    pub(super) now: u64,
    pub(super) notes: Arc<Mutex<Vec<Note>>>,
    pub(super) metrics: Metrics,
    fence: Fence,
    store: PolicyStore,
    watches: BTreeMap<Str, Pump>,
    requests: u64,
    /// Whether admission writes requests.
    pub(super) admission: bool,
    /// The cluster as the controller sees it.
    seen: Arc<dyn Cluster>,
    /// What may happen to watch events.
    pub(super) chaos: Option<Chaos>,
    held: Vec<(GroupKind, bool, Change)>,
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

/// A watch and whom it tells.
struct Pump {
    watch: Box<dyn Watch>,
    kind: GroupKind,
    wide: bool,
}

/// `2026-01-01T00:00:00Z`.
const START: u64 = 1_767_225_600_000;

pub(super) fn documents(text: &str) -> Vec<Value> {
    yaml::parse_values(text, &yaml::Limits::default()).unwrap()
}

pub(super) fn document(text: &str) -> Value {
    yaml::parse_value(text).unwrap()
}

impl Bed {
    pub(super) fn new() -> Self {
        let cluster = MemoryCluster::new(Options::default());
        Self::over(cluster.clone(), Arc::new(cluster))
    }

    /// Over a cluster that the controller sees in another way than the test does.
    pub(super) fn over(cluster: MemoryCluster, seen: Arc<dyn Cluster>) -> Self {
        Self::fenced(cluster, seen, Arc::new(|| Ok(())))
    }

    /// The same, with something to ask before each write.
    pub(super) fn fenced(cluster: MemoryCluster, seen: Arc<dyn Cluster>, fence: Fence) -> Self {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let metrics = Metrics::default();
        let mut bed = Self {
            controller: Self::controller(&seen, &notes, &metrics, &fence),
            cluster,
            now: START,
            notes,
            metrics,
            fence,
            store: PolicyStore::new(ExceptionScope::Disabled),
            watches: BTreeMap::new(),
            requests: 0,
            admission: true,
            seen,
            chaos: None,
            held: Vec::new(),
        };
        bed.tick(0);
        bed.cluster_create(&document("{apiVersion: v1, kind: Namespace, metadata: {name: kyverno}}"));
        bed.start();
        bed
    }

    fn controller(
        seen: &Arc<dyn Cluster>,
        notes: &Arc<Mutex<Vec<Note>>>,
        metrics: &Metrics,
        fence: &Fence,
    ) -> Controller {
        let notes = Arc::clone(notes);
        let controller = Controller::new(Env {
            cluster: Arc::clone(seen),
            answers: Arc::new(ClusterFacts::new(Arc::clone(seen))),
            fence: Arc::clone(fence),
            namespace: "kyverno".into(),
            metrics: metrics.clone(),
            observer: Arc::new(move |note| notes.lock().unwrap().push(note.clone())),
        });
        // The view may be one whose calls fail at times.
        let discovery = (0..100).find_map(|_| seen.discovery().ok()).unwrap();
        controller.observe_discovery(discovery);
        controller.sweep(START);
        controller
    }

    /// The controller is killed and comes back knowing nothing, seeing the cluster in its own way.
    pub(super) fn restart_over(&mut self, seen: Arc<dyn Cluster>) {
        self.seen = seen;
        self.restart();
    }

    /// All feeds start over, and tell again what there is.
    pub(super) fn relist(&mut self) {
        self.held.clear();
        self.watches.clear();
        self.start();
    }

    /// The controller is killed and comes back knowing nothing.
    pub(super) fn restart(&mut self) {
        self.held.clear();
        self.watches.clear();
        self.controller = Self::controller(&self.seen, &self.notes, &self.metrics, &self.fence);
        self.store = PolicyStore::new(ExceptionScope::Disabled);
        self.start();
    }

    /// The controller is killed; nobody is there until [`Bed::restart`].
    pub(super) fn stop(&mut self) {
        self.watches.clear();
        self.controller = Self::controller(&self.seen, &self.notes, &self.metrics, &self.fence);
        self.store = PolicyStore::new(ExceptionScope::Disabled);
    }

    fn start(&mut self) {
        for kind in ["ClusterPolicy", "Policy"] {
            let change = Change::Reset(self.list("kyverno.io/v1", kind));
            self.store.apply(kind, change);
            self.watch(kind, "kyverno.io/v1", kind, false);
        }
        self.controller.observe_policies(self.store.snapshot(), self.now);
        let change = Change::Reset(self.list("kyverno.io/v2", "UpdateRequest"));
        self.controller.observe_requests(change, self.now);
        self.watch("UpdateRequest", "kyverno.io/v2", "UpdateRequest", false);
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
        let mut any = self.follow_new_kinds();
        let names: Vec<Str> = self.watches.keys().cloned().collect();
        for name in names {
            while let Some(pump) = self.watches.get_mut(&name) {
                let Ok(Some(event)) = pump.watch.next(Duration::ZERO) else { break };
                let (kind, wide) = (pump.kind.clone(), pump.wide);
                any = true;
                let change = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => Change::Set(object),
                    WatchEvent::Deleted(object) => Change::Gone(object),
                    WatchEvent::Bookmark(_) => continue,
                };
                self.tell(&name, &kind, wide, change);
            }
        }
        any
    }

    fn tell(&mut self, name: &str, kind: &GroupKind, wide: bool, change: Change) {
        if let Some(chaos) = &mut self.chaos
            && !matches!(name, "ClusterPolicy" | "Policy" | "UpdateRequest")
        {
            match chaos.next(12) {
                0 => return,
                1 => self.controller.observe(kind, wide, change.clone(), self.now),
                2 | 3 => {
                    self.held.push((kind.clone(), wide, change));
                    return;
                }
                4 if !self.held.is_empty() => {
                    let late = usize::try_from(chaos.next(self.held.len() as u64)).unwrap();
                    let (kind, wide, late) = self.held.swap_remove(late);
                    self.controller.observe(&kind, wide, late, self.now);
                }
                _ => {}
            }
        }
        match name {
            "ClusterPolicy" | "Policy" => {
                self.store.apply(name, change);
                self.controller.observe_policies(self.store.snapshot(), self.now);
            }
            "UpdateRequest" => self.controller.observe_requests(change, self.now),
            _ => self.controller.observe(kind, wide, change, self.now),
        }
    }

    fn follow_new_kinds(&mut self) -> bool {
        let mut any = false;
        for (kind, watch) in self.controller.watches() {
            let name = format!("{}/{}", kind.group, kind.kind);
            if self.watches.get(name.as_str()).is_some_and(|pump| pump.wide || !watch.wide) {
                continue;
            }
            any = true;
            self.watch(&name, &watch.api_version, &watch.kind, watch.wide);
            let mut objects = self.list(&watch.api_version, &watch.kind);
            objects.retain(|object| watch.wide || Claim::of(object).is_some());
            self.controller.observe(&kind, watch.wide, Change::Reset(objects), self.now);
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
                let stored = self.cluster_create(object);
                self.admit(Operation::Create, &stored, &Value::Null);
            }
            Some(old) => {
                let mut new = self.placed(object);
                let resource = self.resource(&new);
                let version = old.at(&["metadata", "resourceVersion"]).cloned();
                crate::plan::content::set_meta(&mut new, "resourceVersion", version);
                let stored = self.cluster.update(&resource, new, &WriteOptions::default()).unwrap();
                self.admit(Operation::Update, &stored, &old);
            }
        }
    }

    pub(super) fn cluster_create(&self, object: &Value) -> Value {
        let object = self.placed(object);
        self.cluster.create(&self.resource(&object), object, &WriteOptions::default()).unwrap()
    }

    /// The object with the namespace `default`, if it needs one and names none.
    fn placed(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if self.resource(&object).namespaced && object.str_at(&["metadata", "namespace"]).is_none() {
            crate::plan::content::set_meta(&mut object, "namespace", Some("default".into()));
        }
        object
    }

    pub(super) fn delete(&mut self, reference: &str) {
        self.tick(1_000);
        let object = document(reference);
        let old = self.read(&object).unwrap_or_else(|| panic!("{reference} is not there"));
        let id = ObjectId::of(&old);
        self.cluster.delete(&self.resource(&old), id.namespace(), &id.name, &DeleteOptions::default()).unwrap();
        self.admit(Operation::Delete, &Value::Null, &old);
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

    pub(super) fn find(&self, reference: &str) -> Option<Value> {
        self.read(&document(reference))
    }

    pub(super) fn pending_requests(&self) -> usize {
        self.list("kyverno.io/v2", "UpdateRequest").len()
    }

    /// Tells admission that an object was created.
    pub(super) fn hand_over_creation(&mut self, object: &Value) {
        self.admit(Operation::Create, object, &Value::Null);
    }

    /// What admission hands over for a request (controllers 1.4 and 1.5), in the plainest way.
    fn admit(&mut self, operation: Operation, object: &Value, old: &Value) {
        if !self.admission {
            return;
        }
        let subject = if operation == Operation::Delete { old } else { object };
        if let Some(claim) = Claim::of(old) {
            let trigger = ResourceSpec {
                api_version: claim.trigger_api_version.clone(),
                kind: claim.trigger_kind.clone(),
                namespace: claim.trigger_namespace.clone(),
                name: Str::default(),
                uid: claim.owner.trigger.clone(),
            };
            let context =
                RuleContext { rule: claim.owner.rule.clone(), synchronize: true, trigger, ..RuleContext::default() };
            let namespace = &claim.owner.policy_namespace;
            let slash = if namespace.is_empty() { "" } else { "/" };
            let policy = format!("{namespace}{slash}{}", claim.owner.policy);
            self.hand_over(&policy, vec![context], operation, object, old);
            return;
        }
        let mut policies = PolicyStore::new(ExceptionScope::Disabled).snapshot();
        let fresh = PolicyStore::new(ExceptionScope::Disabled);
        for kind in ["ClusterPolicy", "Policy"] {
            fresh.apply(kind, Change::Reset(self.list("kyverno.io/v1", kind)));
            policies = fresh.snapshot();
        }
        let mut handed: Vec<(String, Vec<RuleContext>)> = Vec::new();
        let passing = |object: &Value, old: &Value, operation: Operation| {
            let review = review(object, old, operation);
            let facts = ClusterFacts::new(Arc::new(self.cluster.clone()));
            let done = evaluate(&policies.set, &policies.exceptions, review, Phase::Generate, &facts);
            let judged = done.outcomes.into_iter().filter(|o| matches!(o.verdict, Verdict::Pass | Verdict::Error));
            judged.map(|o| (o.policy, o.rule)).collect::<Vec<_>>()
        };
        let now = passing(object, old, operation);
        let before = if old.is_null() { Vec::new() } else { passing(old, &Value::Null, Operation::Create) };
        let of_old = |pair: &(usize, Str)| operation == Operation::Delete && !now.contains(pair);
        for (policy, program) in policies.set.programs().iter().enumerate() {
            let mut contexts = Vec::new();
            for rule in &program.rules {
                let ephor_engine::compile::Body::Generate(body) = &rule.body else { continue };
                let pair = (policy, rule.name.clone());
                let let_go = if operation == Operation::Delete { of_old(&pair) } else { !now.contains(&pair) };
                let make = now.contains(&pair)
                    && (operation != Operation::Delete || names_delete(&policies, program, &rule.name));
                let let_go = (let_go || !make) && before.contains(&pair) && body.synchronize;
                if make || let_go {
                    contexts.push(RuleContext {
                        rule: rule.name.clone(),
                        delete_downstream: let_go && !make,
                        synchronize: body.synchronize,
                        cache_restore: false,
                        trigger: ResourceSpec::of_object(subject),
                    });
                }
            }
            if !contexts.is_empty() {
                handed.push((program.key.to_string(), contexts));
            }
        }
        for (policy, contexts) in handed {
            self.hand_over(&policy, contexts, operation, object, old);
        }
    }

    fn hand_over(
        &mut self,
        policy: &str,
        contexts: Vec<RuleContext>,
        operation: Operation,
        object: &Value,
        old: &Value,
    ) {
        self.requests += 1;
        let mut request = UpdateRequest::default();
        request.metadata.name = format!("ur-{}", self.requests).into();
        request.metadata.namespace = "kyverno".into();
        request.spec.request_type = Some(crate::update_request::RequestType::Generate);
        request.spec.policy = policy.into();
        request.spec.rule_context = contexts;
        let mut admission = Map::new();
        admission.insert("operation", operation.as_str());
        admission.insert("uid", format!("request-{}", self.requests));
        for (key, object) in [("object", object), ("oldObject", old)] {
            if !object.is_null() {
                admission.insert(key, object.clone());
            }
        }
        let subject = if operation == Operation::Delete { old } else { object };
        for key in ["name", "namespace"] {
            admission.insert(key, subject.str_at(&["metadata", key]).unwrap_or_default());
        }
        request.spec.context.admission_request_info.admission_request = admission.into();
        request.spec.context.admission_request_info.operation = Some(operation);
        self.cluster_create(&request.to_value().unwrap());
    }
}

fn names_delete(policies: &crate::policies::Snapshot, program: &ephor_engine::compile::Program, rule: &str) -> bool {
    let policy = policies.policies.values().find(|policy| policy.key.to_string() == program.key.as_str()).unwrap();
    let rules = policy.document.at(&["spec", "rules"]).and_then(Value::as_array).unwrap();
    let rule = rules.iter().find(|document| document.str_at(&["name"]) == Some(rule)).unwrap();
    rule.get("match").is_some_and(|block| block.to_json().contains("\"DELETE\""))
}

fn review(object: &Value, old: &Value, operation: Operation) -> Review {
    let subject = if operation == Operation::Delete { old } else { object };
    let mut review = Review::of_object(subject.clone(), jiff::Timestamp::UNIX_EPOCH);
    review.mode = Mode::Admission;
    review.operation = operation;
    review.object = object.clone();
    review.old_object = old.clone();
    review.gvk = Gvk::of_object(subject);
    review
}
