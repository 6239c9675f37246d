//! One Pod against the 18 judged policies, alone and among 10,000 that do not concern it.

mod workload;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;

fn review(criterion: &mut Criterion) {
    let review = workload::review();
    let (exceptions, facts) = (ExceptionSet::default(), Facts::new());
    for (name, with_unrelated) in [("review_pod", false), ("review_pod_with_unrelated", true)] {
        let set = workload::policy_set(with_unrelated);
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| workload::evaluate(&set, &exceptions, &facts, black_box(&review)));
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50).warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    targets = review
}
criterion_main!(benches);
