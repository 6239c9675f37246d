//! `UpdateRequest`s that are tried no more. Each stays in the cluster with the state `Failed` and the label
//! [`LABEL_GIVEN_UP`], without the objects that its admission request carried, so that `kubectl get updaterequests`
//! shows it and another leader knows of it.
//!
//! One ends when its work succeeds after all, when its trigger or its policy is gone, when the same work is given up
//! once more, or after a day. At most [`MAX_GIVEN_UP`] stay. Beyond that, the namespace with the most loses its oldest,
//! so that failures in one namespace do not push out those of another.

use std::collections::BTreeMap;

use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};
use ephor_runtime::policies::PolicyId;
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::{
    ANNOTATION_POLICY_VERSION, LABEL_GIVEN_UP, RequestType, ResourceSpec, UpdateRequest,
};

use super::failures::Subject;
use super::memory::State;
use crate::queue::{Task, WorkKey};
use crate::requests::trigger_key;
use crate::rules::PolicyInfo;
use crate::trigger::TriggerRef;

/// How many requests that were given up stay.
pub(crate) const MAX_GIVEN_UP: usize = 100;
/// How long one stays, in milliseconds.
const STAY: Moment = 24 * 3_600_000;
/// How often, in milliseconds, its trigger is looked for.
pub const LOOK_FOR_TRIGGER: Moment = 60_000;
/// How many characters of its message are remembered.
const MAX_MESSAGE: usize = 1_024;

/// The work of one rule for one trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Work {
    rule: Str,
    trigger: TriggerRef,
    /// What the trigger is called in a [`WorkKey`].
    key: Str,
}

/// A request that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// Its UID.
    pub uid: Str,
    /// Its policy.
    pub policy: PolicyId,
    /// `UID/GENERATION` of the policy that asked for it, where it says so.
    policy_version: Option<Str>,
    work: Vec<Work>,
    /// Whether the work is about a trigger that exists. A deletion's trigger is gone from the beginning.
    needs_trigger: bool,
    created: Str,
    message: String,
    /// Whether it ends now.
    over: bool,
}

impl GivenUp {
    fn of(object: &Value) -> Option<Self> {
        object.at(&["metadata", "labels", LABEL_GIVEN_UP])?;
        let request = UpdateRequest::from_value(object).ok()?;
        let work = |rule: &Str, trigger: &ResourceSpec| Work {
            rule: rule.clone(),
            trigger: TriggerRef::of_spec(trigger),
            key: trigger_key(trigger),
        };
        let contexts = &request.spec.rule_context;
        let deletes = contexts.iter().any(|context| context.delete_downstream)
            || request.spec.context.admission_request_info.operation == Some(Operation::Delete);
        Some(Self {
            uid: request.metadata.uid.clone(),
            policy: request.policy_id(),
            policy_version: request.metadata.annotations.get(ANNOTATION_POLICY_VERSION).cloned(),
            work: match request.spec.request_type {
                Some(RequestType::Mutate) => vec![work(&request.spec.rule, &request.spec.resource)],
                _ => contexts.iter().map(|context| work(&context.rule, &context.trigger)).collect(),
            },
            needs_trigger: !deletes,
            created: request.metadata.creation_timestamp.clone(),
            message: request.status.map(|s| s.message.chars().take(MAX_MESSAGE).collect()).unwrap_or_default(),
            over: false,
        })
    }

    fn namespace(&self) -> &str {
        self.work.first().map_or("", |work| &work.trigger.namespace)
    }

    /// Whether the policy asks for it as it is now.
    fn is_asked_by(&self, info: &PolicyInfo) -> bool {
        let now = || format!("{}/{}", info.uid, info.generation);
        self.policy_version.as_ref().is_none_or(|version| **version == *now())
    }

    /// Whether the work is tried again all the same, without the request: rules that synchronize do so.
    fn goes_on(&self, info: &PolicyInfo) -> bool {
        self.work.iter().any(|work| info.rule(&work.rule).is_some_and(|rule| rule.terms.synchronize))
    }

    /// The triggers without which there is nothing left to fail.
    pub fn needed_triggers(&self) -> impl Iterator<Item = &TriggerRef> {
        self.work.iter().filter(|_| self.needs_trigger).map(|work| &work.trigger)
    }

    /// Whether it ends now, with or without its trigger.
    pub fn is_over(&self, now: Moment) -> bool {
        let created = self.created.parse::<jiff::Timestamp>().ok();
        let created = created.and_then(|created| Moment::try_from(created.as_millisecond()).ok());
        self.over || created.is_none_or(|created| created.saturating_add(STAY) <= now)
    }
}

