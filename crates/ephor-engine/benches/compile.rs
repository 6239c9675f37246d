//! Policy text into programs: the 18 judged policies, read and compiled.

mod workload;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use ephor_engine::select::PolicySet;

fn compile(criterion: &mut Criterion) {
    let texts = workload::policy_texts();
    criterion.bench_function("compile_policies", |bencher| {
        bencher.iter(|| PolicySet::new(texts.iter().flat_map(|text| workload::programs(black_box(text))).collect()));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3));
    targets = compile
}
criterion_main!(benches);
