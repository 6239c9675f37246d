//! One simulation: users act, things go wrong, the controller works in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ephor_cluster::{Cluster, ClusterError, MemoryCluster};
use ephor_expr::Value;
use ephor_faults::{Death, FaultyCluster};

use super::ends::Ends;
use super::marks::Marks;
use super::world::{
    BOARDS, EXCEPTIONS, Id, MARK, POLICIES, Place, RULES, RuleKey, SOURCES, SPACES, TRIGGERS, World,
    in_flight_document, space_document,
};
use crate::plan::Claim;
use crate::tests::harness::{Chaos, Harness, as_controller, document};

/// How many times users act before everything must come to rest.
const ACTS: usize = 12;

pub(super) struct Simulation {
    pub(super) seed: u64,
    pub(super) chaos: Chaos,
    /// What decides about all that games did not always have; `None` for games that are played as they once were.
    more: Option<Chaos>,
    pub(super) harness: Harness,
    pub(super) world: World,
    pub(super) marks: Marks,
    pub(super) ends: Ends,
    pub(super) foreign: BTreeMap<Id, Value>,
    /// What no rule stands for any more and stays: identity and content, as when everything was quiet.
    pub(super) kept: BTreeMap<Id, (String, Option<(String, String)>)>,
    /// What exceptions keep as it is: for which rule and trigger, and what it says.
    pub(super) let_off: BTreeMap<Id, (RuleKey, Place, String)>,
    /// What synchronizing rules wanted at any time since, and which rules synchronized.
    pub(super) wished: BTreeSet<Id>,
    pub(super) synchronized: BTreeSet<(String, String)>,
    /// Rules whose last word was that what they made stays.
    pub(super) spared: BTreeSet<(String, String)>,
    pub(super) log: Vec<String>,
    /// The view that the controller has, and whether its faults are over.
    view: Option<(Arc<FaultyCluster>, Arc<AtomicBool>)>,
}

impl Simulation {
    pub(super) fn new(seed: u64, whole: bool) -> Self {
        let cluster = MemoryCluster::default();
        let seen = Arc::new(as_controller(&cluster));
        let mut simulation = Self {
            seed,
            chaos: Chaos(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            more: whole.then(|| Chaos(seed.wrapping_mul(0xD1B5_4A32_D192_ED03) | 1)),
            harness: Harness::over(cluster, seen),
            world: World::default(),
            marks: Marks::default(),
            ends: Ends::default(),
            foreign: BTreeMap::new(),
            kept: BTreeMap::new(),
            let_off: BTreeMap::new(),
            wished: BTreeSet::new(),
            synchronized: BTreeSet::new(),
            spared: BTreeSet::new(),
            log: Vec::new(),
            view: None,
        };
        for space in [SOURCES, BOARDS] {
            simulation.harness.apply_object(&space_document(space, false));
        }
        for space in SPACES {
            let board = format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: board-{space}, namespace: {BOARDS}}}, data: {{is: there}}}}"
            );
            simulation.harness.apply_object(&document(&board));
            simulation.space(space);
        }
        if simulation.chaos.one_in(4) {
            simulation.harness.apply_object(&in_flight_document());
        }
        simulation
    }

    pub(super) fn play(mut self, rounds: usize) {
        for _ in 0..rounds {
            self.harness.chaos = Some(Chaos(self.chaos.next(u64::MAX) | 1));
            self.harness.chaos_of_records = self.more.as_mut().map(|more| Chaos(more.next(u64::MAX) | 1));
            let view = self.view(true);
            self.harness.restart_over(view);
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

    /// Once in so many times, in games that have all that there is.
    pub(super) fn sometimes(&mut self, n: u64) -> bool {
        self.more.as_mut().is_some_and(|more| more.one_in(n))
    }

    /// A view of the cluster, perhaps with faults.
    pub(super) fn view(&mut self, faults: bool) -> Arc<dyn Cluster> {
        let inner: Arc<dyn Cluster> = Arc::new(as_controller(&self.harness.cluster));
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
        if self.sometimes(5) {
            self.act_otherwise(key, place);
        } else {
            self.act_as_ever(what, key, place);
        }
        let world = &self.world;
        self.let_off.retain(|_, (key, place, _)| world.keeps(*key, *place));
        self.wished.extend(self.world.expected().allowed.into_keys());
        self.work();
    }

    fn act_as_ever(&mut self, what: u64, key: RuleKey, place: Place) {
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
                self.harness.restart_over(view);
            }
        }
    }

    fn act_otherwise(&mut self, key: RuleKey, place: Place) {
        let Some(more) = &mut self.more else { return };
        let (what, which) = (more.next(10), EXCEPTIONS[usize::try_from(more.next(3)).unwrap()]);
        let key = if more.one_in(8) { MARK } else { key };
        match what {
            0..=2 => self.except(which, key, place),
            3 | 4 => self.lift(which),
            5 => self.apply_elsewhere(key.0),
            6 => self.delete_in_vain(place),
            _ => self.delete_trigger(place),
        }
    }

    /// The controller works for a while.
    fn work(&mut self) {
        for _ in 0..self.chaos.next(12) {
            if self.chaos.one_in(3) {
                self.harness.pump();
            }
            if let crate::Step::Idle(_) = self.harness.controller.step(self.harness.now) {
                break;
            }
        }
    }

    /// All objects that say they were made.
    pub(super) fn made(&self) -> Vec<Value> {
        let secrets = self.harness.list("v1", "Secret").into_iter();
        let roles = self.harness.list("rbac.authorization.k8s.io/v1", "ClusterRole");
        secrets.chain(roles).filter(|object| Claim::of(object).is_some_and(|c| c.annotation.is_some())).collect()
    }

    fn quiet(&mut self) {
        (self.harness.chaos, self.harness.chaos_of_records) = (None, None);
        // The faults end; the controller lives on where it is alive, and is started again where it died.
        match &self.view {
            Some((view, calm)) if !view.is_dead() => calm.store(true, Ordering::Relaxed),
            _ => {
                let view = self.view(false);
                self.harness.restart_over(view);
            }
        }
        self.harness.relist();
        self.harness.settle();
        self.harness.relist();
        self.harness.settle();
        if self.view.as_ref().is_some_and(|(view, _)| view.is_dead()) {
            // It died of one of its last writes.
            let view = self.view(false);
            self.harness.restart_over(view);
            self.harness.settle();
        }
    }
}
