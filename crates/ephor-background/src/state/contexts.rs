//! Stored requests, for rules that read request data: the user, the operation, the old object.
//!
//! Each is the last stored request for a rule and a trigger, and is kept as long as the trigger exists. The
//! `UpdateRequest` stays in the cluster for as long, in Ephor's own namespace and marked as kept, so that a controller
//! that starts again finds it. A user who can edit a downstream cannot change whose request it was made for.

use std::collections::BTreeMap;
use std::sync::Arc;

use ephor_expr::{Str, Value};
use ephor_runtime::policies::PolicyId;
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::{LABEL_KEPT, UpdateRequest};

use super::memory::State;
use crate::queue::{Task, WorkKey};
use crate::requests::trigger_key;
use crate::rules::GenerateInfo;
use crate::trigger::{TriggerRef, admission_request};

/// The requests, by key and rule.
#[derive(Debug, Default)]
pub struct Contexts {
    by_key: BTreeMap<WorkKey, BTreeMap<Str, Arc<UpdateRequest>>>,
    /// How many rules need a request, by its name.
    uses: BTreeMap<Str, usize>,
}

impl Contexts {
    /// The request of a key and a rule.
    pub fn get(&self, key: &WorkKey, rule: &str) -> Option<&Arc<UpdateRequest>> {
        self.by_key.get(key)?.get(rule)
    }

    /// The keys of a policy for which there are requests.
    pub fn keys_of(&self, policy: &PolicyId) -> impl Iterator<Item = &WorkKey> {
        let from = WorkKey { policy: policy.clone(), trigger: Str::default() };
        self.by_key.range(from..).map(|(key, _)| key).take_while(move |key| key.policy == *policy)
    }

    /// The trigger of a key.
    pub fn trigger(&self, key: &WorkKey) -> Option<TriggerRef> {
        let contexts = self.by_key.get(key)?.values().flat_map(|request| &request.spec.rule_context);
        contexts.map(|context| &context.trigger).find(|t| trigger_key(t) == key.trigger).map(TriggerRef::of_spec)
    }

    /// The names of the requests that are remembered for a key.
    pub fn names(&self, key: &WorkKey) -> impl Iterator<Item = &Str> {
        self.by_key.get(key).into_iter().flat_map(BTreeMap::values).map(|request| &request.metadata.name)
    }

    /// Whether a request is the last one for a rule.
    pub fn needs(&self, name: &str) -> bool {
        self.uses.contains_key(name)
    }

    fn used(&mut self, name: &Str) {
        *self.uses.entry(name.clone()).or_default() += 1;
    }

    /// The name, if no rule needs that request any more.
    fn unused(&mut self, name: &Str) -> Option<Str> {
        let uses = self.uses.get_mut(name)?;
        *uses -= 1;
        (*uses == 0).then(|| self.uses.remove(name)).flatten().map(|_| name.clone())
    }
}

impl State {
    /// Remembers a request for a rule, unless it knows a later one; whether it does not.
    pub fn remember(&mut self, key: &WorkKey, rule: &Str, request: &Arc<UpdateRequest>, now: Moment) -> bool {
        let rules = self.contexts.by_key.entry(key.clone()).or_default();
        if rules.get(rule).is_some_and(|known| order(known) > order(request)) {
            return false;
        }
        let before = rules.insert(rule.clone(), Arc::clone(request));
        self.contexts.used(&request.metadata.name);
        let unused = before.and_then(|before| self.contexts.unused(&before.metadata.name));
        self.let_go(unused, now);
        true
    }

    /// Forgets the requests of a key for rules that do not need one.
    pub fn forget_contexts(&mut self, key: &WorkKey, needs: impl Fn(&str) -> bool, now: Moment) {
        let Some(rules) = self.contexts.by_key.get_mut(key) else { return };
        let mut gone = Vec::new();
        rules.retain(|rule, request| {
            let stays = needs(rule);
            if !stays {
                gone.push(request.metadata.name.clone());
            }
            stays
        });
        if rules.is_empty() {
            self.contexts.by_key.remove(key);
        }
        for name in gone {
            let unused = self.contexts.unused(&name);
            self.let_go(unused, now);
        }
    }

    /// A request that no rule needs any more ends like all others.
    fn let_go(&mut self, name: Option<Str>, now: Moment) {
        if let Some(name) = name.filter(|name| self.requests.kept(name).is_some()) {
            self.queue.add(Task::Collect(name), now);
        }
    }

    /// Takes in a kept or finished request. After a restart, this is where they are found.
    pub(super) fn recall(&mut self, object: &Value, now: Moment) {
        let Ok(request) = UpdateRequest::from_value(object) else { return };
        let Some(admission) = admission_request(&request).filter(|a| a.sub_resource.is_empty()) else { return };
        let (request, kept) = (Arc::new(request), is_kept(object));
        let policy = request.policy_id();
        for context in request.spec.rule_context.iter().filter(|context| !context.delete_downstream) {
            let key = WorkKey { policy: policy.clone(), trigger: trigger_key(&context.trigger) };
            let rule = self.infos.get(&policy).and_then(|info| info.rule(&context.rule));
            if rule.is_some_and(|rule| is_too_large(rule, &request)) {
                continue;
            }
            let needed = rule.is_some_and(|r| r.terms.synchronize && r.traits.remembers(admission.operation));
            let known = self.contexts.get(&key, &context.rule).is_some();
            // A kept request without use is found when its key is reconciled.
            if (needed || kept) && self.remember(&key, &context.rule, &request, now) && !known {
                self.queue.add(Task::Reconcile(key), now);
            }
        }
    }
}

/// The largest object before a request that is kept for a rule that reads it, in bytes of JSON. The controller holds
/// every kept request, and their authors have no quota for them.
const LARGEST_OLD_OBJECT: usize = 16 * 1024;

/// Whether a request is too large to be kept for a rule.
pub fn is_too_large(rule: &GenerateInfo, request: &UpdateRequest) -> bool {
    rule.traits.reads_old
        && request
            .spec
            .context
            .admission_request_info
            .admission_request
            .get("oldObject")
            .is_some_and(|old| old.to_json().len() > LARGEST_OLD_OBJECT)
}

/// Whether a request is kept.
pub(super) fn is_kept(object: &Value) -> bool {
    object.at(&["metadata", "labels", LABEL_KEPT]).is_some()
}

/// Which of two requests about a trigger came later: times have whole seconds, within one the version before tells.
fn order(request: &UpdateRequest) -> (&Str, u64) {
    let admission = &request.spec.context.admission_request_info.admission_request;
    let before = admission.str_at(&["oldObject", "metadata", "resourceVersion"]);
    (&request.metadata.creation_timestamp, before.and_then(|version| version.parse().ok()).unwrap_or(0))
}
