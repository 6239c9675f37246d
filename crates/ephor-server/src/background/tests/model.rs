//! Random policies, triggers, sources and edits, with crashes, lost, doubled, late and reordered watch events and
//! failing calls in between. After quiet the cluster is what a model of a few lines says, nothing foreign is gone, and
//! a second pass writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ephor_cluster::{Cluster, ClusterError, MemoryCluster};
use ephor_engine::outcome::Form;
use ephor_expr::Value;

use super::bed::{Bed, Chaos, document};
use crate::background::Step;
use crate::faults::{Death, FaultyCluster};
use crate::plan::Claim;

/// Seeds that once found something.
const KEPT: &[u64] = &[];
/// How many seeds a test run tries; `EPHOR_MODEL_SEEDS` sets another number.
const SEEDS: u64 = 60;

/// What the author says at the moment.
#[derive(Debug, Clone, PartialEq)]
struct Policy {
    form: Form,
    synchronize: bool,
    value: u64,
    moved: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct Trigger {
    on: bool,
    value: u64,
}

/// What there is, apart from what is made.
#[derive(Debug, Default)]
struct World {
    policies: BTreeMap<String, Policy>,
    triggers: BTreeMap<(String, String), Trigger>,
    sources: BTreeMap<String, u64>,
    foreign: BTreeMap<(String, String), Value>,
}

const POLICIES: [&str; 3] = ["red", "green", "blue"];
const SPACES: [&str; 2] = ["one", "two"];
const TRIGGERS: [&str; 2] = ["dog", "cat"];

fn policy_document(name: &str, policy: &Policy) -> Value {
    let Policy { form, synchronize, value, moved } = policy;
    let body = match form {
        Form::Data => format!("data: {{data: {{k: 'v{value}-{{{{ request.object.data.v }}}}'}}}}"),
        _ => format!("clone: {{namespace: sources, name: source-{name}}}"),
    };
    document(&format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{rules: [{{name: make,
          match: {{any: [{{resources: {{kinds: [ConfigMap], selector: {{matchLabels: {{'on': 'yes'}}}}}}}}]}},
          generate: {{generateExisting: true, synchronize: {synchronize}, apiVersion: v1, kind: Secret,
            name: '{name}-{{{{ request.object.metadata.name }}}}-{moved}',
            namespace: '{{{{ request.object.metadata.namespace }}}}', {body}}}}}]}}}}"
    ))
}

fn trigger_document(space: &str, name: &str, trigger: &Trigger) -> Value {
    let on = if trigger.on { "yes" } else { "no" };
    document(&format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {space}, labels: {{'on': '{on}'}}}},
          data: {{v: 't{}'}}}}",
        trigger.value
    ))
}

fn source_document(policy: &str, value: u64) -> Value {
    document(&format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: source-{policy}, namespace: sources}}, data: {{k: s{value}}}}}"
    ))
}

impl World {
    /// What synchronizing policies want: value by namespace and name.
    fn wanted(&self) -> BTreeMap<(String, String), String> {
        let mut wanted = BTreeMap::new();
        for (name, policy) in self.policies.iter().filter(|(_, policy)| policy.synchronize) {
            for ((space, trigger), state) in self.triggers.iter().filter(|(_, trigger)| trigger.on) {
                let value = match policy.form {
                    Form::Data => format!("v{}-t{}", policy.value, state.value),
                    _ => match self.sources.get(name) {
                        Some(value) => format!("s{value}"),
                        None => continue,
                    },
                };
                wanted.insert((space.clone(), format!("{name}-{trigger}-{}", policy.moved)), value);
            }
        }
        wanted
    }
}

struct Game {
    seed: u64,
    chaos: Chaos,
    bed: Bed,
    world: World,
    log: Vec<String>,
    /// The view that the controller has, and whether its faults are over.
    view: Option<(Arc<FaultyCluster>, Arc<AtomicBool>)>,
}

