//! One step of the background controller.
//!
//! A [`Controller`] is told what happens ([`Controller::observe`] and its siblings) and does one piece of work at a
//! time ([`Controller::step`]). Several threads may step at once; the queue sees to it that none does what another is
//! at.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use ephor_cluster::Discovery;
use ephor_engine::matching::ResourceFilters;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::poison::PoisonMutex;
use ephor_runtime::policies::{PolicyId, Snapshot};
use ephor_runtime::queue::{Moment, Settled};
use ephor_runtime::watcher::StoreEvent;

use super::queue::Task;
use super::reconcile::{ReconcileContext, ReconcileError};
use super::state::{State, Subject, Watch};
use super::writer::Env;

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Something was done; there may be more.
    Worked,
    /// There is nothing to do before that moment, or before something happens.
    Idle(Option<Moment>),
}

/// The controller. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Controller {
    env: Arc<Env>,
    state: Arc<PoisonMutex<State>>,
}

impl Controller {
    /// A controller that knows nothing yet.
    pub fn new(env: Env) -> Self {
        Self { env: Arc::new(env), state: Arc::default() }
    }

    /// What it knows.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Takes in what is served.
    pub fn observe_discovery(&self, discovery: Arc<Discovery>, now: Moment) {
        self.state().observe_discovery(discovery, now);
    }

    /// Takes in the policies as they are now, unless later ones are known.
    pub fn observe_policies(&self, snapshot: Arc<Snapshot>, now: Moment) {
        let mut state = self.state();
        if snapshot.number >= state.snapshot.number {
            state.observe_policies(snapshot, now);
        }
    }

    /// Takes in which triggers no policy sees.
    pub fn observe_filters(&self, filters: &ResourceFilters, now: Moment) {
        self.state().observe_filters(filters, now);
    }

    /// Takes in what a watcher says of a kind; `wide` if it tells of all objects, not only of downstreams.
    pub fn observe(&self, kind: &GroupKind, wide: bool, change: StoreEvent, now: Moment) {
        self.state().observe(kind, wide, change, now);
    }

    /// Takes in what a watcher says of `UpdateRequest`s.
    pub fn observe_requests(&self, change: StoreEvent, now: Moment) {
        self.state().observe_requests(change, now);
    }

    /// Looks for downstreams of every kind: policies that made them may be gone since this controller last looked.
    pub fn sweep(&self, now: Moment) {
        self.state().queue.add(Task::Sweep, now);
    }

    /// Enqueues everything again.
    pub fn resync(&self, now: Moment) {
        self.state().enqueue_all(now);
    }

    /// Asks the global context entries again that something was judged by.
    pub fn ask_entries(&self, now: Moment) {
        let asked = self.state().asked_of_entries();
        for fetch in asked {
            let says = self.env.answers.answer(&fetch);
            self.state().entry_says(&fetch, &says, now);
        }
    }

    /// The kinds that must be followed.
    pub fn watches(&self) -> BTreeMap<GroupKind, Watch> {
        self.state().watches()
    }

    /// Does the next piece of work that is due.
    pub fn step(&self, now: Moment) -> Step {
        let (task, policy) = {
            let mut state = self.state();
            match state.take(now) {
                Some(task) => {
                    let policy = state.policy_of(&task);
                    (task, policy)
                }
                None => return Step::Idle(state.queue.next_due()),
            }
        };
        let clock = i64::try_from(now).ok().and_then(|now| jiff::Timestamp::from_millisecond(now).ok());
        let context = ReconcileContext { env: &self.env, state: &self.state, now, clock: clock.unwrap_or_default() };
        let settled = self.state.contain(|| self.work(&context, &task)).unwrap_or_else(|| {
            tracing::error!(?task, "a task panicked");
            Settled::Failed
        });
        self.settle(task, policy.as_ref(), settled, now);
        Step::Worked
    }

    fn settle(&self, task: Task, policy: Option<&PolicyId>, settled: Settled, now: Moment) {
        let ended = self.state().queue.settle(task, settled, now);
        match settled {
            Settled::Done => self.env.metrics.background_done(policy, Duration::from_millis(ended.lag)),
            Settled::Retry(_) | Settled::Failed => self.env.metrics.background_retried(policy, ended.failures),
            Settled::Later(_) => {}
        }
    }

    fn work(&self, context: &ReconcileContext<'_>, task: &Task) -> Settled {
        let now = context.now;
        match task {
            Task::Reconcile(key) => match context.reconcile(key, None) {
                Ok(_) => {
                    self.state().trigger_succeeded(key, now);
                    Settled::Done
                }
                Err(ReconcileError::RetryAfter(pause, _)) => Settled::Later(pause),
                Err(ReconcileError::LostLease | ReconcileError::TriggerNotFound(_)) => Settled::Done,
                Err(ReconcileError::Failed(message) | ReconcileError::TargetNotFound(message)) => {
                    tracing::warn!(policy = %key.policy, trigger = %key.trigger, %message, "cannot be reconciled");
                    let subject = Subject::Trigger(key.trigger.clone());
                    self.state().set_failure(&key.policy, subject, Some(message), now);
                    Settled::Failed
                }
            },
            Task::Request(name) => context.request(name),
            Task::Collect(name) => context.collect(name),
            Task::Existing(policy) => context.existing(policy),
            Task::NamespaceLabels(namespace) => context.namespace_labels_changed(namespace),
            Task::Report(policy) => context.report(policy),
            Task::Note(policy) => context.record_activations(policy),
            Task::Sweep => context.sweep(),
        }
    }
}
