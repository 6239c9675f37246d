//! Triggers that were there before: before their policy, or before their namespace got the labels that a rule asks for.
//!
//! A synchronizing rule with `generateExisting` looks after all its triggers anyway. One without acts once for each
//! generation of its policy, and so does a mutate-existing rule with `mutateExistingOnPolicyUpdate`; that it has done
//! so is a condition of the policy, so that a restart does not bring back what was deleted since.

use std::collections::BTreeMap;
use std::sync::Arc;

use ephor_cluster::discovery::priority;
use ephor_cluster::query::Filter;
use ephor_cluster::{ErrorKind, LabelSelector, ListQuery, Resource};
use ephor_engine::matching::KindSelector;
use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};

use super::conditions::acted_generation;
use super::index::GroupKind;
use super::queue::{Settled, Task, WorkKey};
use super::reconcile::{Asked, Failure, Pass};
use super::rules::{PolicyInfo, trigger_kinds};
use super::trigger::TriggerRef;
use crate::plan::claim::{MANAGED_BY, POLICY_NAME};
use crate::policies::PolicyKey;
use crate::update_request::{RuleContext, UpdateRequest, UpdateRequestSpec};

impl Pass<'_> {
    /// Lets the rules of a policy act for triggers that exist, if they have not done so for this generation.
    pub fn existing(&self, key: &PolicyKey) -> Settled {
        let (info, document) = {
            let state = self.lock();
            let document = state.snapshot.policies.get(key).map(|policy| policy.document.clone());
            (state.infos.get(key).cloned(), document)
        };
        let (Some(info), Some(document)) = (info, document) else { return Settled::Done };
        if !info.once_for_existing() || acted_generation(&document) == Some(info.generation) {
            return Settled::Done;
        }
        match self.act_for_existing(&info) {
            Ok(failures) if failures.is_empty() => {
                {
                    let mut state = self.lock();
                    state.set_failure(key, "existing triggers", None, self.now);
                    state.acted.retain(|(policy, _, _)| policy != key);
                }
                self.set_acted(key, info.generation)
            }
            Ok(failures) => {
                let more = failures.len() - 1;
                let first = failures.into_iter().next().map(|first| format!("{first} (and {more} more)"));
                self.lock().set_failure(key, "existing triggers", first, self.now);
                Settled::Failed
            }
            Err(Failure::Later(pause, _)) => Settled::Later(pause),
            Err(Failure::Lost) => Settled::Done,
            Err(Failure::Failed(message)) => {
                self.lock().set_failure(key, "existing triggers", Some(message), self.now);
                Settled::Failed
            }
        }
    }

    fn act_for_existing(&self, info: &Arc<PolicyInfo>) -> Result<Vec<String>, Failure> {
        let mut failures = Vec::new();
        let once: Vec<_> = info.generate.iter().filter(|rule| rule.terms.existing && !rule.terms.synchronize).collect();
        let mut triggers: BTreeMap<Str, (Value, Vec<Str>)> = BTreeMap::new();
        for rule in &once {
            for object in self.triggers(info, rule.kinds.as_deref(), None)? {
                if rule.traits.skips_own && crate::plan::Claim::of(&object).is_some() {
                    continue;
                }
                let uid = Str::new(object.str_at(&["metadata", "uid"]).unwrap_or_default());
                triggers.entry(uid).or_insert_with(|| (object, Vec::new())).1.push(rule.name.clone());
            }
        }
        for (uid, (object, rules)) in triggers {
            let acted = (info.key.clone(), info.generation, uid.clone());
            if self.lock().acted.contains(&acted) {
                continue;
            }
            let trigger = crate::update_request::ResourceSpec::of_object(&object);
            self.lock().note(&object, self.now);
            let rule_context = rules.iter().map(|rule| RuleContext {
                rule: rule.clone(),
                trigger: trigger.clone(),
                ..RuleContext::default()
            });
            let spec = UpdateRequestSpec { rule_context: rule_context.collect(), ..UpdateRequestSpec::default() };
            let asked = Asked {
                request: Arc::new(UpdateRequest { spec, ..UpdateRequest::default() }),
                admission: None,
                rules: rules.into_iter().collect(),
                released: std::collections::BTreeSet::new(),
                age: super::reconcile::PATIENCE,
            };
            match self.reconcile(&WorkKey { policy: info.key.clone(), trigger: uid }, Some(&asked)) {
                Ok(_) => {
                    self.lock().acted.insert(acted);
                }
                Err(Failure::Lost) => return Err(Failure::Lost),
                Err(error) => failures.push(format!("{} {}: {error}", trigger.kind, trigger.name)),
            }
        }
        for rule in info.mutate.iter().filter(|rule| rule.on_policy_update) {
            for object in self.triggers(info, rule.kinds.as_deref(), None)? {
                if object.str_at(&["metadata", "deletionTimestamp"]).is_some() {
                    continue;
                }
                let review = super::trigger::review_of_existing(&object, Operation::Create, &info.uid, self.clock);
                match self.mutate_for(info, &rule.name, &review) {
                    Ok(_) => {}
                    Err(Failure::Lost) => return Err(Failure::Lost),
                    Err(error) => {
                        let trigger = TriggerRef::of_object(&object);
                        failures.push(format!("{} {}: {error}", trigger.kind, trigger.name));
                    }
                }
            }
        }
        Ok(failures)
    }

    /// The objects of a rule's kinds, in one namespace or in all that the policy sees.
    fn triggers(
        &self,
        info: &PolicyInfo,
        kinds: Option<&[KindSelector]>,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, Failure> {
        let discovery = Arc::clone(&self.lock().discovery);
        let mut found = Vec::new();
        for (api_version, kind) in trigger_kinds(kinds, &discovery) {
            let Ok(resource) = self.env.resource(&api_version, &kind) else { continue };
            let namespace = info.key.namespace.as_deref().or(namespace);
            if namespace.is_some() && !resource.namespaced {
                continue;
            }
            let filter = Filter { namespace: namespace.map(Str::new), ..Filter::default() };
            found.extend(crate::feed::list(&*self.env.cluster, &resource, &filter)?.0);
        }
        Ok(found)
    }

    /// Finds the kinds that have downstreams, whether or not a policy that is known names them.
    pub fn sweep(&self) -> Settled {
        let Ok(labels) = LabelSelector::parse(&format!("{MANAGED_BY}=kyverno,{POLICY_NAME}")) else {
            return Settled::Done;
        };
        let discovery = Arc::clone(&self.lock().discovery);
        let mut best: BTreeMap<GroupKind, Resource> = BTreeMap::new();
        for resource in discovery.iter().filter(|resource| resource.stored) {
            let kind = GroupKind { group: resource.group.clone(), kind: resource.kind.clone() };
            match best.get(&kind) {
                Some(known) if priority(&known.version) >= priority(&resource.version) => {}
                _ => {
                    best.insert(kind, resource.clone());
                }
            }
        }
        let mut failed = false;
        for resource in best.values() {
            let query = ListQuery::all().labels(labels.clone()).limit(1).metadata_only();
            match self.env.cluster.list(resource, &query) {
                Ok(list) if list.items.is_empty() => {}
                Ok(_) => self.lock().learn(&resource.api_version(), &resource.kind, false),
                // What this account may not list it cannot have made, or it was allowed to once.
                Err(error) => failed |= error.kind() == ErrorKind::Transient,
            }
        }
        if failed { Settled::Failed } else { Settled::Done }
    }

    /// Looks again at all triggers in a namespace whose labels changed, for rules that select by them.
    pub fn relabelled(&self, namespace: &str) -> Settled {
        let infos: Vec<Arc<PolicyInfo>> = self.lock().infos.values().cloned().collect();
        for info in infos.iter().filter(|info| info.sees(namespace)) {
            for rule in info.generate.iter().filter(|rule| rule.traits.namespace_selector) {
                let objects = match self.triggers(info, rule.kinds.as_deref(), Some(namespace)) {
                    Ok(objects) => objects,
                    Err(Failure::Lost) => return Settled::Done,
                    Err(_) => return Settled::Failed,
                };
                let mut state = self.lock();
                for object in objects {
                    let trigger = TriggerRef::of_object(&object);
                    let key = WorkKey { policy: info.key.clone(), trigger: trigger.uid.clone() };
                    state.known.insert(trigger.uid.clone(), trigger);
                    state.forced.insert(key.clone());
                    state.queue.add(Task::Reconcile(key), self.now);
                }
            }
        }
        Settled::Done
    }
}
