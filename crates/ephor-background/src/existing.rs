//! Runs rules for triggers that are older than their policy (`generateExisting`, `mutateExistingOnPolicyUpdate`).
//!
//! A synchronizing rule with `generateExisting` looks after all its triggers anyway. One without acts once for each
//! generation of its policy, and so does a mutate-existing rule with `mutateExistingOnPolicyUpdate`; that it has done
//! so is a condition of the policy, so that a restart does not bring back what was deleted since.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ephor_cluster::discovery::priority;
use ephor_cluster::query::Filter;
use ephor_cluster::{ErrorKind, LabelSelector, ListQuery, Resource};
use ephor_engine::matching::KindSelector;
use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};
use ephor_runtime::kinds::{GroupKind, trigger_kinds};
use ephor_runtime::policies::PolicyId;
use ephor_runtime::queue::{Moment, Settled};
use ephor_runtime::update_request::{ResourceSpec, RuleContext, UpdateRequest, UpdateRequestSpec};

use super::conditions::{acted_generation, acted_rules};
use super::queue::WorkKey;
use super::reconcile::{PERSISTENCE_TIMEOUT, ReconcileContext, ReconcileError, TriggerRequest};
use super::rules::{Once, OnceWork, PolicyInfo};
use super::state::{Acted, Subject};
use crate::plan::ObjectId;
use crate::plan::claim::{MANAGED_BY, POLICY_NAME};

/// How many triggers that a rule failed for are noted.
const MAX_LEFT: usize = 100;
/// How long to wait for a policy as it is now, in milliseconds.
const POLL_INTERVAL: Moment = 1_000;

