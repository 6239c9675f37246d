//! What a review may cost, counted: allocations of one review, and the rules that are looked at when policies that do
//! not concern the object are loaded. Nothing here is timed; the benchmarks do that.

use std::sync::Arc;

use ephor_engine::compile::{Program, compile};
use ephor_engine::evaluation::{Evaluation, Step};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;
use ephor_engine::outcome::{Outcome, Phase, Verdict};
use ephor_engine::review::Review;
use ephor_engine::select::{PolicySet, RuleRef};
use ephor_expr::yaml::{parse_value, parse_values};

/// A pattern, alternatives, conditions and a loop, which all pass for [`POD`].
const POLICIES: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: shapes}
spec:
  rules:
  - name: pattern
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: privileged containers are not allowed
      pattern: {spec: {containers: [{name: '?*', =(securityContext): {=(privileged): 'false'}}]}}
  - name: alternatives
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: must not run as root
      anyPattern:
      - spec: {securityContext: {runAsNonRoot: true}}
      - spec: {containers: [{securityContext: {runAsNonRoot: true}}]}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: expressions}
spec:
  rules:
  - name: deny
    match: {any: [{resources: {kinds: [Pod]}}]}
    preconditions: {all: [{key: '{{ request.operation }}', operator: NotEquals, value: DELETE}]}
    validate:
      message: the host's ports are not for Pods
      deny:
        conditions:
          any:
          - key: '{{ request.object.spec.[initContainers, containers][].ports[].hostPort }}'
            operator: AnyNotIn
            value: [0]
  - name: loop
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: all capabilities must be dropped
      foreach:
      - list: request.object.spec.containers
        deny:
          conditions:
            all:
            - key: ALL
              operator: AnyNotIn
              value: '{{ element.securityContext.capabilities.drop[] || `[]` }}'
";

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  securityContext: {runAsNonRoot: true}
  containers:
  - {name: main, image: 'example.com/web:1', securityContext: {privileged: false, capabilities: {drop: [ALL]}}}
  - {name: side, image: 'example.com/side:1', securityContext: {privileged: false, capabilities: {drop: [ALL]}}}
";

fn programs(text: &str) -> Vec<Arc<Program>> {
    let documents = parse_values(text, &ephor_expr::yaml::Limits::default()).unwrap();
    documents.iter().map(|document| Arc::new(compile(document).program.unwrap())).collect()
}

fn review() -> Review {
    Review::of_object(parse_value(POD).unwrap(), jiff::Timestamp::UNIX_EPOCH)
}

fn judge(set: &PolicySet, review: &Review) -> Vec<Outcome> {
    let (exceptions, facts) = (ExceptionSet::default(), Facts::new());
    let mut evaluation = Evaluation::new(set, &exceptions, review.clone(), Phase::Validate);
    assert!(matches!(evaluation.step(&facts), Step::Done));
    evaluation.finish().outcomes
}

/// The policies with as many others before and after each: for another kind, and of another namespace.
fn among_unrelated(programs_of_interest: &[Arc<Program>]) -> PolicySet {
    let rule = "{name: r, match: {any: [{resources: {kinds: [KIND]}}]}, validate: {pattern: {metadata: {name: x}}}}";
    let other_kind = format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: other-kind}}, spec: {{rules: [{}]}}}}",
        rule.replace("KIND", "Service")
    );
    let other_namespace = format!(
        "{{apiVersion: kyverno.io/v1, kind: Policy, metadata: {{name: elsewhere, namespace: other}}, spec: {{rules: [{}]}}}}",
        rule.replace("KIND", "Pod")
    );
    let unrelated = vec![[programs(&other_kind), programs(&other_namespace)].concat(); 50].concat();
    let mut all = unrelated.clone();
    for program in programs_of_interest {
        all.push(Arc::clone(program));
        all.extend_from_slice(&unrelated);
    }
    PolicySet::new(all)
}

#[test]
fn a_review_stays_under_its_ceiling_of_allocations() {
    let set = PolicySet::new(programs(POLICIES));
    let review = review();
    let mut outcomes = Vec::new();
    let counted = allocation_counter::measure(|| outcomes = judge(&set, &review));
    assert_eq!(outcomes.iter().map(|o| o.verdict).collect::<Vec<_>>(), [Verdict::Pass; 4]);
    // Counted: 18. The ceiling leaves a tenth for changes that are worth it.
    assert!(counted.count_total <= 20, "{} allocations", counted.count_total);
}

#[test]
fn policies_that_do_not_concern_the_object_cost_it_nothing() {
    let programs = programs(POLICIES);
    let (alone, among) = (PolicySet::new(programs.clone()), among_unrelated(&programs));
    let review = review();
    let candidates = |set: &PolicySet| {
        let mut found = Vec::new();
        set.candidates(Phase::Validate, &review, &mut found);
        found
    };
    let name = |set: &PolicySet, at: &RuleRef| {
        let program = &set.programs()[at.policy as usize];
        (program.id.name.clone(), program.rules[at.rule as usize].name.clone())
    };
    let names = |set: &PolicySet| candidates(set).iter().map(|at| name(set, at)).collect::<Vec<_>>();
    assert_eq!(names(&among), names(&alone));

    let count = |set: &PolicySet| allocation_counter::measure(|| drop(judge(set, &review))).count_total;
    assert_eq!(count(&among), count(&alone));
}

/// With auto-gen each has rules for Pods, for Deployments and the like, and for `CronJobs`.
#[test]
fn a_thousand_cel_policies_stay_under_thirty_megabytes() {
    const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: NAME}
spec:
  rules:
  - name: containers
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      cel:
        expressions:
        - expression: \"object.metadata.name != 'NAME' && object.spec.containers.all(c, has(c.securityContext) &&
            has(c.securityContext.privileged) && c.securityContext.privileged == false)\"
          message: privileged containers are not allowed
";
    let mut programs = Vec::new();
    let counted = allocation_counter::measure(|| {
        programs.extend((0..1000).flat_map(|n| self::programs(&POLICY.replace("NAME", &format!("policy-{n}")))));
    });
    assert_eq!(programs.len(), 1000);
    let bytes = counted.bytes_current;
    assert!(bytes < 30 << 20, "{bytes} bytes");
}
