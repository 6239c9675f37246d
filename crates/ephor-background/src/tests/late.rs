//! Watches that are late, and tell things twice.

use ephor_runtime::watcher::StoreEvent;

use super::bed::Bed;
use crate::Step;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate:
      synchronize: false
      apiVersion: v1
      kind: Secret
      name: made
      namespace: default
      data: {data: {k: v}}
";
const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {v: x}}";
const MADE: &str = "{apiVersion: v1, kind: Secret, metadata: {name: made}}";

/// Tells of requests and nothing else, and works for that many seconds.
fn hear_requests_alone(bed: &mut Bed, seconds: u64) {
    bed.controller.observe_requests(StoreEvent::Reset(bed.list("kyverno.io/v2", "UpdateRequest")), bed.now);
    for _ in 0..seconds {
        while bed.controller.step(bed.now) == Step::Worked {}
        bed.tick(1_000);
    }
}

#[test]
fn a_request_waits_for_the_policy_that_admission_knew() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.settle();
    bed.apply(&POLICY.replace("name: made", "name: other"));
    bed.apply(TRIGGER);
    hear_requests_alone(&mut bed, 30);
    assert_eq!(bed.pending_requests(), 1);
    bed.settle();
    assert!(bed.find(MADE).is_none(), "the policy does not say so any more");
    assert!(bed.find(&MADE.replace("made", "other")).is_some());
}

#[test]
fn a_request_of_a_policy_that_is_gone_makes_nothing() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.settle();
    bed.apply(&POLICY.replace("name: made", "name: other"));
    bed.apply(TRIGGER);
    bed.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    hear_requests_alone(&mut bed, 30);
    bed.settle();
    assert_eq!(bed.pending_requests(), 0);
    assert!(bed.list("v1", "Secret").is_empty());
}

#[test]
fn a_request_waits_for_the_end_of_an_exception_that_admission_knew_no_more() {
    let exception = "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e}, spec: {
      exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [ConfigMap]}}]}}}";
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.apply(exception);
    bed.settle();
    bed.delete(exception);
    bed.apply(TRIGGER);
    hear_requests_alone(&mut bed, 2);
    assert!(bed.find(MADE).is_none());
    bed.settle();
    assert!(bed.find(MADE).is_some());
}

#[test]
fn what_was_done_is_not_done_again_because_it_is_told_again() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.settle();
    bed.apply(TRIGGER);
    let request = bed.list("kyverno.io/v2", "UpdateRequest").pop().unwrap();
    while bed.find(MADE).is_none() {
        bed.pump();
        bed.controller.step(bed.now);
    }
    bed.delete(MADE);
    // Once done, and once gone.
    for _ in 0..2 {
        bed.controller.observe_requests(StoreEvent::Apply(request.clone()), bed.now);
        bed.settle();
        assert!(bed.find(MADE).is_none(), "what was deleted stays deleted");
    }
    assert_eq!(bed.pending_requests(), 0);
}
