//! Evaluates a review through a phase: within a short time slice, or with fetches until a deadline.
//!
//! Most policies ask for nothing and take microseconds. Their requests are answered on the thread that read them. An
//! attempt that has to fetch something, or takes more than [`IMMEDIATE_TIMEOUT`], is given up and begun anew on a
//! thread where blocking is allowed. There the time of the request ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_engine::evaluation::{Done, Evaluation, Step};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;
use ephor_engine::outcome::{Outcome, Phase};
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::budget::Interrupt;
use ephor_runtime::deadline::{Deadline, LargeEvaluations};
use ephor_runtime::explain::ExplainedRule;
use ephor_runtime::facts::{self, Answers};
use ephor_runtime::redact::Learning;

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
        let deadline = match effort {
            Effort::Immediate => Deadline::immediate(IMMEDIATE_TIMEOUT, IMMEDIATE_STEPS),
            Effort::Blocking(until) => Deadline::blocking(until, large),
        };
        Self { exceptions, answers, effort, explained, deadline: Arc::new(deadline) }
    }

    /// Whether some evaluation was ended because the time was over: its unfinished rules are errors.
    pub(super) fn is_over(&self) -> bool {
        self.deadline.is_over()
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
            Effort::Immediate => match evaluation.step(&Facts::merging(self.answers.merger())) {
                Step::Done if !self.is_over() => Ok(evaluation.finish()),
                Step::Done | Step::Need(_) => Err(WouldBlock),
            },
        }
    }

    /// The ways of the rules that apply to their verdicts, if they were kept.
    pub(super) fn explain(&self, set: &PolicySet, done: &Done) -> Vec<ExplainedRule> {
        let secrets = self.answers.secrets();
        let explained = done.traces.iter().filter_map(|trace| ExplainedRule::of(set, trace, done, &secrets));
        let mut rules: Vec<_> = explained.collect();
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
