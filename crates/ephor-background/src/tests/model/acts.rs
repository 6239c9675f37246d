//! What users and others do.

use ephor_cluster::{Cluster, DeleteOptions, WriteOptions};
use ephor_expr::Value;
use ephor_runtime::watcher::StoreEvent;

use super::simulation::Simulation;
use super::world::{
    Id, MARK, Marking, Place, Rule, RuleKey, SOURCES, SPACES, Shape, TRIGGERS, exception_document, exception_reference,
    marking_document, namespace_of, policy_document, policy_reference, source_document, space_document,
    trigger_document, trigger_reference,
};
use crate::plan::ObjectId;

impl Simulation {
    /// A namespace for triggers, if there is none.
    pub(super) fn space(&mut self, space: &'static str) {
        if !self.world.spaces.contains_key(space) {
            let golden = self.chaos.one_in(2);
            self.harness.apply_object(&space_document(space, golden));
            self.world.spaces.insert(space, golden);
        }
    }

    pub(super) fn set_trigger(&mut self, place: Place) {
        self.space(place.0);
        let trigger = super::draw::trigger(self, place);
        self.log.push(format!("{place:?} = {trigger:?}"));
        let refused = self.chaos.one_in(10) && !self.harness.admission.is_closed();
        if self.chaos.one_in(6) {
            self.look_too_early();
        }
        if refused {
            self.harness.admission.refuse(true);
            self.attempt(&trigger_document(place, &trigger));
            self.harness.admission.refuse(false);
            // What was asked is about nothing, or about what was there before.
            let before = self.world.triggers.get(&place);
            self.marks.unsettled(place, self.world.marking.as_ref(), before);
            return;
        }
        self.harness.apply_object(&trigger_document(place, &trigger));
        let open = !self.harness.admission.is_closed();
        let on = trigger.on;
        self.world.triggers.insert(place, trigger.clone());
        if open {
            self.world.ask(place);
        } else {
            self.world.forget_asked(|_, _, of| of == place);
        }
        let counts = self.world.counts(MARK, place);
        match self.world.marking.as_ref() {
            Some(marking) if open && on && counts => self.marks.asked(place, marking, &trigger),
            marking => self.marks.unsettled(place, marking, Some(&trigger)),
        }
    }

    /// Creates or replaces an object in vain.
    pub(super) fn attempt(&mut self, object: &Value) {
        self.harness.tick(1_000);
        let resource = self.harness.resource(object);
        let result = match self.harness.read(object) {
            None => self.harness.cluster.create(&resource, object.clone(), &WriteOptions::default()),
            Some(_) => self.harness.cluster.update(&resource, object.clone(), &WriteOptions::default()),
        };
        assert!(result.as_ref().is_err_and(|error| error.code() == 403), "{result:?}");
    }

    /// The controller sees the next write's requests, and works, before the write itself is stored.
    pub(super) fn look_too_early(&mut self) {
        let (controller, cluster, now) =
            (self.harness.controller.clone(), self.harness.cluster.clone(), self.harness.now);
        self.harness.admission.between(move || {
            let resource = cluster.resolve("kyverno.io/v2", "UpdateRequest").unwrap();
            let requests = cluster.list(&resource, &ephor_cluster::ListQuery::all()).unwrap().items;
            for request in requests {
                controller.observe_requests(StoreEvent::Apply(request), now);
            }
            for _ in 0..8 {
                controller.step(now);
            }
        });
    }

    pub(super) fn delete_trigger(&mut self, place: Place) {
        if self.world.triggers.contains_key(&place) {
            self.owe(place);
            self.harness.delete(&trigger_reference(place));
            self.world.triggers.remove(&place);
            self.world.forget_asked(|_, _, of| of == place);
            self.marks.unsettled(place, None, None);
        }
    }

    /// A trigger is about to end.
    fn owe(&mut self, place: Place) {
        if self.harness.admission.is_closed() {
            return;
        }
        for (key, rule, id, said) in self.world.at_end(place) {
            // Whether a namespace is golden is looked up when the work is done.
            if !rule.golden && self.world.counts(key, place) {
                self.ends.owe(key, id, said);
            }
        }
    }

