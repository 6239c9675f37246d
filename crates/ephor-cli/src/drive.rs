//! Reviews through the engine: steps, and answers to its questions.

use ephor_engine::evaluation::{Done, Evaluation, Step};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;
use ephor_engine::outcome::Phase;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;

use crate::host::Host;

/// Takes a review through one phase, asking `host` for what the policies need.
pub fn evaluate(set: &PolicySet, exceptions: &ExceptionSet, review: Review, phase: Phase, host: &Host) -> Done {
    let mut evaluation = Evaluation::new(set, exceptions, review, phase);
    let mut facts = Facts::new();
    while let Step::Need(fetches) = evaluation.step(&facts) {
        for fetch in fetches {
            let fact = host.answer(&fetch);
            facts.insert(fetch.into_fetch(), fact);
        }
    }
    evaluation.finish()
}
