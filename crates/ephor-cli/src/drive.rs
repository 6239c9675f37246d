//! Reviews through the engine, with answers to its questions from the host of the command line.

use ephor_engine::cleanup::{Cleaned, CleanupProgram, CleanupVerdict};
use ephor_engine::fetch::Facts;
use ephor_engine::review::Review;
use ephor_runtime::facts::Answers;
pub use ephor_runtime::facts::evaluate;

/// How often a cleanup policy may ask for more facts.
const MAX_ROUNDS: u32 = 64;

/// Asks a cleanup policy about an object, and `answers` for what the policy needs.
pub fn clean(program: &CleanupProgram, review: &Review, answers: &impl Answers) -> CleanupVerdict {
    let mut facts = Facts::new();
    for _ in 0..MAX_ROUNDS {
        match program.evaluate(review, &facts) {
            Cleaned::Done(verdict) => return verdict,
            Cleaned::Need(fetches) => {
                for fetch in fetches {
                    let fact = answers.answer(&fetch);
                    facts.insert(fetch.into_fetch(), fact);
                }
            }
        }
    }
    CleanupVerdict::Error("the policy asks for data without end".into(), None)
}