    /// Somebody else refuses to let a trigger go.
    pub(super) fn delete_in_vain(&mut self, place: Place) {
        if self.harness.admission.is_closed() || !self.world.triggers.contains_key(&place) {
            return;
        }
        self.harness.tick(1_000);
        self.harness.admission.refuse(true);
        let resource = self.harness.cluster.resolve("v1", "ConfigMap").unwrap();
        let result = self.harness.cluster.delete(&resource, Some(place.0), place.1, &DeleteOptions::default());
        self.harness.admission.refuse(false);
        assert!(result.as_ref().is_err_and(|error| error.code() == 403), "{result:?}");
    }

    /// An exception comes, or is about something else from now on.
    pub(super) fn except(&mut self, name: &'static str, key: RuleKey, place: Place) {
        self.log.push(format!("exception {name}: {key:?} {place:?}"));
        self.harness.apply_object(&exception_document(name, key, place));
        let before = self.world.exceptions.insert(name, (key, place));
        self.world.lifted.extend(before);
        self.world.forget_asked(|of, _, at| (of, at) == (key, place));
        self.ends.unsettle(|of| of == key);
        for (_, place) in before.into_iter().chain([(key, place)]).filter(|(key, _)| *key == MARK) {
            self.marks.unsettled(place, self.world.marking.as_ref(), self.world.triggers.get(&place));
        }
    }

    /// An exception goes.
    pub(super) fn lift(&mut self, name: &'static str) {
        if let Some(before) = self.world.exceptions.remove(name) {
            self.log.push(format!("exception {name} goes"));
            self.harness.delete(&exception_reference(name));
            self.world.lifted.insert(before);
        }
    }

    /// The objects of a policy are applied on the other side.
    pub(super) fn apply_elsewhere(&mut self, policy: &'static str) {
        if !self.world.server_side.remove(policy) {
            self.world.server_side.insert(policy);
        }
        if let Some(rules) = self.world.policies.get(policy).cloned() {
            self.harness.apply_object(&self.policy(policy));
            self.world.ask_existing(policy, &rules);
        }
    }

    /// A policy as it is now.
    fn policy(&self, policy: &str) -> Value {
        policy_document(policy, &self.world.policies[policy], self.world.server_side.contains(policy))
    }

    pub(super) fn set_rule(&mut self, (policy, name): (&'static str, &'static str)) {
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
        let rules = self.world.policies.entry(policy).or_default().clone();
        let before = self.policy(policy);
        self.world.policies.entry(policy).or_default().insert(name, rule);
        let after = self.policy(policy);
        self.ends.unsettle(|key| key == (policy, name));
        self.harness.apply_object(&after);
        // What is written again as it is means nothing.
        if before != after {
            self.world.ask_existing(policy, &rules);
        }
    }

    pub(super) fn delete_rule(&mut self, (policy, name): (&'static str, &'static str)) {
        let Some(rules) = self.world.policies.get_mut(policy) else { return };
        if rules.len() < 2 {
            return;
        }
        if let Some(rule) = rules.remove(name) {
            self.last_word(policy, name, &rule);
            self.ends.rule_gone((policy, name));
            self.harness.apply_object(&self.policy(policy));
            let rules = self.world.policies[policy].clone();
            self.world.ask_existing(policy, &rules);
        }
    }

    pub(super) fn delete_policy(&mut self, policy: &'static str) {
        if let Some(rules) = self.world.policies.remove(policy) {
            for (name, rule) in &rules {
                self.last_word(policy, name, rule);
                self.ends.rule_gone((policy, name));
            }
            self.harness.delete(&policy_reference(policy));
            self.world.ask_existing(policy, &rules);
        }
    }

    pub(super) fn last_word(&mut self, policy: &str, name: &str, rule: &Rule) {
        if !rule.synchronize || rule.orphan || rule.shape == Shape::Clone {
            self.spared.insert((policy.to_owned(), name.to_owned()));
        }
    }

    pub(super) fn set_source(&mut self, key: (&'static str, &'static str)) {
        let namespace = namespace_of(key.0).unwrap_or(SOURCES);
        let listed = self.chaos.next(3);
        let suffix = if listed == 0 { String::new() } else { format!("-{listed}") };
        let source = (namespace.to_owned(), format!("source-{}-{}{suffix}", key.0, key.1));
        let value = self.chaos.next(1000);
        self.harness.apply_object(&source_document(&source, key, value));
        if self.world.sources.insert(source, (key, value)).is_none() {
            self.world.forget_asked(|of, _, _| of == key);
        }
    }