impl Game {
    fn new(seed: u64) -> Self {
        let cluster = MemoryCluster::default();
        let mut game = Self {
            seed,
            chaos: Chaos(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            bed: Bed::over(cluster.clone(), Arc::new(cluster)),
            world: World::default(),
            log: Vec::new(),
            view: None,
        };
        for space in SPACES.iter().chain(&["sources"]) {
            game.bed
                .apply_object(&document(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {space}}}}}")));
        }
        game
    }

    fn pick<'c>(&mut self, of: &[&'c str]) -> &'c str {
        of[usize::try_from(self.chaos.next(of.len() as u64)).unwrap()]
    }

    /// A view of the cluster, perhaps with faults.
    fn view(&mut self, faults: bool) -> Arc<dyn Cluster> {
        let inner: Arc<dyn Cluster> = Arc::new(self.bed.cluster.clone());
        if !faults {
            self.view = None;
            return inner;
        }
        let mut chaos = Chaos(self.chaos.next(u64::MAX) | 1);
        let view = match self.chaos.next(4) {
            0 => FaultyCluster::dying(inner, Death::Before(usize::try_from(self.chaos.next(6)).unwrap())),
            1 => FaultyCluster::dying(inner, Death::After(usize::try_from(self.chaos.next(6)).unwrap())),
            _ => FaultyCluster::new(inner),
        };
        let calm = Arc::new(AtomicBool::new(false));
        let mut calls = chaos.clone();
        let over = Arc::clone(&calm);
        let view = view.before_calls(move || {
            (!over.load(Ordering::Relaxed) && calls.one_in(15)).then(|| ClusterError::unreachable("connection refused"))
        });
        let over = Arc::clone(&calm);
        let view = Arc::new(view.before_writes(move |_| {
            (!over.load(Ordering::Relaxed) && chaos.one_in(12)).then(|| ClusterError::unreachable("connection reset"))
        }));
        self.view = Some((Arc::clone(&view), calm));
        view
    }

    fn act(&mut self) {
        let name = self.pick(&POLICIES).to_owned();
        let space = self.pick(&SPACES).to_owned();
        let trigger = self.pick(&TRIGGERS).to_owned();
        let number = self.chaos.next(1000);
        let what = self.chaos.next(16);
        self.log.push(format!("{what} {name} {space}/{trigger} {number}"));
        match what {
            0..=2 => {
                let on = !self.chaos.one_in(4);
                let state = Trigger { on, value: number };
                self.bed.apply_object(&trigger_document(&space, &trigger, &state));
                self.world.triggers.insert((space, trigger), state);
            }
            3 => {
                if self.world.triggers.remove(&(space.clone(), trigger.clone())).is_some() {
                    self.bed.delete(&format!(
                        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {trigger}, namespace: {space}}}}}"
                    ));
                }
            }
            4..=6 => {
                let form = if self.chaos.one_in(2) { Form::Data } else { Form::Clone };
                let synchronize = !self.chaos.one_in(4);
                let policy = match self.world.policies.get(&name) {
                    // What a rule is made of does not change from one form to the other.
                    Some(known) => match self.chaos.next(3) {
                        0 => Policy { value: number, ..known.clone() },
                        1 => Policy { moved: known.moved + 1, ..known.clone() },
                        _ => Policy { synchronize, ..known.clone() },
                    },
                    None => Policy { form, synchronize, value: number, moved: number },
                };
                self.bed.apply_object(&policy_document(&name, &policy));
                self.world.policies.insert(name, policy);
            }
            7 => {
                if self.world.policies.remove(&name).is_some() {
                    self.bed.delete(&format!(
                        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}}}"
                    ));
                }
            }
            8 | 9 => {
                self.bed.apply_object(&source_document(&name, number));
                self.world.sources.insert(name, number);
            }
            10 => {
                if self.world.sources.remove(&name).is_some() {
                    self.bed.delete(&format!(
                        "{{apiVersion: v1, kind: Secret, metadata: {{name: source-{name}, namespace: sources}}}}"
                    ));
                }
            }
            11 | 12 => self.tamper(),
            13 => self.forge(&space),
            _ => {
                let faults = !self.chaos.one_in(3);
                self.log.push(format!("restart, faults: {faults}"));
                let view = self.view(faults);
                self.bed.restart_over(view);
            }
        }
        for _ in 0..self.chaos.next(12) {
            if self.chaos.one_in(3) {
                self.bed.pump();
            }
            if let Step::Idle(_) = self.bed.controller.step(self.bed.now) {
                break;
            }
        }
    }

    /// All Secrets that say they were made.
    fn made(&self) -> Vec<Value> {
        self.bed
            .list("v1", "Secret")
            .into_iter()
            .filter(|secret| Claim::of(secret).is_some_and(|c| c.stamp.is_some()))
            .collect()
    }

    /// Somebody changes or deletes what was made.
    fn tamper(&mut self) {
        let made = self.made();
        if made.is_empty() {
            return;
        }
        let mut victim = made[usize::try_from(self.chaos.next(made.len() as u64)).unwrap()].clone();
        let reference = crate::plan::ObjectId::of(&victim);
        self.log.push(format!("tamper with {reference}"));
        match self.chaos.next(3) {
            0 => self.bed.delete(&format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: {}, namespace: {}}}}}",
                reference.name, reference.namespace
            )),
            1 => {
                if let Some(members) = victim.as_object_mut() {
                    members.insert("data", Value::from([("k", Value::from("tampered"))]));
                }
                self.bed.apply_object(&victim);
            }
            _ => {
                crate::plan::content::set_entry(&mut victim, "labels", "by-hand", Some("yes"));
                self.bed.apply_object(&victim);
            }
        }
    }

    /// Somebody copies what was made, labels, annotations and all, under another name.
    fn forge(&mut self, space: &str) {
        let Some(mut copy) = self.made().into_iter().next() else { return };
        for key in ["uid", "resourceVersion", "creationTimestamp"] {
            crate::plan::content::set_meta(&mut copy, key, None);
        }
        let name = format!("foreign-{}", self.world.foreign.len());
        crate::plan::content::set_meta(&mut copy, "name", Some(name.as_str().into()));
        crate::plan::content::set_meta(&mut copy, "namespace", Some(space.into()));
        let stored = self.bed.cluster_create(&copy);
        self.world.foreign.insert((space.to_owned(), name), stored);
    }

    fn quiet(&mut self) {
        self.bed.chaos = None;
        // The faults end; the controller lives on where it is alive, and is started again where it died.
        match &self.view {
            Some((view, calm)) if !view.is_dead() => calm.store(true, Ordering::Relaxed),
            _ => {
                let view = self.view(false);
                self.bed.restart_over(view);
            }
        }
        self.bed.relist();
        self.bed.settle();
        self.bed.relist();
        self.bed.settle();
        if self.view.as_ref().is_some_and(|(view, _)| view.is_dead()) {
            // It died of one of its last writes.
            let view = self.view(false);
            self.bed.restart_over(view);
            self.bed.settle();
        }
    }

    fn fail(&self, what: &str) -> ! {
        let failures = &self.bed.controller.state().failures.clone();
        panic!(
            "seed {}: {what}\npolicies: {:?}\ntriggers: {:?}\nsources: {:?}\nfailures: {failures:?}\nlog:\n{}",
            self.seed,
            self.world.policies,
            self.world.triggers,
            self.world.sources,
            self.log.join("\n")
        );
    }

    fn newer_than(&self, revision: u64) -> String {
        let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).unwrap().parse::<u64>().unwrap();
        // What a policy's status says of failures depends on which triggers were tried together.
        // The mark on a source is put there when it can be.
        let counts = |object: &Value| {
            object.str_at(&["kind"]) != Some("ClusterPolicy")
                && object.str_at(&["metadata", "namespace"]) != Some("sources")
        };
        let newer = self.bed.cluster.objects().into_iter().filter(|o| counts(o) && version(o) > revision);
        newer.map(|object| object.to_json()).collect::<Vec<_>>().join("\n")
    }

    fn check(&mut self) {
        let wanted = self.world.wanted();
        let text = |object: &Value, keys: &[&str]| object.str_at(keys).unwrap_or_default().to_owned();
        let mut present = BTreeSet::new();
        for secret in self.bed.list("v1", "Secret") {
            let id = (text(&secret, &["metadata", "namespace"]), text(&secret, &["metadata", "name"]));
            if let Some(foreign) = self.world.foreign.remove(&id) {
                if foreign != secret {
                    self.fail(&format!("the foreign object {id:?} was changed"));
                }
                self.world.foreign.insert(id.clone(), foreign);
                present.insert(id);
                continue;
            }
            let Some(claim) = Claim::of(&secret) else { continue };
            match self.world.policies.get(claim.owner.policy.as_str()) {
                Some(policy) if policy.synchronize => match wanted.get(&id) {
                    None => self.fail(&format!("{id:?} is there and nobody wants it")),
                    Some(value) if *value != text(&secret, &["data", "k"]) => {
                        self.fail(&format!("{id:?} says {} and not {value}", text(&secret, &["data", "k"])));
                    }
                    Some(_) => {}
                },
                Some(_) => {}
                None => {
                    let stays =
                        claim.stamp.as_ref().is_none_or(|stamp| !stamp.synchronize || stamp.form == Form::Clone);
                    if !stays {
                        self.fail(&format!("{id:?} has outlived its policy"));
                    }
                }
            }
            present.insert(id);
        }
        for id in wanted.keys().chain(self.world.foreign.keys()) {
            if !present.contains(id) {
                self.fail(&format!("{id:?} is not there"));
            }
        }
        if self.bed.pending_requests() > 0 {
            self.fail("requests are left");
        }
        let revision = self.bed.cluster.revision();
        self.bed.controller.resync(self.bed.now);
        self.bed.settle();
        let newer = self.newer_than(revision);
        if !newer.is_empty() {
            self.fail(&format!("a second pass writes {newer}"));
        }
        let view = self.view(false);
        self.bed.restart_over(view);
        self.bed.settle();
        let newer = self.newer_than(revision);
        if !newer.is_empty() {
            self.fail(&format!("a second pass after a restart writes {newer}"));
        }
    }

    fn play(mut self) {
        for _ in 0..3 {
            self.bed.chaos = Some(Chaos(self.chaos.next(u64::MAX) | 1));
            let view = self.view(true);
            self.bed.restart_over(view);
            for _ in 0..12 {
                self.act();
            }
            self.quiet();
            self.check();
        }
    }
}

#[test]
fn whatever_happens_it_converges_and_nothing_foreign_is_touched() {
    let seeds = std::env::var("EPHOR_MODEL_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS);
    let first = std::env::var("EPHOR_MODEL_FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(1);
    for seed in KEPT.iter().copied().chain(first..first + seeds) {
        Game::new(seed).play();
    }
}
