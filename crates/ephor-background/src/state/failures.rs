//! Failing work of policies, by its subject. [`ReconcileContext::report`](crate::reconcile::ReconcileContext::report)
//! tells it to the policy's status.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ephor_expr::Str;
use ephor_runtime::policies::PolicyKey;
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::UpdateRequest;

use super::memory::State;
use crate::plan::ObjectId;
use crate::queue::Task;
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
    pub fn set_failure(&mut self, policy: &PolicyKey, subject: Subject, failure: Option<String>, now: Moment) {
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

    /// What fails of a policy, each piece of work once: a request that fails is left out if its trigger itself fails, or
    /// another request for the same triggers.
    pub fn failing(&self, policy: &PolicyKey) -> BTreeMap<Subject, String> {
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

    /// The triggers of a pending request to generate, as keys of work.
    fn triggers_of(&self, request: &Str) -> BTreeSet<Str> {
        let request =
            self.requests.pending(request).and_then(|pending| UpdateRequest::from_value(&pending.object).ok());
        let contexts = request.map(|request| request.spec.rule_context).unwrap_or_default();
        contexts.iter().map(|context| trigger_key(&context.trigger)).collect()
    }

    /// Has the status of a policy say what fails, at `due` or when it may change again.
    pub(super) fn report(&mut self, policy: &PolicyKey, due: Moment) {
        let paced = self.told.get(policy).map_or(due, |told| due.max(told + PACE));
        self.queue.add_at(Task::Report(policy.clone()), paced, due);
    }
}
