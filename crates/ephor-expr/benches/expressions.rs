//! JMESPath, CEL, quantities and YAML: the parts of the expression crate that evaluation and loading stand on.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::profile::Kubernetes;
use ephor_expr::cel::{EvalError, NoHost, Program, Run, Scope, Usage, Val};
use ephor_expr::jmespath::{Expression, FixedRuntime};
use ephor_expr::scalar::quantity::Quantity;
use ephor_expr::yaml::{Limits, parse_documents, parse_value, parse_values};

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app.kubernetes.io/name: web, tier: front}}
spec:
  containers:
  - name: main
    image: registry.example.com/shop/web:1.4.2
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 1Gi}}
    ports: [{containerPort: 8080}, {containerPort: 8443}]
  - name: proxy
    image: registry.example.com/mesh/proxy:2.0
    ports: [{containerPort: 9901}]
";

fn jmespath(criterion: &mut Criterion) {
    let pod = parse_value(POD).expect("the Pod is YAML");
    let cases = [
        ("jmespath_path", "metadata.labels.tier"),
        ("jmespath_projection", "spec.[ephemeralContainers, initContainers, containers][].ports[].containerPort"),
        ("jmespath_filter", "spec.containers[?contains(image, '/mesh/') && ports].name | [0]"),
        (
            "jmespath_functions",
            "join('-', spec.containers[*].to_upper(name)) == 'MAIN-PROXY' && length(spec.containers)",
        ),
        ("jmespath_regex", "regex_match('^registry[.]example[.]com/[a-z]+/', spec.containers[0].image)"),
    ];
    for (name, text) in cases {
        let expression = Expression::compile(text).expect("the expression compiles");
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| expression.evaluate(black_box(&pod), &FixedRuntime::default()));
        });
    }
    let text = "spec.[ephemeralContainers, initContainers, containers][].ports[].containerPort";
    criterion.bench_function("jmespath_compile", |bencher| bencher.iter(|| Expression::compile(black_box(text))));
}

struct Object<'v>(&'v Value);

impl<'v> Scope<'v> for Object<'v> {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        (name == "object").then(|| Ok(Val::from_json(self.0)))
    }
}

fn cel(criterion: &mut Criterion) {
    let container = r#"{"name":"a","image":"ghcr.io/acme/app:v1","securityContext":{"privileged":false}}"#;
    let pod = format!(r#"{{"metadata":{{"name":"web"}},"spec":{{"containers":[{container},{container}]}}}}"#);
    let pod = Value::from_json(&pod).expect("the Pod is JSON");
    let environment = Kubernetes::Policy.environment();
    let (budget, usage) = (Budget::new(u64::MAX, u64::MAX), Usage::new(None));
    let all = "object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.privileged) && \
               c.securityContext.privileged == false)";
    let cases = [
        ("cel_equal", "object.metadata.name == 'web'"),
        ("cel_all_has", all),
        ("cel_starts_with", "object.spec.containers.all(c, c.image.startsWith('ghcr.io/') || c.image.startsWith('x'))"),
        ("cel_map_filter", "object.spec.containers.map(c, c.name).filter(n, n != 'x').size() > 0"),
    ];
    for (name, text) in cases {
        let program = Program::compile(text, &environment).expect("the expression compiles");
        criterion.bench_function(name, |bencher| {
            let run = Run { host: &NoHost, budget: &budget, usage: &usage };
            bencher.iter(|| program.evaluate(&Object(black_box(&pod)), &run));
        });
    }
    criterion.bench_function("cel_compile", |bencher| bencher.iter(|| Program::compile(black_box(all), &environment)));
}

fn quantity(criterion: &mut Criterion) {
    criterion.bench_function("quantity_parse_and_compare", |bencher| {
        bencher.iter(|| {
            let (a, b) = (Quantity::parse(black_box("1500m")), Quantity::parse(black_box("2")));
            a.ok().partial_cmp(&b.ok())
        });
    });
    criterion.bench_function("quantity_sum_as_text", |bencher| {
        bencher.iter(|| {
            let (a, b) = (Quantity::parse(black_box("512Mi")).ok()?, Quantity::parse(black_box("1Gi")).ok()?);
            a.add(&b).map(|sum| sum.to_string())
        });
    });
}

fn yaml(criterion: &mut Criterion) {
    let mut text = String::new();
    for i in 0..200 {
        write!(text, "---{}", POD.replace("name: web", &format!("name: web-{i}"))).expect("texts can be written to");
    }
    let mut group = criterion.benchmark_group("yaml");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("values", |bencher| bencher.iter(|| parse_values(black_box(&text), &Limits::default())));
    group.bench_function("documents_with_positions", |bencher| {
        bencher.iter(|| parse_documents(black_box(&text), &Limits::default()));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = jmespath, cel, quantity, yaml
}
criterion_main!(benches);