impl State {
    /// Takes in a request; whether it was given up.
    pub(super) fn given_up_seen(&mut self, name: &Str, object: &Value, now: Moment) -> bool {
        let Some(request) = GivenUp::of(object) else {
            self.given_up_ended(name, now);
            return false;
        };
        if self.requests.given_up(name).is_some_and(|known| known.uid == request.uid) {
            return true;
        }
        // The same work was given up before.
        for known in self.requests.given_up.values_mut() {
            known.over |= known.policy == request.policy && known.work == request.work;
        }
        let info = self.infos.get(&request.policy);
        if info.is_some_and(|info| request.is_asked_by(info) && !request.goes_on(info)) {
            let (policy, message) = (request.policy.clone(), request.message.clone());
            self.set_failure(&policy, Subject::GivenUp(name.clone()), Some(message), now);
        }
        self.requests.given_up.insert(name.clone(), request);
        self.bound_given_up();
        self.collect_given_up(now, |request| request.over);
        self.queue.add_at(Task::Collect(name.clone()), now + LOOK_FOR_TRIGGER, now);
        true
    }

    /// Lets the namespace with the most requests lose its oldest, while there are too many.
    fn bound_given_up(&mut self) {
        let mut of_namespaces: BTreeMap<&str, Vec<(&Str, &Str)>> = BTreeMap::new();
        let staying = self.requests.given_up.iter().filter(|(_, request)| !request.over);
        for (name, request) in staying {
            of_namespaces.entry(request.namespace()).or_default().push((&request.created, name));
        }
        let count: usize = of_namespaces.values().map(Vec::len).sum();
        if count <= MAX_GIVEN_UP {
            return;
        }
        let most = of_namespaces.into_values().max_by_key(Vec::len).unwrap_or_default();
        let oldest = most.into_iter().min().map(|(_, name)| name.clone());
        if let Some(request) = oldest.and_then(|name| self.requests.given_up.get_mut(&name)) {
            request.over = true;
        }
    }

    fn collect_given_up(&mut self, now: Moment, ends: impl Fn(&GivenUp) -> bool) {
        let mut names = Vec::new();
        for (name, request) in self.requests.given_up.iter_mut().filter(|(_, request)| ends(request)) {
            request.over = true;
            names.push(name.clone());
        }
        for name in names {
            self.queue.add(Task::Collect(name), now);
        }
    }

    /// The work of rules for triggers has succeeded: what failed of it before is over.
    pub fn work_succeeded(&mut self, request: &UpdateRequest, now: Moment) {
        let policy = request.policy_id();
        let contexts = &request.spec.rule_context;
        let done = |work: &Work| match request.spec.request_type {
            Some(RequestType::Mutate) => {
                work.rule == request.spec.rule && work.key == trigger_key(&request.spec.resource)
            }
            _ => contexts.iter().any(|c| work.rule == c.rule && work.key == trigger_key(&c.trigger)),
        };
        self.collect_given_up(now, |given_up| given_up.policy == policy && given_up.work.iter().all(done));
    }

    /// The synchronizing rules of a policy are in step for a trigger: what failed of that before is over.
    pub fn is_in_step(&mut self, key: &WorkKey, now: Moment) {
        let says_failed = |name: &&Str| self.requests.kept(name).is_some_and(|kept| kept.says_failed);
        let kept: Vec<Str> = self.contexts.names(key).filter(says_failed).cloned().collect();
        for name in kept {
            self.queue.add(Task::Collect(name), now);
        }
        let Some(info) = self.infos.get(&key.policy).cloned() else { return };
        let synchronizes = |work: &Work| info.rule(&work.rule).is_some_and(|rule| rule.terms.synchronize);
        self.collect_given_up(now, |given_up| {
            given_up.policy == key.policy
                && given_up.work.iter().all(|work| work.key == key.trigger && synchronizes(work))
        });
    }

    /// A policy or a namespace is gone, or goes, and what was given up for it with it.
    pub(super) fn collect_given_up_of_policy(&mut self, policy: &PolicyId, now: Moment) {
        self.collect_given_up(now, |request| request.policy == *policy);
    }

    pub(super) fn collect_given_up_in(&mut self, namespace: &str, now: Moment) {
        self.collect_given_up(now, |request| request.needs_trigger && request.namespace() == namespace);
    }

    /// A request that was given up is not there any more, or begins anew.
    pub(super) fn given_up_ended(&mut self, name: &Str, now: Moment) {
        if let Some(request) = self.requests.given_up.remove(name) {
            self.set_failure(&request.policy, Subject::GivenUp(name.clone()), None, now);
        }
    }

    /// A policy is new here, or says something else: it answers for what was given up for it as it is now.
    pub(super) fn answer_for_given_up(&mut self, info: &PolicyInfo, now: Moment) {
        let failures = self.failures.entry(info.key.clone()).or_default();
        failures.retain(|subject, _| !matches!(subject, Subject::GivenUp(_)));
        let own =
            self.requests.given_up.iter().filter(|(_, request)| {
                request.policy == info.key && request.is_asked_by(info) && !request.goes_on(info)
            });
        failures.extend(own.map(|(name, request)| (Subject::GivenUp(name.clone()), request.message.clone())));
        if failures.is_empty() {
            self.failures.remove(&info.key);
        } else {
            self.report(&info.key, now);
        }
    }
}
