//! Policies, and the work that their changes ask for.

use std::collections::BTreeSet;
use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_expr::Str;

use super::memory::State;
use super::names::{label_parts, policy_key};
use super::objects::gvk_of;
use crate::background::index::GroupKind;
use crate::background::queue::{Moment, Task, WorkKey};
use crate::background::rules::{PolicyInfo, may_match, with_api_versions};
use crate::policies::{PolicyKey, Snapshot};

impl State {
    /// Takes in what is served. A policy that leaves a group to discovery may mean another one now.
    pub fn observe_discovery(&mut self, discovery: Arc<Discovery>, now: Moment) {
        self.discovery = discovery;
        let known = self.infos.len();
        let (policies, discovery) = (&self.snapshot.policies, &self.discovery);
        self.infos.retain(|key, info| {
            policies.get(key).is_none_or(|policy| with_api_versions(&policy.document, discovery) == info.completed)
        });
        if self.infos.len() != known {
            self.observe_policies(Arc::clone(&self.snapshot), now);
        }
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
                let mut info = PolicyInfo::of(policy, &self.discovery)?;
                if info.since.is_empty() {
                    // Nobody says when the policy changed: it was before now.
                    info.since = time_text(now);
                }
                Some(Arc::new(info))
            });
            if let Some(info) = info {
                self.infos.insert(key.clone(), info);
            }
        }
        self.snapshot = snapshot;
        let keys: BTreeSet<PolicyKey> = old.keys().chain(self.infos.keys()).cloned().collect();
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
            if after.is_none() {
                self.failures.remove(&key);
            }
            self.enqueue_policy(&key, now);
            if after.as_ref().is_some_and(|info| info.once_for_existing()) && !unchanged {
                self.queue.add(Task::Existing(key), now);
            }
        }
    }

    /// Asks for everything that a policy may have to do with.
    pub fn enqueue_policy(&mut self, key: &PolicyKey, now: Moment) {
        let (namespace, name) = label_parts(key);
        let mut triggers: BTreeSet<Str> = self.index.triggers_of(namespace, name).into_iter().collect();
        let from = WorkKey { policy: key.clone(), trigger: Str::default() };
        triggers
            .extend(self.rendered.range(from..).take_while(|(k, _)| k.policy == *key).map(|(k, _)| k.trigger.clone()));
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

    /// Asks for everything once more.
    pub fn enqueue_all(&mut self, now: Moment) {
        let mut keys: BTreeSet<PolicyKey> = self.infos.keys().cloned().collect();
        keys.extend(self.index.policies().into_iter().map(|(namespace, name)| policy_key(&namespace, &name)));
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
