//! `validate` patterns: one that matches and one that does not, whose message is made as well.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use ephor_engine::rules::validate::pattern::Pattern;
use ephor_expr::budget::Budget;
use ephor_expr::yaml::parse_value;

const PATTERN: &str = "
spec:
  =(securityContext): {=(runAsNonRoot): true}
  =(initContainers): [{=(securityContext): {=(privileged): 'false'}}]
  containers:
  - name: '?*'
    image: 'registry.example.com/* | ghcr.io/*'
    resources: {limits: {memory: <=2Gi}}
    =(securityContext): {=(privileged): 'false'}
";

fn pattern(criterion: &mut Criterion) {
    let pattern = Pattern::compile(&parse_value(PATTERN).expect("the pattern is YAML"));
    for (name, memory) in [("pattern_match", "512Mi"), ("pattern_mismatch", "4Gi")] {
        let pod = parse_value(&format!(
            "{{spec: {{securityContext: {{runAsNonRoot: true}}, containers: [{{name: a, image: ghcr.io/a/b:1, resources: \
             {{limits: {{memory: {memory}}}}}}}]}}}}"
        ));
        let pod = pod.expect("the Pod is YAML");
        criterion.bench_function(name, |bencher| bencher.iter(|| pattern.matches(black_box(&pod), &Budget::default())));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = pattern
}
criterion_main!(benches);
