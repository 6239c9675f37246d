//! The state of the background role for metrics and readiness probes: backlog, failing policies, leadership.

use std::sync::Arc;
use std::time::Duration;

use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::metrics::{BackgroundHealth, Backlog};
use ephor_runtime::policies::PolicyId;
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::policy_of;
use parking_lot::Mutex;

use super::queue::{Task, backlog};
use super::state::State;

impl State {
    /// The policy of a task.
    pub fn policy_of(&self, task: &Task) -> Option<PolicyId> {
        match task {
            Task::Reconcile(key) => Some(key.policy.clone()),
            Task::Existing(policy) => Some(policy.clone()),
            Task::Request(name) => {
                let request = &self.requests.pending(name)?.object;
                request.str_at(&["spec", "policy"]).map(|_| policy_of(request))
            }
            // Status writes are not work that a policy asked for.
            Task::Report(_) | Task::Note(_) | Task::NamespaceLabels(_) | Task::Sweep | Task::Collect(_) => None,
        }
    }

    /// The backlog, the failing policies and the number of open requests.
    pub fn health(&self, now: Moment) -> BackgroundHealth {
        let backlog = backlog(&self.queue, now).into_iter();
        let failing = self.failures.iter().filter(|(_, failures)| !failures.is_empty());
        BackgroundHealth {
            backlog: backlog
                .map(|(sort, (depth, age))| (sort, Backlog { depth, age: Duration::from_millis(age) }))
                .collect(),
            failing: failing.map(|(policy, failures)| (policy.clone(), failures.len())).collect(),
            requests: self.requests.open_count(),
        }
    }
}

/// The readiness of a replica: a follower is always ready, a leader once it has read policies and discovery. Clones
/// share one state.
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
    /// This replica became the leader.
    pub fn term_started(&self, stop: &CancellationToken) {
        *self.lock() = Some(Leading { stop: stop.clone(), works: false });
    }

    /// The leader has started its workers.
    pub fn term_synced(&self) {
        if let Some(leading) = self.lock().as_mut() {
            leading.works = true;
        }
    }

    /// Whether the replica is ready.
    pub fn is_ready(&self) -> bool {
        self.lock().as_ref().is_none_or(|leading| leading.works || leading.stop.is_cancelled())
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Option<Leading>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_is_ready_and_a_leader_once_it_works() {
        let (readiness, term) = (Readiness::default(), CancellationToken::new());
        assert!(readiness.is_ready());
        readiness.term_started(&term);
        assert!(!readiness.is_ready());
        readiness.term_synced();
        assert!(readiness.is_ready());
        let next = CancellationToken::new();
        readiness.term_started(&next);
        assert!(!readiness.is_ready());
        next.cancel();
        assert!(readiness.is_ready(), "it follows again");
    }
}
