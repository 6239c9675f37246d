//! Reviews through the engine: steps, and answers to its questions.

use ephor_engine::cleanup::{Cleaned, CleanupProgram, CleanupVerdict};
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

/// How often a cleanup policy may ask for more facts.
const MAX_ROUNDS: u32 = 64;

/// Asks a cleanup policy about an object, and `host` for what the policy needs.
pub fn clean(program: &CleanupProgram, review: &Review, host: &Host) -> CleanupVerdict {
    let mut facts = Facts::new();
    for _ in 0..MAX_ROUNDS {
        match program.evaluate(review, &facts) {
            Cleaned::Done(verdict) => return verdict,
            Cleaned::Need(fetches) => {
                for fetch in fetches {
                    let fact = host.answer(&fetch);
                    facts.insert(fetch.into_fetch(), fact);
                }
            }
        }
    }
    CleanupVerdict::Error("the policy asks for data without end".into(), None)
}
