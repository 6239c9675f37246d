//! Match conditions of a policy's webhook, as an API server evaluates them before it calls the webhook.

use ephor_expr::Value;
use ephor_expr::budget::Budget;

use crate::cel::{Evaluator, Inputs, Matched, Stop};
use crate::compile::Program;
use crate::fetch::Facts;
use crate::gate::{AllowedFetch, Asker};
use crate::review::Review;
use crate::scope::{Seed, World};

/// Whether a request meets the conditions of a policy's webhook. If facts are missing it gives the questions: add the
/// answers and ask again.
pub fn meets_conditions(program: &Program, review: &Review, facts: &Facts) -> Result<Matched, Vec<AllowedFetch>> {
    let asker = Asker { namespace: program.id.namespace.as_deref(), effects: review.effects };
    let seed = Seed { policy: &program.key, rule: "", review: review.seed };
    let world = World::new(facts, asker, review.now, seed, Budget::default());
    let matched = {
        let inputs = Inputs::new(review, &world);
        Evaluator::new(&program.requests, &inputs, &Value::Null).matches()
    };
    match matched {
        Ok(matched) => Ok(matched),
        Err(Stop::Pending) => Err(world.into_needs()),
        Err(Stop::Spent(error)) => Ok(Matched::Failed(error.to_string())),
    }
}
