//! Which policy is due when, and one run at a time.
//!
//! It has no clock and no threads: [`Controller::step`] takes the time and carries out one run that is due by then.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use ephor_engine::exceptions::ExceptionSet;
use ephor_expr::{Str, Value};
use ephor_runtime::events::{Action, Component, Event, Reason as EventReason};
use ephor_runtime::lease::LostLease;
use ephor_runtime::poison::PoisonMutex;
use ephor_runtime::policies::Snapshot;
use ephor_runtime::queue::{Moment, Queue, Settled};
use ephor_runtime::watcher::StoreEvent;
use jiff::Timestamp;

use crate::Step;
use crate::env::{Env, moment, timestamp};
use crate::policy::{Key, Kind, ScheduledPolicy};
use crate::run::{MAX_NAMED, Report, Run};
use crate::status::{Reason, RunStatus};
use crate::writer::Writer;

/// How often a run that fails for now is tried before the next time of the schedule is waited for.
const MAX_ATTEMPTS: u32 = 5;
/// The pause before a run that failed for now, times its number.
const RETRY_PAUSE: Moment = 2_000;
/// The shortest pause between two runs of a policy.
const SHORTEST_PAUSE: Moment = 1_000;
/// A clock that goes back by more than this makes all due times wrong.
const CLOCK_SLACK: Moment = 1_000;

/// The controller. Clones share everything.
#[derive(Debug, Clone)]
pub struct Controller(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    env: Env,
    writer: Writer,
    state: PoisonMutex<State>,
}

#[derive(Debug, Default)]
struct State {
    policies: BTreeMap<Key, Entry>,
    exceptions: Arc<ExceptionSet>,
    queue: Queue<Key>,
    /// The latest time that was seen.
    latest: Moment,
}

#[derive(Debug)]
struct Entry {
    policy: Arc<ScheduledPolicy>,
    /// When it ran last, whether or not that could be written.
    ran: Option<Timestamp>,
    /// From when on its next time counts.
    base: Timestamp,
    /// How often the present run failed for now.
    attempts: u32,
}

impl State {
    fn set(&mut self, policy: ScheduledPolicy, now: Moment) {
        let key = policy.key.clone();
        let known = self.policies.remove(&key);
        // A policy that was made anew under its name never ran.
        let same = known.filter(|known| known.policy.reference.uid == policy.reference.uid);
        let entry = match same {
            // Nobody says anything new of when it ran.
            Some(known) if known.policy.last == policy.last => Entry { policy: Arc::new(policy), ..known },
            known => {
                let (ran, attempts) = known.map_or((None, 0), |known| (known.ran, known.attempts));
                let base = policy.base(ran, timestamp(now));
                Entry { policy: Arc::new(policy), ran, base, attempts }
            }
        };
        self.policies.insert(key.clone(), entry);
        self.schedule(&key, now);
    }

    fn remove(&mut self, key: &Key) {
        self.policies.remove(key);
        self.queue.forget(key);
    }

    fn retain(&mut self, kept: impl Fn(&Key) -> bool) {
        let gone: Vec<Key> = self.policies.keys().filter(|key| !kept(key)).cloned().collect();
        for key in gone {
            self.remove(&key);
        }
    }

    fn due(&self, key: &Key) -> Option<Moment> {
        let entry = self.policies.get(key)?;
        entry.policy.next(entry.base).map(moment)
    }

    /// Asks for the next run. What was asked for before may be too early or too late.
    fn schedule(&mut self, key: &Key, now: Moment) {
        let waits = self.policies.get(key).is_some_and(|entry| entry.attempts > 0);
        if waits && self.queue.holds(key) {
            return;
        }
        self.queue.forget(key);
        if let Some(due) = self.due(key) {
            self.queue.add_at(key.clone(), due, now);
        }
    }

    /// Takes in the time. After a clock went back, what ran in the future ran just now.
    fn observe_time(&mut self, now: Moment) {
        if now.saturating_add(CLOCK_SLACK) < self.latest {
            for entry in self.policies.values_mut() {
                entry.base = entry.base.min(timestamp(now));
                entry.ran = entry.ran.min(Some(timestamp(now)));
            }
            let keys: Vec<Key> = self.policies.keys().cloned().collect();
            for key in keys {
                self.schedule(&key, now);
            }
            self.latest = now;
        }
        self.latest = self.latest.max(now);
    }
}

