//! What of a policy's work fails, noted by what it is about. [`Pass::report`](crate::reconcile::Pass::report)
//! tells it to the policy's status.

use std::fmt;

use ephor_expr::Str;
use ephor_runtime::policies::PolicyKey;
use ephor_runtime::queue::Moment;

use super::memory::State;
use crate::plan::ObjectId;
use crate::queue::Task;
use crate::trigger::TriggerRef;

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
    /// Work that is not tried again.
    GivenUp(GivenUp),
}

/// The work of a rule for a trigger that is not tried again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GivenUp {
    /// The rule.
    pub rule: Str,
    /// The trigger.
    pub trigger: TriggerRef,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExistingTriggers => f.write_str("existing triggers"),
            Self::Trigger(uid) => write!(f, "trigger {uid}"),
            Self::Request(name) => write!(f, "request {name}"),
            Self::Target(id) => write!(f, "target {id}"),
            Self::GivenUp(GivenUp { rule, trigger }) => write!(f, "given up: rule {rule} for {trigger}"),
        }
    }
}

/// How much work of a policy that is not tried again is remembered.
const MAX_GIVEN_UP: usize = 20;

/// How long something fails, in milliseconds, before the policy's status says so: about three tries. What passes sooner
/// is not worth telling.
const TELLING: Moment = 5_000;

impl State {
    /// Notes what became of something that a policy wants; `None` if it does not fail (any more).
    pub fn set_failure(&mut self, policy: &PolicyKey, subject: Subject, failure: Option<String>, now: Moment) {
        let known = self.failures.get(policy).and_then(|failures| failures.get(&subject));
        if known == failure.as_ref() {
            return;
        }
        let mut due = now;
        match failure {
            Some(message) => {
                let failures = self.failures.entry(policy.clone()).or_default();
                let given_up = failures.keys().filter(|subject| matches!(subject, Subject::GivenUp(_))).count();
                if matches!(subject, Subject::GivenUp(_)) && given_up >= MAX_GIVEN_UP {
                    return;
                }
                failures.insert(subject, message);
                due += TELLING;
            }
            None => {
                if let Some(failures) = self.failures.get_mut(policy) {
                    failures.remove(&subject);
                    if failures.is_empty() {
                        self.failures.remove(policy);
                    }
                }
            }
        }
        self.queue.add_at(Task::Report(policy.clone()), due, now);
    }

    /// What a policy does not try again.
    pub fn given_up(&self, policy: &PolicyKey) -> Vec<GivenUp> {
        let subjects = self.failures.get(policy).into_iter().flat_map(|failures| failures.keys());
        let given_up = subjects.filter_map(|subject| match subject {
            Subject::GivenUp(work) => Some(work.clone()),
            _ => None,
        });
        given_up.collect()
    }
}
