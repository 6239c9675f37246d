//! The allocations of one review of the judged Pod: with the 18 policies, and with 10,000 that do not concern it beside
//! them.

mod workload;

use std::hint::black_box;

use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;
use ephor_engine::outcome::Verdict;

#[expect(clippy::print_stdout, reason = "its result")]
fn main() {
    let (review, exceptions, facts) = (workload::review(), ExceptionSet::default(), Facts::new());
    for with_unrelated in [false, true] {
        let set = workload::policy_set(with_unrelated);
        let mut outcomes = Vec::new();
        let counted = allocation_counter::measure(|| {
            outcomes = workload::evaluate(&set, &exceptions, &facts, black_box(&review));
        });
        let passed = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Pass).count();
        println!(
            "{} policies loaded, {passed} of {} rules passed: {} allocations, {} bytes in one review",
            set.programs().len(),
            outcomes.len(),
            counted.count_total,
            counted.bytes_total
        );
    }
}
