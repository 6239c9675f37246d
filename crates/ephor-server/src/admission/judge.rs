//! Reviews through phases, at once or with questions to the cluster.
//!
//! Most policies ask for nothing. Their requests are answered on the thread that read them; as soon as something has to
//! be fetched the attempt is given up and begun anew where blocking is allowed.

use ephor_engine::evaluation::{Done, Evaluation, Step};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;
use ephor_engine::outcome::{Outcome, Phase};
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;

use super::redact::Learning;
use crate::explain::ExplainedRule;
use crate::facts::{self, Answers};

/// Whether an answer may wait for the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// No: give up instead.
    Immediate,
    /// Yes.
    Blocking,
}

/// The answer has to wait for the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer has to wait for the cluster")]
pub struct WouldBlock;

/// What evaluations of one request have in common.
pub(super) struct Judge<'j> {
    pub(super) exceptions: &'j ExceptionSet,
    /// Who answers, and the values that must not be told.
    pub(super) answers: Learning<'j, dyn Answers>,
    pub(super) effort: Effort,
    /// Whether the ways to verdicts are kept.
    pub(super) explained: bool,
}

impl Judge<'_> {
    /// Takes a review through a phase.
    pub(super) fn evaluate(&self, set: &PolicySet, review: Review, phase: Phase) -> Result<Done, WouldBlock> {
        let evaluation = Evaluation::new(set, self.exceptions, review, phase);
        let evaluation = if self.explained { evaluation.traced() } else { evaluation };
        match self.effort {
            Effort::Blocking => Ok(facts::drive(evaluation, &self.answers)),
            Effort::Immediate => immediate(evaluation),
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
        let done = match self.effort {
            Effort::Blocking => facts::drive(evaluation, &self.answers),
            Effort::Immediate => immediate(evaluation)?,
        };
        Ok(done.outcomes)
    }

    /// Takes the values of Secrets out of messages.
    pub(super) fn redact(&self, outcomes: &mut [Outcome]) {
        self.answers.redact(outcomes.iter_mut().map(|outcome| &mut outcome.message));
    }
}

fn immediate(mut evaluation: Evaluation<'_>) -> Result<Done, WouldBlock> {
    match evaluation.step(&Facts::new()) {
        Step::Done => Ok(evaluation.finish()),
        Step::Need(_) => Err(WouldBlock),
    }
}
