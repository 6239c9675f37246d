//! The state of the controller: what it knows, what keys render, what fails.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_engine::matching::ResourceFilters;
use ephor_expr::{Str, Value};
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::policies::{PolicyId, Snapshot};
use ephor_runtime::queue::{Moment, Queue};

use super::contexts::Contexts;
use super::dependencies::Dependencies;
use super::failures::Subject;
use super::kinds::Watch;
use super::ownership::Ownership;
use super::request_index::RequestIndex;
use super::trigger_events::TriggerEvents;
use crate::index::{Index, Seen};
use crate::plan::{ObjectId, Owner, Terms};
use crate::queue::{Task, WorkKey, reconciling};
use crate::rights::Rights;
use crate::rules::PolicyInfo;
use crate::write_limit::RecentWrites;

/// That a rule has acted for a trigger that was there before it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Acted {
    /// The policy.
    pub policy: PolicyId,
    /// The policy's UID and generation: another one begins anew.
    pub of: (Str, i64),
    /// The rule.
    pub rule: Str,
    /// The trigger's UID.
    pub trigger: Str,
}

/// The state.
#[derive(Debug, Default)]
pub struct State {
    /// The policies.
    pub snapshot: Arc<Snapshot>,
    /// What of them matters.
    pub infos: BTreeMap<PolicyId, Arc<PolicyInfo>>,
    /// What rules said that are gone.
    pub former: BTreeMap<(PolicyId, Str), Terms>,
    /// Rights of users that were found lately.
    pub rights: Rights,
    /// What is known of the cluster.
    pub index: Index,
    /// What is to be done.
    pub queue: Queue<Task>,
    /// The `UpdateRequest`s.
    pub requests: RequestIndex,
    /// Which keys want which objects.
    pub ownership: Ownership,
    /// What keys read when they were judged.
    pub(super) dependencies: Dependencies,
    /// The labels of namespaces before a change that is still to be processed.
    pub(super) changed_labels: BTreeMap<Str, Value>,
    /// What events said about keys.
    pub events: TriggerEvents,
    /// Requests that rules cannot be judged without.
    pub contexts: Contexts,
    /// Triggers that rules have acted for once, of policies that are not through.
    pub acted: BTreeSet<Acted>,
    /// What fails, by policy and what it is about.
    pub failures: BTreeMap<PolicyId, BTreeMap<Subject, String>>,
    /// When the status of each policy last had to say something else of what fails.
    pub told: BTreeMap<PolicyId, Moment>,
    /// Kinds that have downstreams and that no watcher has told of yet, with the version to read them in.
    pub(super) learned: BTreeMap<GroupKind, Str>,
    /// The kinds to follow, as far as is known.
    pub(super) followed: BTreeMap<GroupKind, Watch>,
    /// What was written again and again lately.
    pub recent_writes: RecentWrites,
    /// What is served.
    pub discovery: Arc<Discovery>,
    /// Triggers that no policy sees.
    pub filters: ResourceFilters,
}

impl State {
    /// The next task that is due. Namespaces take turns: that of the policy, or that of the trigger of a cluster
    /// policy.
    pub fn take(&mut self, now: Moment) -> Option<Task> {
        let Self { queue, requests, index, .. } = self;
        queue.take(now, |task| match task {
            Task::Request(name) | Task::Collect(name) => requests.namespace(name),
            Task::Reconcile(WorkKey { policy, trigger }) => policy.namespace.clone().unwrap_or_else(|| {
                index.with_uid(index.kinds(), trigger).map(|seen| seen.id.namespace.clone()).unwrap_or_default()
            }),
            Task::Existing(policy) | Task::Report(policy) | Task::Note(policy) => {
                policy.namespace.clone().unwrap_or_default()
            }
            Task::NamespaceLabels(namespace) => namespace.clone(),
            Task::Sweep => Str::default(),
        })
    }

    /// Forgets what there was to know about a key besides what it renders.
    pub fn forget_key(&mut self, key: &WorkKey, now: Moment) {
        self.forget_reads(key);
        self.forget_contexts(key, |_| false, now);
        self.events.forget(key);
    }

    /// Forgets what an event has brought about for a key, unless there is work that needs it, or something it made.
    pub fn forget_event(&mut self, key: &WorkKey) {
        if !self.queue.holds(&Task::Reconcile(key.clone())) && self.ownership.rendered(key).is_none() {
            self.events.forget(key);
        }
    }

    /// Forgets what is no longer so of a policy that is another now, or gone (`after`).
    pub(super) fn forget_policy(&mut self, policy: &PolicyId, after: Option<&PolicyInfo>, now: Moment) {
        let of = after.map(|info| (info.uid.clone(), info.generation));
        self.acted.retain(|acted| acted.policy != *policy || Some(&acted.of) == of.as_ref());
        // Its triggers are judged anew.
        let asked = self.dependencies.entries.readers().filter(|key| key.policy == *policy);
        let readers: BTreeSet<WorkKey> = self.dependencies.keys_of(policy).chain(asked).cloned().collect();
        for key in &readers {
            self.forget_reads(key);
        }
        if after.is_none() {
            self.collect_given_up_of_policy(policy, now);
            self.failures.remove(policy);
            self.told.remove(policy);
            self.events.forget_policy(policy);
            self.forget_former(policy, 0);
        }
    }

    /// Forgets what the rules of a policy said that is gone, once nothing is left to do about what they made but
    /// `under_way` pieces of work.
    pub fn forget_former(&mut self, policy: &PolicyId, under_way: usize) {
        if !self.infos.contains_key(policy) && reconciling(&self.queue, policy) <= under_way {
            self.former.retain(|(of, _), _| of != policy);
        }
    }

    /// Sets what the synchronizing rules of a key render. What they do not render any more is others' concern: of those
    /// who want it, and of the one that it belongs to, which could not take it away as long as others wanted it.
    pub fn set_rendered(&mut self, key: &WorkKey, rendered: BTreeMap<ObjectId, Str>, now: Moment) {
        for id in self.ownership.set_rendered(key, rendered, |id| self.index.find(id).is_some()) {
            let owner = self.index.find(&id).and_then(Seen::owner).map(Owner::key).filter(|owner| owner != key);
            for other in self.others_wanting(&id, key).into_iter().chain(owner) {
                self.queue.add(Task::Reconcile(other), now);
            }
        }
    }

    /// Another key that wants an object.
    pub fn others_wanting(&self, id: &ObjectId, key: &WorkKey) -> Vec<WorkKey> {
        self.ownership.wanting(id).filter(|other| *other != key).cloned().collect()
    }

    /// Whether the owner that an object claims looks after it, as far as is known.
    pub fn owner_state(&self, owner: &Owner, id: &ObjectId) -> OwnerState {
        let key = owner.key();
        let Some(info) = self.infos.get(&key.policy) else { return OwnerState::Stale };
        if !info.rule(&owner.rule).is_some_and(|rule| rule.terms.synchronize) {
            return OwnerState::Stale;
        }
        if self.ownership.renders(&key, id) {
            OwnerState::Active
        } else if self.queue.holds(&Task::Reconcile(key)) {
            OwnerState::Unknown
        } else {
            OwnerState::Stale
        }
    }
}

/// How sure an owner's claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerState {
    /// It renders the object.
    Active,
    /// It has not been judged yet.
    Unknown,
    /// It does not want the object any more.
    Stale,
}
