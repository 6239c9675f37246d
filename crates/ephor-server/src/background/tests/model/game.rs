//! One game: users act, things go wrong, the controller works in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ephor_cluster::{Cluster, ClusterError, MemoryCluster, WriteOptions};
use ephor_expr::Value;

use super::marks::Marks;
use super::world::{
    BOARDS, Id, POLICIES, Place, RULES, Rule, SOURCES, SPACES, Shape, TRIGGERS, World, in_flight_document,
    marking_document, namespace_of, policy_document, policy_reference, source_document, space_document,
    trigger_document,
};
use crate::background::tests::bed::{Bed, Chaos, as_controller, document};
use crate::faults::{Death, FaultyCluster};
use crate::feed::Change;
use crate::plan::{Claim, ObjectId};

/// How many times users act before everything must come to rest.
const ACTS: usize = 12;

pub(super) struct Game {
    pub(super) seed: u64,
    pub(super) chaos: Chaos,
    pub(super) bed: Bed,
    pub(super) world: World,
    pub(super) marks: Marks,
    pub(super) foreign: BTreeMap<Id, Value>,
    /// What no rule stands for any more and stays: identity and content, as when everything was quiet.
    pub(super) kept: BTreeMap<Id, (String, Option<(String, String)>)>,
    /// What synchronizing rules wanted at any time since, and which rules synchronized.
    pub(super) wished: BTreeSet<Id>,
    pub(super) synchronized: BTreeSet<(String, String)>,
    /// Rules whose last word was that what they made stays.
    pub(super) spared: BTreeSet<(String, String)>,
    pub(super) log: Vec<String>,
    /// The view that the controller has, and whether its faults are over.
    view: Option<(Arc<FaultyCluster>, Arc<AtomicBool>)>,
}

