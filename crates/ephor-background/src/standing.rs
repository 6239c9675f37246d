//! How things stand, for those who look at metrics and probes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::metrics::{BackgroundStanding, Backlog};
use ephor_runtime::policies::PolicyKey;
use ephor_runtime::queue::Moment;

use super::queue::{Task, backlog};
use super::state::{State, policy_key};

impl State {
    /// The policy that a piece of work is for.
    pub fn policy_of(&self, task: &Task) -> Option<PolicyKey> {
        match task {
            Task::Reconcile(key) => Some(key.policy.clone()),
            Task::Existing(policy) => Some(policy.clone()),
            Task::Request(name) => {
                let (namespace, policy) = {
                    let policy = self.requests.get(name)?.object.str_at(&["spec", "policy"])?;
                    policy.split_once('/').unwrap_or(("", policy))
                };
                Some(policy_key(namespace, policy))
            }
            // Telling a policy something is no work that it wants.
            Task::Report(_) | Task::Note(_) | Task::Relabelled(_) | Task::Sweep | Task::Collect(_) => None,
        }
    }

    /// What is to be done and what fails.
    pub fn standing(&self, now: Moment) -> BackgroundStanding {
        let backlog = backlog(&self.queue, now).into_iter();
        let failing = self.failures.iter().filter(|(_, failures)| !failures.is_empty());
        BackgroundStanding {
            backlog: backlog
                .map(|(sort, (depth, age))| (sort, Backlog { depth, age: Duration::from_millis(age) }))
                .collect(),
            failing: failing.map(|(policy, failures)| (policy.clone(), failures.len())).collect(),
            requests: self.requests.len() + self.finished.len(),
        }
    }
}

/// Whether a replica is ready: one that follows is, one that leads is once it works. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<Option<Leading>>>);

/// The term that began last.
#[derive(Debug)]
struct Leading {
    /// Ends with the term.
    stop: CancellationToken,
    works: bool,
}

impl Readiness {
    /// A term begins.
    pub fn begins(&self, stop: &CancellationToken) {
        *self.lock() = Some(Leading { stop: stop.clone(), works: false });
    }

    /// The leader of the term that began last knows what it needs to know, and works.
    pub fn works(&self) {
        if let Some(leading) = self.lock().as_mut() {
            leading.works = true;
        }
    }

    /// Whether the replica does what it is there for.
    pub fn holds(&self) -> bool {
        self.lock().as_ref().is_none_or(|leading| leading.works || leading.stop.is_cancelled())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Leading>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_is_ready_and_a_leader_once_it_works() {
        let (readiness, term) = (Readiness::default(), CancellationToken::new());
        assert!(readiness.holds());
        readiness.begins(&term);
        assert!(!readiness.holds());
        readiness.works();
        assert!(readiness.holds());
        let next = CancellationToken::new();
        readiness.begins(&next);
        assert!(!readiness.holds());
        next.cancel();
        assert!(readiness.holds(), "it follows again");
    }
}