impl Controller {
    /// A controller that knows no policy yet.
    pub fn new(env: Env) -> Self {
        let writer = Writer::new(Arc::clone(&env.cluster), Arc::clone(&env.fence));
        Self(Arc::new(Shared { env, writer, state: PoisonMutex::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Takes in a change of policies of a kind of `kyverno.io`.
    pub fn observe_cleanup(&self, kind: Kind, event: StoreEvent, now: Moment) {
        match event {
            StoreEvent::Reset(documents) => {
                let policies: Vec<_> =
                    documents.iter().map(|document| ScheduledPolicy::of_cleanup(kind, document)).collect();
                let mut state = self.lock();
                state.retain(|key| key.kind != kind || policies.iter().any(|policy| policy.key == *key));
                for policy in policies {
                    state.set(policy, now);
                }
            }
            StoreEvent::Apply(document) => {
                let policy = ScheduledPolicy::of_cleanup(kind, &document);
                self.lock().set(policy, now);
            }
            StoreEvent::Delete(document) => self.lock().remove(&Key::of(kind, &document)),
        }
    }

    /// Takes in the policies of `policies.kyverno.io`, and the exceptions.
    pub fn observe_snapshot(&self, snapshot: &Snapshot, now: Moment) {
        let policies: BTreeMap<Key, ScheduledPolicy> = snapshot
            .policies
            .values()
            .filter_map(|stored| ScheduledPolicy::of_stored(stored))
            .map(|policy| (policy.key.clone(), policy))
            .collect();
        let mut state = self.lock();
        state.exceptions = Arc::clone(&snapshot.exceptions);
        state.retain(|key| !key.kind.is_of_cel() || policies.contains_key(key));
        for policy in policies.into_values() {
            state.set(policy, now);
        }
    }

    /// When each policy runs next, for metrics and tests.
    pub fn schedule(&self) -> Vec<(Key, Option<Moment>)> {
        let state = self.lock();
        state.policies.keys().map(|key| (key.clone(), state.due(key))).collect()
    }

    /// Carries out one run that is due.
    pub fn step(&self, now: Moment) -> Step {
        let (key, policy, exceptions) = {
            let mut state = self.lock();
            state.observe_time(now);
            let namespace = |key: &Key| key.namespace.clone().unwrap_or_default();
            let Some(key) = state.queue.take(now, namespace) else { return Step::Idle(state.queue.next_due()) };
            let due = state.due(&key);
            let policy = state.policies.get(&key).map(|entry| Arc::clone(&entry.policy));
            match (policy, due) {
                (Some(policy), Some(due)) if due <= now => (key, policy, Arc::clone(&state.exceptions)),
                (Some(_), Some(due)) => {
                    state.queue.settle(key, Settled::Later(due - now), now);
                    return Step::Worked;
                }
                _ => {
                    state.queue.settle(key, Settled::Done, now);
                    return Step::Worked;
                }
            }
        };
        let ran = self.0.state.contain(|| self.run(&policy, &exceptions, now)).unwrap_or_else(|| {
            tracing::error!(policy = %key, "a run panicked");
            Ok(Ran::Counts)
        });
        self.settle(key, &policy, ran, now);
        Step::Worked
    }

    fn settle(&self, key: Key, policy: &ScheduledPolicy, ran: Result<Ran, LostLease>, now: Moment) {
        let mut state = self.lock();
        let mut pause = None;
        if let Some(entry) = state.policies.get_mut(&key)
            && entry.policy.reference.uid == policy.reference.uid
        {
            match ran {
                Ok(Ran::Counts) => {
                    (entry.ran, entry.base, entry.attempts) = (Some(timestamp(now)), timestamp(now), 0);
                }
                Ok(Ran::Again) => {
                    entry.attempts += 1;
                    pause = Some(RETRY_PAUSE * Moment::from(entry.attempts));
                }
                // Whoever leads now carries it out.
                Err(LostLease) => pause = Some(SHORTEST_PAUSE),
            }
        }
        let due = state.due(&key).map(|due| due.saturating_sub(now).max(SHORTEST_PAUSE));
        let settled = pause.or(due).map_or(Settled::Done, Settled::Later);
        state.queue.settle(key, settled, now);
    }

    fn run(&self, policy: &ScheduledPolicy, exceptions: &ExceptionSet, now: Moment) -> Result<Ran, LostLease> {
        let Ok((body, options)) = &policy.body else { return Ok(Ran::Counts) };
        let attempts = self.lock().policies.get(&policy.key).map_or(0, |entry| entry.attempts);
        let run = Run {
            env: &self.0.env,
            writer: &self.0.writer,
            policy,
            body,
            options: *options,
            exceptions,
            filters: (self.0.env.filters)(),
            now: timestamp(now),
            began: Instant::now(),
            most_named: MAX_NAMED,
        };
        let report = self.carry_out(&run)?;
        let again = report.passing && attempts + 1 < MAX_ATTEMPTS;
        let (reason, message) = report.result(options.mode);
        tracing::info!(policy = %policy.key, deleted = report.deleted, due = report.due, failed = report.failed, said = %message,
            "a cleanup policy ran");
        if !again {
            run.tell(&report);
        }
        let status = RunStatus {
            ran: (!again).then(|| timestamp(now)),
            reason,
            message: message.into(),
            generation: policy.generation,
        };
        self.write_status(policy, &status, now)?;
        Ok(if again { Ran::Again } else { Ran::Counts })
    }

    fn carry_out(&self, run: &Run<'_>) -> Result<Report, LostLease> {
        match self.0.env.cluster.discovery() {
            Ok(discovery) => run.carry_out(&discovery),
            Err(error) => {
                let failures = vec![format!("kinds are not known: {error}")];
                Ok(Report { failures, failed: 1, passing: true, ..Report::default() })
            }
        }
    }

    fn write_status(&self, policy: &ScheduledPolicy, status: &RunStatus, now: Moment) -> Result<(), LostLease> {
        let of_cel = policy.key.kind.is_of_cel();
        self.put_status(policy, |before| status.after(before, of_cel, timestamp(now)))
    }

    fn put_status(&self, policy: &ScheduledPolicy, change: impl Fn(&Value) -> Value) -> Result<(), LostLease> {
        if let Err(error) = self.0.writer.status(&policy.key, &policy.reference.uid, change)? {
            tracing::warn!(policy = %policy.key, %error, "the status of a cleanup policy cannot be written");
        }
        Ok(())
    }

    /// Tells of each policy, once for each generation, whether it can be carried out.
    pub fn tell_of_policies(&self, told: &mut BTreeMap<Key, (Str, i64)>, now: Moment) {
        let policies: Vec<Arc<ScheduledPolicy>> = {
            let state = self.lock();
            told.retain(|key, _| state.policies.contains_key(key));
            state.policies.values().map(|entry| Arc::clone(&entry.policy)).collect()
        };
        for policy in policies {
            let seen = (policy.reference.uid.clone(), policy.generation);
            if told.insert(policy.key.clone(), seen.clone()) == Some(seen) {
                continue;
            }
            let Err(why) = &policy.body else {
                let ready = |before: &Value| RunStatus::ready(before, policy.generation);
                if policy.key.kind.is_of_cel() && self.put_status(&policy, ready).is_err() {
                    return;
                }
                continue;
            };
            self.0.env.events.record([Event {
                regarding: policy.reference.clone(),
                related: None,
                reason: EventReason::Error,
                action: Action::None,
                component: Component::Cleanup,
                note: format!("the policy is not carried out: {why}").into(),
            }]);
            let status = RunStatus {
                ran: None,
                reason: Reason::Failed,
                message: why.as_str().into(),
                generation: policy.generation,
            };
            if self.write_status(&policy, &status, now).is_err() {
                return;
            }
        }
    }
}

/// What a run counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    /// The next one is that of the schedule.
    Counts,
    /// It failed for now, and is tried again soon.
    Again,
}
