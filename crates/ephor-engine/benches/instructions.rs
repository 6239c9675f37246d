//! One review of the judged Pod for callgrind, which counts instructions where time is noisy.
//!
//! With the argument `unrelated`, 10,000 policies that do not concern the Pod are loaded as well. Under
//! `--toggle-collect='*measured_review*'` only the review is counted; `docs/performance.md` has the command.

mod workload;

use std::hint::black_box;

use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;
use ephor_engine::outcome::Outcome;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;

/// A function of its own, so that callgrind can tell it from the preparations.
#[inline(never)]
fn measured_review(set: &PolicySet, exceptions: &ExceptionSet, facts: &Facts, review: &Review) -> Vec<Outcome> {
    workload::evaluate(set, exceptions, facts, black_box(review))
}

#[expect(clippy::print_stdout, reason = "its result")]
fn main() {
    let set = workload::policy_set(std::env::args().any(|argument| argument == "unrelated"));
    let (review, exceptions, facts) = (workload::review(), ExceptionSet::default(), Facts::new());
    // The first review also pays for what is set up once in the life of a process.
    workload::evaluate(&set, &exceptions, &facts, &review);
    let outcomes = measured_review(&set, &exceptions, &facts, &review);
    println!("{} policies loaded, {} rules judged", set.programs().len(), outcomes.len());
}
