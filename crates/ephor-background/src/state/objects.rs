//! Takes in watch events about objects and enqueues the work they cause.

use std::collections::BTreeSet;

use ephor_engine::matching::{Gvk, ResourceFilters};
use ephor_expr::Value;
use ephor_runtime::content::Written;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::queue::Moment;
use ephor_runtime::watcher::StoreEvent;

use super::memory::State;
use crate::index::{Seen, Touched};
use crate::plan::{ObjectId, Owner};
use crate::queue::{Task, WorkKey};
use crate::rules::{GenerateInfo, PolicyInfo, may_match};

impl State {
    /// Takes in what a watcher says of a kind.
    pub fn observe(&mut self, kind: &GroupKind, wide: bool, change: StoreEvent, now: Moment) {
        if matches!(change, StoreEvent::Reset(_)) {
            self.learned.remove(kind);
        }
        let begins = wide && !self.index.is_wide(kind);
        for touched in self.index.apply(kind, wide, change) {
            self.touched(&touched, now);
        }
        if begins && self.index.is_wide(kind) {
            // The watcher does not tell of objects that were read and then deleted before it began.
            self.enqueue_readers(kind, now);
        }
    }

    /// Takes in an object that was read or written. Objects without a watcher are not kept: their deletion would be
    /// missed.
    pub fn note(&mut self, object: &Value, now: Moment) {
        let seen = Seen::of(object);
        if self.is_followed(&seen) || self.index.find(&seen.id).is_some() {
            for touched in self.index.note(seen, object) {
                self.touched(&touched, now);
            }
        }
    }

    /// Takes in an object that this controller wrote, without enqueuing work for it.
    pub fn note_own(&mut self, written: Written, stored: &Value, now: Moment) {
        let seen = Seen::of(stored);
        if self.is_followed(&seen) {
            self.ownership.set_written(seen.id.clone(), written);
            for touched in self.index.note(seen, stored) {
                self.touched_as_input(&touched, now);
            }
        }
    }

    /// Takes in that an object is gone, which this controller found out or brought about itself. What was made for it
    /// must go, too: the watch will say nothing new.
    pub fn lose_own(&mut self, id: &ObjectId, now: Moment) {
        self.ownership.forget_object(id);
        let Some(uid) = self.index.find(id).map(|seen| seen.uid.clone()) else { return };
        if let Some(touched) = self.index.lose(&id.group_kind(), &uid) {
            self.touched_as_input(&touched, now);
        }
    }

    /// Takes in which triggers no policy sees. Those that were seen until now leave behind what was made for them.
    pub fn observe_filters(&mut self, filters: &ResourceFilters, now: Moment) {
        if self.filters != *filters {
            self.filters = filters.clone();
            self.enqueue_all(now);
        }
    }

    /// Whether no policy sees an object as a trigger.
    pub fn hides(&self, api_version: &str, id: &ObjectId) -> bool {
        self.filters.drops(&Gvk::new(api_version, &id.kind), "", &id.namespace, &id.name)
    }

    fn touched(&mut self, touched: &Touched, now: Moment) {
        let Some(seen) = touched.seen().cloned() else { return };
        let appeared = touched.before.is_none() || touched.after.is_none();
        if touched.after.is_none() {
            self.ownership.told_gone(&seen.id);
        }
        if touched.content_changed() {
            let owners = [&touched.before, &touched.after].into_iter().flatten().filter_map(Seen::owner);
            let owners: Vec<WorkKey> = owners.map(Owner::key).collect();
            for key in owners {
                self.queue.add(Task::Reconcile(key), now);
            }
        }
        if appeared || touched.content_changed() {
            for key in self.ownership.wanting(&seen.id) {
                self.queue.add(Task::Reconcile(key.clone()), now);
            }
        }
        self.touched_as_input(touched, now);
    }

    /// An object as trigger, as source, as namespace.
    fn touched_as_input(&mut self, touched: &Touched, now: Moment) {
        let Some(seen) = touched.seen().cloned() else { return };
        let kind = seen.id.group_kind();
        let keys = self.keys_of_trigger(&seen);
        let keys: BTreeSet<WorkKey> = keys.into_iter().chain(self.dependencies.readers_of(&seen.id).cloned()).collect();
        for key in keys {
            self.queue.add(Task::Reconcile(key), now);
        }
        if seen.terminating && kind.group.is_empty() && kind.kind == "Namespace" {
            self.collect_in(&seen.id.name, now);
        }
        if let Some(before) = touched.relabelled()
            && self.infos.values().any(|info| info.generate.iter().any(|r| r.traits.namespace_selector))
        {
            // Of changes that come before the first is looked at, the first counts.
            self.changed_labels.entry(seen.id.name.clone()).or_insert_with(|| before.clone());
            self.queue.add(Task::NamespaceLabels(seen.id.name), now);
        }
    }

    /// The labels of a namespace before and after a change; `None` if no rule reads them.
    pub fn take_changed_labels(&mut self, namespace: &str) -> Option<(Value, Value)> {
        let before = self.changed_labels.remove(namespace)?;
        let seen = self.index.find(&ObjectId::new("v1", "Namespace", "", namespace))?;
        Some((before, seen.labels.clone()))
    }

    /// Takes them back: they must be looked at again.
    pub fn put_changed_labels(&mut self, namespace: &str, before: Value) {
        self.changed_labels.insert(namespace.into(), before);
    }

    fn keys_of_trigger(&self, seen: &Seen) -> Vec<WorkKey> {
        let gvk = gvk_of(seen);
        let infos = self.infos.values().filter(|info| info.sees(&seen.id.namespace));
        infos
            .filter(|info| {
                info.generate.iter().any(|rule| {
                    rule.terms.synchronize && may_match(rule.kinds.as_deref(), &gvk) && self.in_force(info, rule, seen)
                })
            })
            .map(|info| WorkKey { policy: info.key.clone(), trigger: seen.uid.clone() })
            .collect()
    }

    /// Whether a synchronizing rule is bound to look after a trigger, without being asked. It is for triggers that
    /// came after it, for those that it made something for, and for all if it says so.
    pub fn in_force(&self, info: &PolicyInfo, rule: &GenerateInfo, seen: &Seen) -> bool {
        if self.hides(&seen.api_version, &seen.id) {
            return false;
        }
        let key = WorkKey { policy: info.key.clone(), trigger: seen.uid.clone() };
        let owns = || {
            let owned = self.index.owned(&key);
            owned.iter().any(|id| self.index.find(id).and_then(Seen::owner).is_some_and(|o| o.rule == rule.name))
        };
        let forced = self.events.forced(&key).is_some_and(|rules| rules.contains(&rule.name));
        let rendered = || self.ownership.rule_renders(&key, &rule.name);
        // A downstream that was rendered before stays wanted, also after a user has deleted it.
        if forced || rendered() || self.contexts.get(&key, &rule.name).is_some() {
            return true;
        }
        // What this controller made is no trigger, unless the rule says that it is.
        if rule.traits.skips_own && seen.downstream.is_some() {
            return owns();
        }
        rule.terms.existing || rule.activation.precedes(seen) || owns()
    }
}

pub(super) fn gvk_of(seen: &Seen) -> Gvk {
    Gvk::new(&seen.api_version, &seen.id.kind)
}
