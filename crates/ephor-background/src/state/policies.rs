//! Takes in changed policies and enqueues the work they cause.

use std::collections::BTreeSet;
use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_expr::Str;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::policies::{PolicyId, Snapshot};
use ephor_runtime::queue::Moment;

use super::memory::State;
use super::objects::gvk_of;
use crate::conditions::says_failing;
use crate::queue::{Task, WorkKey};
use crate::rule_activation;
use crate::rules::{PolicyInfo, may_match};

/// How long, in milliseconds, after a policy is seen to have failed: what still fails has failed again by then.
const RECENT_REQUESTS: Moment = 15_000;

impl State {
    /// Takes in what is served. A policy that leaves a group to discovery may mean another one now.
    pub fn observe_discovery(&mut self, discovery: Arc<Discovery>, now: Moment) {
        self.discovery = discovery;
        let known = self.infos.len();
        let (policies, discovery) = (&self.snapshot.policies, &self.discovery);
        self.infos
            .retain(|key, info| policies.get(key).is_none_or(|policy| info.is_up_to_date(&policy.document, discovery)));
        if self.infos.len() != known {
            self.observe_policies(Arc::clone(&self.snapshot), now);
        }
        self.follow();
    }

    /// Takes in the policies as they are now.
    pub fn observe_policies(&mut self, snapshot: Arc<Snapshot>, now: Moment) {
        let exceptions_changed = !Arc::ptr_eq(&snapshot.exceptions, &self.snapshot.exceptions);
        let old = std::mem::take(&mut self.infos);
        for (key, policy) in &snapshot.policies {
            let same = |info: &&Arc<PolicyInfo>| {
                let program = match (&info.program, &policy.program) {
                    (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                    (None, None) => true,
                    _ => false,
                };
                program && info.generation == policy.generation() && info.uid == policy.uid()
            };
            let info = old.get(key).filter(same).cloned().or_else(|| {
                let known = old.get(key).map(Arc::as_ref);
                Some(Arc::new(PolicyInfo::of(policy, &self.discovery, known, || time_text(now))?))
            });
            if let Some(info) = info {
                self.infos.insert(key.clone(), info);
            }
        }
        self.snapshot = snapshot;
        let keys: BTreeSet<PolicyId> = old.keys().chain(self.infos.keys()).cloned().collect();
        for key in keys {
            let (before, after) = (old.get(&key), self.infos.get(&key).cloned());
            let unchanged = matches!((before, &after), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
            if unchanged && !exceptions_changed {
                continue;
            }
            for rule in before.iter().flat_map(|info| &info.generate) {
                self.former.insert((key.clone(), rule.name.clone()), rule.terms.clone());
            }
            for rule in after.iter().flat_map(|info| &info.generate) {
                self.former.remove(&(key.clone(), rule.name.clone()));
            }
            if let Some(info) = after.as_ref().filter(|_| !unchanged) {
                if let Some(before) = before {
                    self.await_changes(before, info);
                }
                self.policy_changed(info, now);
            }
            self.enqueue_policy(&key, now);
            if !unchanged {
                self.forget_policy(&key, after.as_deref(), now);
            }
            if after.as_ref().is_some_and(|info| info.once_for_existing()) && !unchanged {
                self.queue.add(Task::Existing(key), now);
            }
        }
        self.follow();
    }

    /// A policy is new, or says something else: what its status says may be true no more.
    fn policy_changed(&mut self, info: &PolicyInfo, now: Moment) {
        self.answer_for_given_up(info, now);
        let Some(policy) = self.snapshot.policies.get(&info.key) else { return };
        if !rule_activation::are_noted(&policy.document, info.activations()) {
            self.queue.add(Task::Note(info.key.clone()), now);
        }
        if says_failing(&policy.document) {
            self.queue.add_at(Task::Report(info.key.clone()), now + RECENT_REQUESTS, now);
        }
    }

    /// Enqueues all work of a policy.
    pub fn enqueue_policy(&mut self, key: &PolicyId, now: Moment) {
        let mut triggers: BTreeSet<Str> = self.index.triggers_of(key).into_iter().collect();
        triggers.extend(self.ownership.triggers_of(key).cloned());
        triggers.extend(self.contexts.keys_of(key).map(|key| key.trigger.clone()));
        if let Some(info) = self.infos.get(key) {
            let kinds: Vec<GroupKind> = self.index.kinds().cloned().collect();
            for rule in info.generate.iter().filter(|rule| rule.terms.synchronize) {
                for kind in &kinds {
                    let seen = self.index.of_kind(kind).filter(|seen| {
                        may_match(rule.kinds.as_deref(), &gvk_of(seen))
                            && info.sees(&seen.id.namespace)
                            && self.in_force(info, rule, seen)
                    });
                    triggers.extend(seen.map(|seen| seen.uid.clone()));
                }
            }
        }
        for trigger in triggers {
            self.queue.add(Task::Reconcile(WorkKey { policy: key.clone(), trigger }), now);
        }
    }

    /// Enqueues everything again.
    pub fn enqueue_all(&mut self, now: Moment) {
        let mut keys: BTreeSet<PolicyId> = self.infos.keys().cloned().collect();
        keys.extend(self.index.policies());
        for key in keys {
            self.enqueue_policy(&key, now);
        }
    }
}

/// A moment as Kubernetes writes times.
fn time_text(moment: Moment) -> Str {
    let time = i64::try_from(moment).ok().and_then(|moment| jiff::Timestamp::from_millisecond(moment).ok());
    time.unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}
