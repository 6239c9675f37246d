//! Failing work of policies, by its subject. [`ReconcileContext::report`](crate::reconcile::ReconcileContext::report)
//! tells it to the policy's status.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ephor_expr::{Str, Value};
use ephor_runtime::policies::PolicyId;
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::ResourceSpec;

use super::memory::State;
use crate::plan::ObjectId;
use crate::queue::{Task, WorkKey};
use crate::requests::trigger_key;

/// What a failure is about. What is tried again comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Triggers that existed before the policy.
    ExistingTriggers,
    /// The trigger with this UID.
    Trigger(Str),
    /// The `UpdateRequest` of this name.
    Request(Str),
    /// An object that a mutate rule patches.
    Target(ObjectId),
    /// The `UpdateRequest` of this name, which is not tried again.
    GivenUp(Str),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExistingTriggers => f.write_str("existing triggers"),
            Self::Trigger(uid) => write!(f, "trigger {uid}"),
            Self::Request(name) => write!(f, "request {name}"),
            Self::Target(id) => write!(f, "target {id}"),
            Self::GivenUp(name) => write!(f, "request {name}, given up"),
        }
    }
}

/// How long something fails, in milliseconds, before the policy's status says so. The first retry comes sooner: what
/// it puts right is not worth telling.
const REPORT_DELAY: Moment = 800;
/// The shortest time, in milliseconds, between two changes of what a policy's status says of failures. It bounds the
/// writes that objects cause which fail and succeed in turn.
const PACE: Moment = 5_000;

impl State {
    /// Records the failure of a task of a policy; `None` if it succeeded.
    pub fn set_failure(&mut self, policy: &PolicyId, subject: Subject, failure: Option<String>, now: Moment) {
        let known = self.failures.get(policy).and_then(|failures| failures.get(&subject));
        if known == failure.as_ref() {
            return;
        }
        if let Some(message) = failure {
            self.failures.entry(policy.clone()).or_default().insert(subject, message);
            self.report(policy, now + REPORT_DELAY);
            return;
        }
        if let Some(failures) = self.failures.get_mut(policy) {
            failures.remove(&subject);
            if failures.is_empty() {
                self.failures.remove(policy);
            }
        }
        self.report(policy, now);
    }

    /// What fails of a policy, each piece of work once: a request that fails is left out if its trigger itself fails,
    /// or another request for the same triggers.
    pub fn failing(&self, policy: &PolicyId) -> BTreeMap<Subject, String> {
        let Some(failures) = self.failures.get(policy) else { return BTreeMap::new() };
        let mut told = BTreeSet::new();
        let is_first = |(subject, _): &(&Subject, &String)| {
            let Subject::Request(name) = subject else { return true };
            let triggers = self.triggers_of(name);
            let fails = |trigger: &Str| failures.contains_key(&Subject::Trigger(trigger.clone()));
            triggers.is_empty() || !triggers.iter().any(fails) && told.insert(triggers)
        };
        failures.iter().filter(is_first).map(|(subject, message)| (subject.clone(), message.clone())).collect()
    }

    /// The work for a trigger succeeded. If it failed before, requests for it that failed with it are tried again now
    /// and not at their next retry, until which they would say that they failed.
    pub fn trigger_succeeded(&mut self, key: &WorkKey, now: Moment) {
        let subject = Subject::Trigger(key.trigger.clone());
        let failures = self.failures.get(&key.policy).filter(|failures| failures.contains_key(&subject));
        let names = failures.into_iter().flat_map(BTreeMap::keys).filter_map(|subject| match subject {
            Subject::Request(name) => Some(name),
            _ => None,
        });
        let again: Vec<Str> = names.filter(|name| self.triggers_of(name).contains(&key.trigger)).cloned().collect();
        for name in again {
            self.queue.add(Task::Request(name), now);
        }
        self.set_failure(&key.policy, subject, None, now);
        self.is_in_step(key, now);
    }

    /// The triggers of a pending request to generate, as keys of work. The request is not decoded: its objects may be
    /// large, and thousands of requests may fail.
    fn triggers_of(&self, request: &Str) -> BTreeSet<Str> {
        let pending = self.requests.pending(request);
        let contexts = pending.and_then(|pending| pending.object.at(&["spec", "ruleContext"])?.as_array());
        let text = |context: &Value, key: &str| Str::new(context.str_at(&["trigger", key]).unwrap_or_default());
        let key = |context: &Value| {
            trigger_key(&ResourceSpec {
                kind: text(context, "kind"),
                namespace: text(context, "namespace"),
                name: text(context, "name"),
                uid: text(context, "uid"),
                ..ResourceSpec::default()
            })
        };
        contexts.unwrap_or_default().iter().map(key).collect()
    }

    /// Has the status of a policy say what fails, at `due` or when it may change again.
    pub(super) fn report(&mut self, policy: &PolicyId, due: Moment) {
        let paced = self.told.get(policy).map_or(due, |told| due.max(told + PACE));
        self.queue.add_at(Task::Report(policy.clone()), paced, due);
    }
}
