//! Evaluates a review through a phase: within a short time slice, or with fetches until a deadline.
//!
//! Most policies ask for nothing and take microseconds. Their requests are answered on the thread that read them. An
//! attempt that has to fetch something, or takes more than [`IMMEDIATE_TIMEOUT`], is given up and begun anew on a thread where
//! blocking is allowed. There the time of the request ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ephor_engine::evaluation::{Done, Evaluation, Step};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;
use ephor_engine::outcome::{Outcome, Phase};
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::budget::Interrupt;
use ephor_runtime::explain::ExplainedRule;
use ephor_runtime::facts::{self, Answers};
use ephor_runtime::redact::Learning;
use parking_lot::{Condvar, Mutex};

/// How much an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A moment, without waiting for the cluster: the thread serves others too.
    Immediate,
    /// All the time until then.
    Blocking(Instant),
}

/// The longest that an attempt stays on a thread that serves others too.
const IMMEDIATE_TIMEOUT: Duration = Duration::from_micros(500);

/// The most evaluation steps of such an attempt, whatever the clock says.
const IMMEDIATE_STEPS: u64 = 50_000;

/// The answer takes more than the effort allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer takes more than a moment")]
pub struct WouldBlock;

/// Ends the evaluations of one request when its time or its steps are over.
struct Deadline {
    until: Instant,
    steps: AtomicU64,
    over: AtomicBool,
    large: Option<(Arc<LargeEvaluations>, AtomicBool)>,
}

impl Deadline {
    fn of(effort: Effort, large: &Arc<LargeEvaluations>) -> Self {
        let (until, steps) = match effort {
            Effort::Immediate => (Instant::now() + IMMEDIATE_TIMEOUT, IMMEDIATE_STEPS),
            Effort::Blocking(until) => (until, u64::MAX),
        };
        // What serves other requests, too, waits for nothing.
        let large = match effort {
            Effort::Immediate => None,
            Effort::Blocking(_) => Some((Arc::clone(large), AtomicBool::new(false))),
        };
        Self { until, steps: AtomicU64::new(steps), over: AtomicBool::new(false), large }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        if let Some((large, held)) = &self.large
            && held.load(Ordering::Relaxed)
        {
            large.leave();
        }
    }
}

/// How many requests may build much at once: see [`Budget::LIGHT_BYTES`](ephor_expr::budget::Budget::LIGHT_BYTES).
const LARGE_AT_ONCE: usize = 2;
/// How many more may wait for that.
const LARGE_WAITING: usize = 16;

/// The requests whose rules build much. The others wait until one of them is done, so that rules of one namespace, each
/// within its budget, do not take more memory together than the process has.
#[derive(Debug, Default)]
pub(super) struct LargeEvaluations {
    places: Mutex<Places>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Places {
    taken: usize,
    waiting: usize,
}

impl LargeEvaluations {
    /// Waits for a place; whether there is one before `until`.
    fn enter(&self, until: Instant) -> bool {
        let mut places = self.places.lock();
        // Each that waits keeps a thread from others.
        if places.taken >= LARGE_AT_ONCE && places.waiting >= LARGE_WAITING {
            return false;
        }
        places.waiting += 1;
        while places.taken >= LARGE_AT_ONCE && !self.left.wait_until(&mut places, until).timed_out() {}
        places.waiting -= 1;
        let is_free = places.taken < LARGE_AT_ONCE;
        places.taken += usize::from(is_free);
        is_free
    }

    fn leave(&self) {
        self.places.lock().taken -= 1;
        self.left.notify_one();
    }
}

impl Interrupt for Deadline {
    fn is_due(&self, steps: u64) -> bool {
        let left = self.steps.load(Ordering::Relaxed).saturating_sub(steps);
        self.steps.store(left, Ordering::Relaxed);
        let due = left == 0 || Instant::now() >= self.until;
        self.over.fetch_or(due, Ordering::Relaxed);
        due
    }

    fn may_build_much(&self) -> bool {
        let may = self.large.as_ref().is_some_and(|(large, held)| {
            if !held.load(Ordering::Relaxed) && large.enter(self.until) {
                held.store(true, Ordering::Relaxed);
            }
            held.load(Ordering::Relaxed)
        });
        self.over.fetch_or(!may, Ordering::Relaxed);
        may
    }
}

/// What evaluations of one request have in common.
pub(super) struct Judge<'j> {
    pub(super) exceptions: &'j ExceptionSet,
    /// Who answers, and the values that must not be told.
    pub(super) answers: Learning<'j, dyn Answers>,
    pub(super) effort: Effort,
    /// Whether the ways to verdicts are kept.
    pub(super) explained: bool,
    deadline: Arc<Deadline>,
}

