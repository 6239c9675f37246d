//! Policy files: a document that compiles is also evaluated, against an object that follows it or a Pod.

#![no_main]

use ephor_engine::compile::compile;
use ephor_engine::evaluation::{Evaluation, Step};
use ephor_engine::exceptions::{Exception, ExceptionSet};
use ephor_engine::fetch::{Fact, Facts};
use ephor_engine::outcome::Phase;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_documents, parse_value};
use libfuzzer_sys::fuzz_target;

const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: n, labels: {app: a}}, spec: {containers: \
    [{name: a, image: 'nginx:1', ports: [{containerPort: 80}], resources: {limits: {memory: 1Gi}}}]}}";

fuzz_target!(|text: &str| {
    let Ok(documents) = parse_documents(text, &Limits::default()) else { return };
    let Some((policy, rest)) = documents.split_first() else { return };
    drop(Exception::compile(&policy.value));
    let compiled = compile(&policy.value);
    for finding in &compiled.findings {
        // Each finding has a place, at least that of what is around it.
        let _ = policy.source.nearest_span(&finding.path);
    }
    let Some(program) = compiled.program else { return };
    let object = rest.first().map_or_else(|| parse_value(POD).expect("the Pod is YAML"), |d| d.value.clone());
    let set = PolicySet::new(vec![program.into()]);
    let exceptions = ExceptionSet::default();
    let mut review = Review::of_object(object, jiff::Timestamp::UNIX_EPOCH);
    for phase in [Phase::Mutate, Phase::Validate, Phase::Generate, Phase::MutateExisting] {
        let mut evaluation = Evaluation::new(&set, &exceptions, review.clone(), phase);
        let mut facts = Facts::new();
        while let Step::Need(needs) = evaluation.step(&facts) {
            for need in needs {
                facts.insert(need.fetch().clone(), Fact::Found(Value::array(Vec::new())));
            }
        }
        review.object = evaluation.finish().object;
    }
});
