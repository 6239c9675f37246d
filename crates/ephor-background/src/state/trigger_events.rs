//! What events said about keys: which trigger they named, and which rules they brought into force for it.

use std::collections::{BTreeMap, BTreeSet};

use ephor_expr::Str;
use ephor_runtime::policies::PolicyId;

use crate::queue::WorkKey;
use crate::trigger::TriggerRef;

/// What events said, by key.
#[derive(Debug, Default)]
pub struct TriggerEvents {
    named: BTreeMap<WorkKey, TriggerRef>,
    forced: BTreeMap<WorkKey, BTreeSet<Str>>,
}

impl TriggerEvents {
    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.forced.is_empty()
    }

    /// Remembers the trigger that an event named.
    pub fn name(&mut self, key: &WorkKey, trigger: TriggerRef) {
        self.named.insert(key.clone(), trigger);
    }

    /// The trigger that an event named.
    pub fn trigger(&self, key: &WorkKey) -> Option<&TriggerRef> {
        self.named.get(key)
    }

    /// Brings rules into force.
    pub fn force(&mut self, key: &WorkKey, rules: impl IntoIterator<Item = Str>) {
        self.forced.entry(key.clone()).or_default().extend(rules);
    }

    /// The rules that events brought into force.
    pub fn forced(&self, key: &WorkKey) -> Option<&BTreeSet<Str>> {
        self.forced.get(key)
    }

    /// No rule is in force any more because of an event.
    pub fn unforce(&mut self, key: &WorkKey) {
        self.forced.remove(key);
    }

    /// Forgets the trigger that an event named.
    pub fn unname(&mut self, key: &WorkKey) {
        self.named.remove(key);
    }

    /// Forgets a key.
    pub fn forget(&mut self, key: &WorkKey) {
        self.unname(key);
        self.unforce(key);
    }

    /// Forgets the keys of a policy.
    pub fn forget_policy(&mut self, policy: &PolicyId) {
        self.named.retain(|key, _| key.policy != *policy);
        self.forced.retain(|key, _| key.policy != *policy);
    }
}