impl<'j> Judge<'j> {
    /// The evaluations of one request with this effort.
    pub(super) fn new(
        exceptions: &'j ExceptionSet,
        answers: Learning<'j, dyn Answers>,
        effort: Effort,
        explained: bool,
        large: &Arc<LargeEvaluations>,
    ) -> Self {
        Self { exceptions, answers, effort, explained, deadline: Arc::new(Deadline::of(effort, large)) }
    }

    /// Whether some evaluation was ended because the time was over: its unfinished rules are errors.
    pub(super) fn is_over(&self) -> bool {
        self.deadline.over.load(Ordering::Relaxed)
    }

    /// Takes a review through a phase.
    pub(super) fn evaluate(&self, set: &PolicySet, review: Review, phase: Phase) -> Result<Done, WouldBlock> {
        let evaluation = Evaluation::new(set, self.exceptions, review, phase);
        let evaluation = if self.explained { evaluation.traced() } else { evaluation };
        self.drive(evaluation)
    }

    fn drive(&self, evaluation: Evaluation<'_>) -> Result<Done, WouldBlock> {
        let mut evaluation = evaluation.interrupted_by(Arc::clone(&self.deadline) as Arc<dyn Interrupt>);
        match self.effort {
            Effort::Blocking(_) => Ok(facts::drive(evaluation, &self.answers)),
            Effort::Immediate => match evaluation.step(&Facts::new()) {
                Step::Done if !self.is_over() => Ok(evaluation.finish()),
                Step::Done | Step::Need(_) => Err(WouldBlock),
            },
        }
    }

    /// The ways of the rules that apply to their verdicts, if they were kept.
    pub(super) fn explain(&self, set: &PolicySet, done: &Done) -> Vec<ExplainedRule> {
        let mut rules: Vec<_> =
            done.traces.iter().filter_map(|trace| ExplainedRule::of(set, trace, done, &Redactor::default())).collect();
        rules.retain(|rule| rule.verdict.is_some());
        self.answers.redact(rules.iter_mut().flat_map(|rule| &mut rule.steps).map(|step| &mut step.text));
        rules
    }

    /// The rules of a phase that apply, and those that cannot be told.
    pub(super) fn applying(&self, set: &PolicySet, review: Review, phase: Phase) -> Result<Vec<Outcome>, WouldBlock> {
        let evaluation = Evaluation::new(set, self.exceptions, review, phase).without_bodies();
        Ok(self.drive(evaluation)?.outcomes)
    }

    /// Takes the values of Secrets out of messages.
    pub(super) fn redact(&self, outcomes: &mut [Outcome]) {
        self.answers.redact_outcomes(outcomes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline(large: &Arc<LargeEvaluations>, wait: Duration) -> Deadline {
        Deadline::of(Effort::Blocking(Instant::now() + wait), large)
    }

    #[test]
    fn few_requests_build_much_at_once_and_the_next_takes_the_place_of_one_that_ends() {
        let large = Arc::default();
        let (first, second) = (deadline(&large, Duration::ZERO), deadline(&large, Duration::ZERO));
        assert!(first.may_build_much() && second.may_build_much());
        assert!(first.may_build_much(), "it has its place for all of its rules");
        let third = deadline(&large, Duration::from_millis(1));
        assert!(!third.may_build_much() && third.over.load(Ordering::Relaxed), "its time is over");
        drop(first);
        assert!(deadline(&large, Duration::ZERO).may_build_much());
        let waiting = deadline(&large, Duration::from_mins(1));
        let thread = std::thread::spawn(move || waiting.may_build_much());
        drop(second);
        assert!(thread.join().unwrap());
    }

    #[test]
    fn an_attempt_on_a_thread_that_serves_others_waits_for_no_place() {
        let attempt = Deadline::of(Effort::Immediate, &Arc::default());
        assert!(!attempt.may_build_much() && attempt.over.load(Ordering::Relaxed));
    }

    #[test]
    fn no_more_than_a_bounded_number_waits() {
        let large = Arc::<LargeEvaluations>::default();
        *large.places.lock() = Places { taken: LARGE_AT_ONCE, waiting: LARGE_WAITING };
        assert!(!deadline(&large, Duration::from_mins(10)).may_build_much(), "it is told at once");
    }
}