    pub(super) fn delete_source(&mut self, key: (&'static str, &'static str)) {
        let found = self.world.sources.iter().find(|(_, (of, _))| *of == key).map(|(source, _)| source.clone());
        if let Some((namespace, name)) = found {
            self.harness.delete(&format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: {namespace}}}}}"
            ));
            self.world.sources.remove(&(namespace, name));
            self.world.forget_asked(|of, _, _| of == key);
        }
    }

    pub(super) fn relabel(&mut self, space: &'static str) {
        let golden = self.chaos.one_in(2);
        if self.world.spaces.contains_key(space) {
            self.harness.apply_object(&space_document(space, golden));
            self.world.spaces.insert(space, golden);
            self.world.forget_asked(|_, rule, of| rule.golden && of.0 == space);
        }
    }

    pub(super) fn mark(&mut self) {
        if self.world.marking.is_some() && self.chaos.one_in(4) {
            self.world.marking = None;
            self.harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: brown}}");
        } else {
            let marking = Marking { on_policy_update: self.chaos.one_in(2), value: self.chaos.next(1000) };
            self.harness.apply_object(&marking_document(&marking));
            // Applying the same policy again makes no new generation, so existing triggers are not visited again.
            if self.world.marking.as_ref() == Some(&marking) {
                return;
            }
            self.world.marking = Some(marking);
        }
        let marking = self.world.marking.as_ref();
        for space in SPACES {
            for name in TRIGGERS {
                let place = (space, name);
                let trigger = self.world.triggers.get(&place);
                self.marks.unsettled(place, marking, trigger);
                let counts = self.world.counts(MARK, place);
                if let (Some(marking), Some(trigger)) =
                    (marking.filter(|m| m.on_policy_update && counts), trigger.filter(|t| t.on))
                {
                    self.marks.asked(place, marking, trigger);
                }
            }
        }
    }

    /// Admission goes down or comes back.
    pub(super) fn doors(&mut self) {
        let closed = !self.harness.admission.is_closed();
        self.log.push(format!("admission is down: {closed}"));
        self.harness.admission.close(closed);
    }

    /// A namespace goes, with all that is in it.
    pub(super) fn drop_space(&mut self) {
        let space = "two";
        if self.world.spaces.remove(space).is_none() {
            return;
        }
        self.log.push(format!("{space} goes"));
        self.harness.delete(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {space}}}}}"));
        self.harness.cluster.reconcile();
        self.world.triggers.retain(|place, _| place.0 != space);
        self.world.forget_asked(|_, _, of| of.0 == space);
        self.foreign.retain(|id, _| id.1 != space);
        self.kept.retain(|id, _| id.1 != space);
        self.ends.touched(|id| id.1 == space);
        for name in TRIGGERS {
            self.marks.unsettled((space, name), None, None);
        }
    }

    /// Somebody changes or deletes what was made.
    pub(super) fn tamper(&mut self) {
        let made = self.made();
        if made.is_empty() {
            return;
        }
        let mut victim = made[usize::try_from(self.chaos.next(made.len() as u64)).unwrap()].clone();
        let id = super::check::id_of(&victim);
        self.log.push(format!("tamper with {id:?}"));
        self.kept.remove(&id);
        self.let_off.remove(&id);
        self.ends.touched(|of| *of == id);
        match self.chaos.next(3) {
            0 => self.delete_made(&victim),
            1 => {
                if let Some(members) = victim.as_object_mut() {
                    members.insert("data", Value::from([("k", Value::from("tampered"))]));
                }
                self.harness.apply_object(&victim);
            }
            _ => {
                ephor_runtime::content::set_entry(&mut victim, "labels", "by-hand", Some("yes"));
                self.harness.apply_object(&victim);
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
        self.harness.delete(&format!(
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
    pub(super) fn forge(&mut self, space: &'static str) {
        let made: Vec<Value> = self.made().into_iter().filter(|o| o.str_at(&["kind"]) == Some("Secret")).collect();
        if made.is_empty() || !self.world.spaces.contains_key(space) {
            return;
        }
        let mut copy = made[usize::try_from(self.chaos.next(made.len() as u64)).unwrap()].clone();
        for key in ["uid", "resourceVersion", "creationTimestamp"] {
            ephor_runtime::content::set_meta(&mut copy, key, None);
        }
        let name = format!("foreign-{}", self.log.len());
        ephor_runtime::content::set_meta(&mut copy, "name", Some(name.as_str().into()));
        ephor_runtime::content::set_meta(&mut copy, "namespace", Some(space.into()));
        let stored = self.harness.cluster_create(&copy);
        self.foreign.insert(Id("Secret", space.to_owned(), name), stored);
    }
}