impl Game {
    pub(super) fn new(seed: u64) -> Self {
        let cluster = MemoryCluster::default();
        let seen = Arc::new(as_controller(&cluster));
        let mut game = Self {
            seed,
            chaos: Chaos(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            bed: Bed::over(cluster, seen),
            world: World::default(),
            marks: Marks::default(),
            foreign: BTreeMap::new(),
            kept: BTreeMap::new(),
            wished: BTreeSet::new(),
            synchronized: BTreeSet::new(),
            spared: BTreeSet::new(),
            log: Vec::new(),
            view: None,
        };
        for space in [SOURCES, BOARDS] {
            game.bed.apply_object(&space_document(space, false));
        }
        for space in SPACES {
            let board = format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: board-{space}, namespace: {BOARDS}}}, data: {{is: there}}}}"
            );
            game.bed.apply_object(&document(&board));
            game.space(space);
        }
        if game.chaos.one_in(4) {
            game.bed.apply_object(&in_flight_document());
        }
        game
    }

    pub(super) fn play(mut self, rounds: usize) {
        for _ in 0..rounds {
            self.bed.chaos = Some(Chaos(self.chaos.next(u64::MAX) | 1));
            let view = self.view(true);
            self.bed.restart_over(view);
            for _ in 0..ACTS {
                self.act();
            }
            self.quiet();
            self.check();
            self.deleted_stays_deleted();
        }
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.chaos.next(of.len() as u64)).unwrap()]
    }

    /// A view of the cluster, perhaps with faults.
    pub(super) fn view(&mut self, faults: bool) -> Arc<dyn Cluster> {
        let inner: Arc<dyn Cluster> = Arc::new(as_controller(&self.bed.cluster));
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
        let mut answers = Chaos(chaos.next(u64::MAX) | 1);
        let (over, over_writes, over_answers) = (Arc::clone(&calm), Arc::clone(&calm), Arc::clone(&calm));
        let view = view
            .before_calls(move || {
                (!over.load(Ordering::Relaxed) && calls.one_in(15))
                    .then(|| ClusterError::unreachable("connection refused"))
            })
            .before_writes(move |_| {
                (!over_writes.load(Ordering::Relaxed) && chaos.one_in(12))
                    .then(|| ClusterError::unreachable("connection reset"))
            })
            .after_writes(move |_| {
                (!over_answers.load(Ordering::Relaxed) && answers.one_in(20))
                    .then(|| ClusterError::unreachable("the answer was lost"))
            });
        let view = Arc::new(view);
        self.view = Some((Arc::clone(&view), calm));
        view
    }

    fn act(&mut self) {
        let place = (self.pick(&SPACES), self.pick(&TRIGGERS));
        let key = (self.pick(&POLICIES), self.pick(&RULES));
        let what = self.chaos.next(22);
        self.log.push(format!("{what} {key:?} {place:?}"));
        match what {
            0..=3 => self.set_trigger(place),
            4 => self.delete_trigger(place),
            5..=8 => self.set_rule(key),
            9 => self.delete_rule(key),
            10 => self.delete_policy(key.0),
            11 | 12 => self.set_source(key),
            13 => self.delete_source(key),
            14 | 15 => self.tamper(),
            16 => self.forge(place.0),
            17 => self.relabel(place.0),
            18 => self.mark(),
            19 => self.doors(),
            20 if self.chaos.one_in(3) => self.drop_space(),
            _ => {
                let faults = !self.chaos.one_in(3);
                self.log.push(format!("restart, faults: {faults}"));
                let view = self.view(faults);
                self.bed.restart_over(view);
            }
        }
        self.wished.extend(self.world.wishes().allowed.into_keys());
        for _ in 0..self.chaos.next(12) {
            if self.chaos.one_in(3) {
                self.bed.pump();
            }
            if let crate::background::Step::Idle(_) = self.bed.controller.step(self.bed.now) {
                break;
            }
        }
    }

    /// A namespace for triggers, if there is none.
    fn space(&mut self, space: &'static str) {
        if !self.world.spaces.contains_key(space) {
            let golden = self.chaos.one_in(2);
            self.bed.apply_object(&space_document(space, golden));
            self.world.spaces.insert(space, golden);
        }
    }

    fn set_trigger(&mut self, place: Place) {
        self.space(place.0);
        let trigger = super::draw::trigger(self, place);
        self.log.push(format!("{place:?} = {trigger:?}"));
        let refused = self.chaos.one_in(10) && !self.bed.door.is_closed();
        if self.chaos.one_in(6) {
            self.look_too_early();
        }
        if refused {
            self.bed.door.refuse(true);
            self.attempt(&trigger_document(place, &trigger));
            self.bed.door.refuse(false);
            // What was asked is about nothing, or about what was there before.
            let before = self.world.triggers.get(&place);
            self.marks.unsettled(place, self.world.marking.as_ref(), before);
            return;
        }
        self.bed.apply_object(&trigger_document(place, &trigger));
        let open = !self.bed.door.is_closed();
        let on = trigger.on;
        self.world.triggers.insert(place, trigger.clone());
        if open {
            self.world.ask(place);
        } else {
            self.world.forget_asked(|_, _, of| of == place);
        }
        match self.world.marking.as_ref() {
            Some(marking) if open && on => self.marks.asked(place, marking, &trigger),
            marking => self.marks.unsettled(place, marking, Some(&trigger)),
        }
    }

    /// Creates or replaces an object in vain.
    fn attempt(&mut self, object: &Value) {
        self.bed.tick(1_000);
        let resource = self.bed.resource(object);
        let result = match self.bed.read(object) {
            None => self.bed.cluster.create(&resource, object.clone(), &WriteOptions::default()),
            Some(_) => self.bed.cluster.update(&resource, object.clone(), &WriteOptions::default()),
        };
        assert!(result.as_ref().is_err_and(|error| error.code() == 403), "{result:?}");
    }

    /// The controller sees the next write's requests, and works, before the write itself is stored.
    fn look_too_early(&mut self) {
        let (controller, cluster, now) = (self.bed.controller.clone(), self.bed.cluster.clone(), self.bed.now);
        self.bed.door.between(move || {
            let resource = cluster.resolve("kyverno.io/v2", "UpdateRequest").unwrap();
            let requests = cluster.list(&resource, &ephor_cluster::ListQuery::all()).unwrap().items;
            for request in requests {
                controller.observe_requests(Change::Set(request), now);
            }
            for _ in 0..8 {
                controller.step(now);
            }
        });
    }

    fn delete_trigger(&mut self, place: Place) {
        if self.world.triggers.remove(&place).is_some() {
            let (space, name) = place;
            self.bed.delete(&format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {space}}}}}"
            ));
            self.world.forget_asked(|_, _, of| of == place);
            self.marks.unsettled(place, None, None);
        }
    }

    fn set_rule(&mut self, (policy, name): (&'static str, &'static str)) {
        let rule = super::draw::rule(self, policy, name);
        self.log.push(format!("{policy}/{name} = {rule:?}"));
        if let Some(space) = namespace_of(policy) {
            self.space(space);
        }
        let own = (policy.to_owned(), name.to_owned());
        self.spared.remove(&own);
        if rule.synchronize {
            self.synchronized.insert(own);
        }
        let rules = self.world.policies.entry(policy).or_default();
        let before = policy_document(policy, rules);
        rules.insert(name, rule);
        let after = policy_document(policy, rules);
        self.bed.apply_object(&after);
        // What is written again as it is means nothing.
        if before != after {
            self.world.ask_existing(policy);
        }
    }

    fn delete_rule(&mut self, (policy, name): (&'static str, &'static str)) {
        let Some(rules) = self.world.policies.get_mut(policy) else { return };
        if rules.len() < 2 {
            return;
        }
        if let Some(rule) = rules.remove(name) {
            self.last_word(policy, name, &rule);
            self.bed.apply_object(&policy_document(policy, &self.world.policies[policy]));
            self.world.ask_existing(policy);
        }
    }

    fn delete_policy(&mut self, policy: &'static str) {
        if let Some(rules) = self.world.policies.remove(policy) {
            for (name, rule) in &rules {
                self.last_word(policy, name, rule);
            }
            self.bed.delete(&policy_reference(policy));
            self.world.ask_existing(policy);
        }
    }

    fn last_word(&mut self, policy: &str, name: &str, rule: &Rule) {
        if !rule.synchronize || rule.orphan || rule.shape == Shape::Clone {
            self.spared.insert((policy.to_owned(), name.to_owned()));
        }
    }

    fn set_source(&mut self, key: (&'static str, &'static str)) {
        let namespace = namespace_of(key.0).unwrap_or(SOURCES);
        let listed = self.chaos.next(3);
        let suffix = if listed == 0 { String::new() } else { format!("-{listed}") };
        let source = (namespace.to_owned(), format!("source-{}-{}{suffix}", key.0, key.1));
        let value = self.chaos.next(1000);
        self.bed.apply_object(&source_document(&source, key, value));
        if self.world.sources.insert(source, (key, value)).is_none() {
            self.world.forget_asked(|of, _, _| of == key);
        }
    }

    fn delete_source(&mut self, key: (&'static str, &'static str)) {
        let found = self.world.sources.iter().find(|(_, (of, _))| *of == key).map(|(source, _)| source.clone());
        if let Some((namespace, name)) = found {
            self.bed.delete(&format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: {namespace}}}}}"
            ));
            self.world.sources.remove(&(namespace, name));
            self.world.forget_asked(|of, _, _| of == key);
        }
    }

    fn relabel(&mut self, space: &'static str) {
        let golden = self.chaos.one_in(2);
        if self.world.spaces.contains_key(space) {
            self.bed.apply_object(&space_document(space, golden));
            self.world.spaces.insert(space, golden);
            self.world.forget_asked(|_, rule, of| rule.golden && of.0 == space);
        }
    }

    fn mark(&mut self) {
        if self.world.marking.is_some() && self.chaos.one_in(4) {
            self.world.marking = None;
            self.bed.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: brown}}");
        } else {
            let marking =
                super::world::Marking { on_policy_update: self.chaos.one_in(2), value: self.chaos.next(1000) };
            self.bed.apply_object(&marking_document(&marking));
            self.world.marking = Some(marking);
        }
        let marking = self.world.marking.as_ref();
        for space in SPACES {
            for name in TRIGGERS {
                let place = (space, name);
                let trigger = self.world.triggers.get(&place);
                self.marks.unsettled(place, marking, trigger);
                if let (Some(marking), Some(trigger)) =
                    (marking.filter(|m| m.on_policy_update), trigger.filter(|t| t.on))
                {
                    self.marks.asked(place, marking, trigger);
                }
            }
        }
    }

    /// Admission goes down or comes back.
    fn doors(&mut self) {
        let closed = !self.bed.door.is_closed();
        self.log.push(format!("admission is down: {closed}"));
        self.bed.door.close(closed);
    }

    /// A namespace goes, with all that is in it.
    fn drop_space(&mut self) {
        let space = "two";
        if self.world.spaces.remove(space).is_none() {
            return;
        }
        self.log.push(format!("{space} goes"));
        self.bed.delete(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {space}}}}}"));
        self.bed.cluster.reconcile();
        self.world.triggers.retain(|place, _| place.0 != space);
        self.world.forget_asked(|_, _, of| of.0 == space);
        self.foreign.retain(|id, _| id.1 != space);
        self.kept.retain(|id, _| id.1 != space);
        for name in TRIGGERS {
            self.marks.unsettled((space, name), None, None);
        }
    }

    /// All objects that say they were made.
    pub(super) fn made(&self) -> Vec<Value> {
        let secrets = self.bed.list("v1", "Secret").into_iter();
        let roles = self.bed.list("rbac.authorization.k8s.io/v1", "ClusterRole");
        secrets.chain(roles).filter(|object| Claim::of(object).is_some_and(|c| c.stamp.is_some())).collect()
    }

    /// Somebody changes or deletes what was made.
    fn tamper(&mut self) {
        let made = self.made();
        if made.is_empty() {
            return;
        }
        let mut victim = made[usize::try_from(self.chaos.next(made.len() as u64)).unwrap()].clone();
        let id = super::check::id_of(&victim);
        self.log.push(format!("tamper with {id:?}"));
        self.kept.remove(&id);
        match self.chaos.next(3) {
            0 => self.delete_made(&victim),
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

    pub(super) fn delete_made(&mut self, object: &Value) {
        let id = super::check::id_of(object);
        let reference = ObjectId::of(object);
        let namespace = if reference.namespace.is_empty() {
            String::new()
        } else {
            format!(", namespace: {}", reference.namespace)
        };
        self.bed.delete(&format!(
            "{{apiVersion: {}, kind: {}, metadata: {{name: {}{namespace}}}}}",
            object.str_at(&["apiVersion"]).unwrap(),
            reference.kind,
            reference.name
        ));
        let rendering = self.world.applying().filter(|(key, rule, place, trigger)| {
            self.world.rendered(*key, rule, *place, trigger).iter().any(|(rendered, _)| *rendered == id)
        });
        let rendering: Vec<_> = rendering.map(|(key, _, place, _)| (key, place)).collect();
        self.world.forget_asked(|key, _, place| rendering.contains(&(key, place)));
    }

    /// Somebody copies what was made, labels, annotations and all, under another name.
    fn forge(&mut self, space: &'static str) {
        let made: Vec<Value> = self.made().into_iter().filter(|o| o.str_at(&["kind"]) == Some("Secret")).collect();
        if made.is_empty() || !self.world.spaces.contains_key(space) {
            return;
        }
        let mut copy = made[usize::try_from(self.chaos.next(made.len() as u64)).unwrap()].clone();
        for key in ["uid", "resourceVersion", "creationTimestamp"] {
            crate::plan::content::set_meta(&mut copy, key, None);
        }
        let name = format!("foreign-{}", self.log.len());
        crate::plan::content::set_meta(&mut copy, "name", Some(name.as_str().into()));
        crate::plan::content::set_meta(&mut copy, "namespace", Some(space.into()));
        let stored = self.bed.cluster_create(&copy);
        self.foreign.insert(Id("Secret", space.to_owned(), name), stored);
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
}