impl ReconcileContext<'_> {
    /// Lets the rules of a policy act for triggers that exist, if they have not done so for this generation.
    pub fn existing(&self, key: &PolicyId) -> Settled {
        let (info, document) = {
            let state = self.lock();
            let document = state.snapshot.policies.get(key).map(|policy| policy.document.clone());
            (state.infos.get(key).cloned(), document)
        };
        let (Some(info), Some(document)) = (info, document) else { return Settled::Done };
        if !info.once_for_existing() || acted_generation(&document) == Some(info.generation) {
            self.lock().set_failure(key, Subject::ExistingTriggers, None, self.now);
            return Settled::Done;
        }
        // What is done once is not done by the word of a policy that says something else by now.
        match self.is_current(key, &info.uid, info.generation) {
            Ok(true) => {}
            Ok(false) => return Settled::Later(POLL_INTERVAL),
            Err(_) => return Settled::Failed,
        }
        let before = acted_rules(&document, info.generation);
        let mut progress = BTreeMap::new();
        let mut failures = Vec::new();
        for rule in info.once() {
            let left = before.get(rule.name);
            if left.is_some_and(BTreeSet::is_empty) {
                progress.insert(rule.name.clone(), BTreeSet::new());
                continue;
            }
            match self.act_for_existing(&info, rule, left) {
                Ok(failed) => {
                    let (left, messages): (BTreeSet<Str>, Vec<String>) = failed.into_iter().unzip();
                    progress.insert(rule.name.clone(), left);
                    failures.extend(messages);
                }
                Err(ReconcileError::LostLease) => return Settled::Done,
                Err(error) => failures.push(error.to_string()),
            }
        }
        let more = failures.len().saturating_sub(1);
        let rest = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        let failed = failures.first().map(|first| format!("{first}{rest}"));
        self.lock().set_failure(key, Subject::ExistingTriggers, failed.clone(), self.now);
        if failed.is_none() {
            let settled = self.set_acted(key, info.generation);
            if settled == Settled::Done {
                // The policy says so from now on.
                self.lock().acted.retain(|acted| acted.policy != *key);
            }
            return settled;
        }
        // So many are not noted: the rule begins anew after a restart.
        progress.retain(|_, left| left.len() <= MAX_LEFT);
        self.set_acted_rules(key, info.generation, &progress);
        Settled::Failed
    }

    /// Lets one rule act for triggers that exist, or for those of them that are `left`; the UIDs of those that it
    /// failed for, and how.
    fn act_for_existing(
        &self,
        info: &PolicyInfo,
        rule: Once<'_>,
        left: Option<&BTreeSet<Str>>,
    ) -> Result<Vec<(Str, String)>, ReconcileError> {
        let mut failures = Vec::new();
        for object in self.triggers(info, rule.kinds, None)? {
            let skipped = match rule.work {
                OnceWork::Generate { skips_own } => skips_own && crate::plan::Claim::of(&object).is_some(),
                OnceWork::Mutate => object.str_at(&["metadata", "deletionTimestamp"]).is_some(),
            };
            let trigger = ResourceSpec::of_object(&object);
            let acted = Acted {
                policy: info.key.clone(),
                of: (info.uid.clone(), info.generation),
                rule: rule.name.clone(),
                trigger: trigger.uid.clone(),
            };
            let through = left.is_some_and(|left| !left.contains(&trigger.uid));
            if skipped || through || self.lock().acted.contains(&acted) {
                continue;
            }
            let done = match rule.work {
                OnceWork::Generate { .. } => self.generate_once(info, rule.name, &trigger, &object),
                OnceWork::Mutate => {
                    let review = self.review_of(&object, Operation::Create, &info.uid);
                    self.mutate_for(info, rule.name, &review).map(|_| ())
                }
            };
            match done {
                Ok(()) => {
                    self.lock().acted.insert(acted);
                }
                Err(ReconcileError::LostLease) => return Err(ReconcileError::LostLease),
                Err(error) => failures.push((trigger.uid, error.to_string())),
            }
        }
        Ok(failures)
    }

    fn generate_once(
        &self,
        info: &PolicyInfo,
        rule: &Str,
        trigger: &ResourceSpec,
        object: &Value,
    ) -> Result<(), ReconcileError> {
        self.lock().note(object, self.now);
        let key = WorkKey { policy: info.key.clone(), trigger: trigger.uid.clone() };
        let context = RuleContext { rule: rule.clone(), trigger: trigger.clone(), ..RuleContext::default() };
        let spec = UpdateRequestSpec { rule_context: vec![context], ..UpdateRequestSpec::default() };
        let trigger_request = TriggerRequest {
            update_request: Arc::new(UpdateRequest { spec, ..UpdateRequest::default() }),
            admission: None,
            rules: BTreeSet::from([rule.clone()]),
            // What other rules fail at is their own work's concern.
            alone: true,
            released: BTreeSet::new(),
            age: PERSISTENCE_TIMEOUT,
        };
        self.reconcile(&key, Some(&trigger_request)).map(|_| ())
    }

    /// The objects of a rule's kinds, in one namespace or in all that the policy sees.
    pub(super) fn triggers(
        &self,
        info: &PolicyInfo,
        kinds: Option<&[KindSelector]>,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, ReconcileError> {
        let discovery = Arc::clone(&self.lock().discovery);
        let mut found = Vec::new();
        for (api_version, kind) in trigger_kinds(kinds, &discovery) {
            let resource = match self.env.resource(&api_version, &kind) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                resource => resource?,
            };
            let namespace = info.key.namespace.as_deref().or(namespace);
            if namespace.is_some() && !resource.namespaced {
                continue;
            }
            let filter = Filter { namespace: namespace.map(Str::new), ..Filter::default() };
            let objects = match self.env.list(&resource, &filter) {
                // What a wildcard means besides is not this account's concern.
                Err(error) if error.kind() == ErrorKind::Forbidden && !names_all(kinds) => continue,
                listed => listed?,
            };
            let state = self.lock();
            found.extend(objects.into_iter().filter(|object| !state.hides(&api_version, &ObjectId::of(object))));
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
            match self.env.page(resource, &query) {
                Ok(list) if list.items.is_empty() => {}
                Ok(_) => self.lock().learn(&resource.api_version(), &resource.kind),
                // What this account may not list it cannot have made, or it was allowed to once.
                Err(error) => failed |= error.kind() == ErrorKind::Transient,
            }
        }
        if failed { Settled::Failed } else { Settled::Done }
    }
}

/// Whether a rule writes out the kinds that it is about.
fn names_all(kinds: Option<&[KindSelector]>) -> bool {
    kinds.is_some_and(|kinds| kinds.iter().all(|kind| kind.exact_kind().is_some()))
}
