//! What must hold when everything is quiet.

use std::collections::{BTreeMap, BTreeSet};

use ephor_engine::outcome::Form;
use ephor_expr::Value;

use super::simulation::Simulation;
use super::world::{
    BOARDS, Id, POLICIES, Place, RULES, Rule, RuleKey, SOURCES, SPACES, Shape, TRIGGERS, trigger_reference,
};
use crate::plan::Claim;

fn text(object: &Value, keys: &[&str]) -> String {
    object.str_at(keys).unwrap_or_default().to_owned()
}

pub(super) fn id_of(object: &Value) -> Id {
    let kind = if object.str_at(&["kind"]) == Some("Secret") { "Secret" } else { "ClusterRole" };
    Id(kind, text(object, &["metadata", "namespace"]), text(object, &["metadata", "name"]))
}

fn content(object: &Value) -> String {
    let at: &[&str] =
        if object.str_at(&["kind"]) == Some("Secret") { &["data", "k"] } else { &["metadata", "annotations", "k"] };
    text(object, at)
}

/// The rule that a claim names.
fn owner(claim: &Claim) -> (String, String) {
    (claim.owner.policy.name.to_string(), claim.owner.rule.to_string())
}

/// Whether an object was made because its trigger ended.
fn by_end(claim: &Claim) -> bool {
    claim.annotation.as_ref().is_some_and(|annotation| annotation.operation == "DELETE")
}

/// Kinds whose objects are no part of the peace: the status of a policy tells of failures, which depend on what was
/// tried together, and the mark on a source is put there when it can be.
fn is_aside(object: &Value) -> bool {
    matches!(object.str_at(&["kind"]), Some("ClusterPolicy" | "Policy")) || is_source(object)
}

fn is_source(object: &Value) -> bool {
    object.str_at(&["metadata", "namespace"]) == Some(SOURCES)
        || object.str_at(&["metadata", "namespace"]) == Some("one")
            && object.str_at(&["metadata", "name"]).is_some_and(|name| name.starts_with("source-blue"))
}

impl Simulation {
    pub(super) fn fail(&self, what: &str) -> ! {
        let failures = &self.harness.controller.state().failures.clone();
        panic!("seed {}: {what}\n{:#?}\nfailures: {failures:?}\nlog:\n{}", self.seed, self.world, self.log.join("\n"));
    }

    fn newer_than(&self, revision: u64) -> String {
        let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).unwrap().parse::<u64>().unwrap();
        let newer = self.harness.cluster.objects().into_iter().filter(|o| !is_aside(o) && version(o) > revision);
        newer.map(|object| object.to_json()).collect::<Vec<_>>().join("\n")
    }

    fn rule_of(&self, claim: &Claim) -> Option<&Rule> {
        let rules = self.world.policies.get(claim.owner.policy.name.as_str())?;
        rules.get(claim.owner.rule.as_str())
    }

    /// What is given up is not done: it failed, and its policy is there.
    fn check_given_up(&self) {
        for request in self.harness.given_up() {
            let policy = request.str_at(&["spec", "policy"]).unwrap_or_default();
            let (namespace, name) = policy.split_once('/').unwrap_or(("", policy));
            let kind = if namespace.is_empty() { "ClusterPolicy" } else { "Policy" };
            let policy = format!(
                "{{apiVersion: kyverno.io/v1, kind: {kind}, metadata: {{name: '{name}', namespace: '{namespace}'}}}}"
            );
            let failed = request.str_at(&["status", "state"]) == Some("Failed");
            if !failed || self.harness.find(&policy).is_none() {
                self.fail(&format!("given up and kept for nothing: {}", request.to_json()));
            }
        }
    }

    /// The rule that a claim names, and the trigger if it is there.
    fn claimed(&self, claim: &Claim) -> (RuleKey, Option<Place>) {
        let known = |names: &[&'static str], name: &str| names.iter().copied().find(|known| *known == name);
        let (policy, rule) = owner(claim);
        let key = (known(&POLICIES, &policy).unwrap_or_default(), known(&RULES, &rule).unwrap_or_default());
        let of_claim = |place: &&Place| {
            let live = self.harness.find(&trigger_reference(**place));
            live.is_some_and(|live| live.str_at(&["metadata", "uid"]) == Some(&*claim.owner.trigger))
        };
        (key, self.world.triggers.keys().find(of_claim).copied())
    }

    /// What is made, by identity, foreign objects left out; they must be as they were.
    fn present(&self) -> BTreeMap<Id, Value> {
        let mut present = BTreeMap::new();
        let mut foreign: BTreeSet<&Id> = self.foreign.keys().collect();
        let roles = self.harness.list("rbac.authorization.k8s.io/v1", "ClusterRole");
        for object in self.harness.list("v1", "Secret").into_iter().chain(roles).filter(|object| !is_source(object)) {
            let id = id_of(&object);
            match self.foreign.get(&id) {
                Some(known) if *known != object => self.fail(&format!("the foreign object {id:?} was changed")),
                Some(_) => {
                    foreign.remove(&id);
                }
                None => {
                    present.insert(id, object);
                }
            }
        }
        if let Some(id) = foreign.first() {
            self.fail(&format!("the foreign object {id:?} is gone"));
        }
        present
    }

    /// One object that says it was made.
    fn check_made(&self, id: &Id, object: &Value, allowed: Option<&BTreeSet<String>>) {
        let Some(claim) = Claim::of(object) else { return };
        let Some(annotation) = &claim.annotation else { self.fail(&format!("{id:?} has no annotation")) };
        let (key, trigger) = self.claimed(&claim);
        let has_last_word = |rule: &Rule| {
            if (annotation.synchronize, annotation.orphan) != (rule.synchronize, rule.orphan) {
                self.fail(&format!("{id:?} does not say what its rule says: {annotation:?}"));
            }
        };
        match self.rule_of(&claim) {
            Some(_) if by_end(&claim) && trigger.is_some() => {
                self.fail(&format!("{id:?} was made by an end, and the trigger is there"));
            }
            Some(rule) if by_end(&claim) || trigger.is_some_and(|place| self.world.keeps(key, place)) => {
                has_last_word(rule);
            }
            // A rule that only events can be judged by lets alone what another of its name left.
            Some(rule) if rule.on_end && rule.synchronize => has_last_word(rule),
            Some(rule) if rule.synchronize => {
                let said = content(object);
                match allowed {
                    None => self.fail(&format!("{id:?} is there and nobody wants it")),
                    Some(allowed) if !allowed.contains(&said) => {
                        self.fail(&format!("{id:?} says {said} and not {allowed:?}"));
                    }
                    Some(_) => {}
                }
                has_last_word(rule);
            }
            Some(_) => {
                if annotation.synchronize {
                    self.fail(&format!("{id:?} does not say that it is on its own"));
                }
            }
            None => {
                let stays = !annotation.synchronize || annotation.orphan || annotation.form == Form::Clone;
                if !stays && !self.spared.contains(&owner(&claim)) {
                    self.fail(&format!("{id:?} has outlived its rule"));
                }
            }
        }
    }

    pub(super) fn check(&mut self) {
        let expected = self.world.expected();
        let present = self.present();
        for (id, object) in &present {
            self.check_made(id, object, expected.allowed.get(id));
        }
        for id in &expected.required {
            if !present.contains_key(id) {
                self.fail(&format!("{id:?} is not there"));
            }
        }
        for (id, (said, owner)) in &self.kept {
            match present.get(id) {
                // A rule that synchronizes took it over, and perhaps let it go again.
                _ if self.wished.contains(id) || owner.as_ref().is_some_and(|o| self.synchronized.contains(o)) => {}
                None => self.fail(&format!("{id:?} is gone, and it was nobody's to take away")),
                Some(object) if content(object) != *said => self.fail(&format!("{id:?} was nobody's to change")),
                Some(_) => {}
            }
        }
        for (id, said) in self.ends.due() {
            match present.get(id).map(content) {
                None => self.fail(&format!("{id:?} was made by an end, or should be, and is not there")),
                Some(says) if says != said => self.fail(&format!("{id:?} was made by an end and says {says}")),
                Some(_) => {}
            }
        }
        for (id, (.., said)) in &self.let_off {
            if present.get(id).map(content).as_ref() != Some(said) {
                self.fail(&format!("an exception keeps {id:?} as it is"));
            }
        }
        self.check_boards();
        if self.harness.pending_requests() > 0 {
            let requests: Vec<String> =
                self.harness.list("kyverno.io/v2", "UpdateRequest").iter().map(Value::to_json).collect();
            self.fail(&format!("requests are left:\n{}", requests.join("\n")));
        }
        self.check_given_up();
        self.check_peace();
        let stays = |object: &Value| {
            let claim = Claim::of(object);
            let rule = claim.as_ref().and_then(|claim| self.rule_of(claim));
            rule.is_none_or(|rule| !rule.synchronize).then(|| (content(object), claim.as_ref().map(owner)))
        };
        self.kept = present.iter().filter_map(|(id, object)| Some((id.clone(), stays(object)?))).collect();
        self.wished.clear();
        self.synchronized.clear();
        self.world.lifted.clear();
        self.note_what_stays(&present);
    }

    /// What is there for good: what ends made, and what exceptions keep.
    fn note_what_stays(&mut self, present: &BTreeMap<Id, Value>) {
        let (mut ended, mut let_off) = (BTreeMap::new(), BTreeMap::new());
        for (id, object) in present {
            let Some(claim) = Claim::of(object) else { continue };
            let Some(rule) = self.rule_of(&claim) else { continue };
            // What several triggers or rules render changes hands.
            let one_of_a_kind = !matches!(rule.shape, Shape::Shared | Shape::List);
            match self.claimed(&claim) {
                (key, None) if by_end(&claim) && rule.on_end => {
                    ended.insert(id.clone(), (key, content(object)));
                }
                (key, Some(place)) if one_of_a_kind && self.world.keeps(key, place) => {
                    let_off.insert(id.clone(), (key, place, content(object)));
                }
                _ => {}
            }
        }
        self.ends.settle(ended);
        self.let_off = let_off;
    }

    fn check_boards(&mut self) {
        for space in SPACES {
            let board =
                format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: board-{space}, namespace: {BOARDS}}}}}");
            let board = self.harness.find(&board).unwrap();
            for name in TRIGGERS {
                let written = board.str_at(&["data", name]).map(str::to_owned);
                if let Err(error) = self.marks.settle((space, name), written) {
                    self.fail(&error);
                }
            }
        }
    }

    /// A second pass writes nothing, nor does one by a controller that knows nothing.
    fn check_peace(&mut self) {
        let revision = self.harness.cluster.revision();
        self.harness.controller.resync(self.harness.now);
        self.harness.settle();
        let newer = self.newer_than(revision);
        if !newer.is_empty() {
            self.fail(&format!("a second pass writes {newer}"));
        }
        let view = self.view(false);
        self.harness.restart_over(view);
        self.harness.settle();
        let newer = self.newer_than(revision);
        if !newer.is_empty() {
            self.fail(&format!("a second pass after a restart writes {newer}"));
        }
    }

    /// What a rule without `synchronize` made and somebody deleted does not come back by itself.
    pub(super) fn deleted_stays_deleted(&mut self) {
        let alone = |object: &Value| {
            let claim = Claim::of(object)?;
            let rule = self.rule_of(&claim)?;
            (!rule.synchronize).then(|| object.clone())
        };
        let made: Vec<Value> = self.made().iter().filter_map(alone).collect();
        let expected = self.world.expected();
        let Some(victim) = made.into_iter().find(|o| {
            let id = id_of(o);
            !expected.allowed.contains_key(&id) && !self.foreign.contains_key(&id)
        }) else {
            return;
        };
        let id = id_of(&victim);
        self.log.push(format!("{id:?} is deleted for good"));
        self.kept.remove(&id);
        self.ends.touched(|of| *of == id);
        self.delete_made(&victim);
        self.harness.settle();
        if self.present().contains_key(&id) {
            self.fail(&format!("{id:?} came back"));
        }
        let view = self.view(false);
        self.harness.restart_over(view);
        self.harness.settle();
        if self.present().contains_key(&id) {
            self.fail(&format!("{id:?} came back after a restart"));
        }
    }
}
