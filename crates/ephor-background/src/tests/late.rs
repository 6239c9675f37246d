//! Watches that are late, and tell things twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ephor_cluster::MemoryCluster;
use ephor_cluster::memory::Options;
use ephor_faults::FaultyCluster;
use ephor_runtime::watcher::StoreEvent;

use super::harness::{Harness, as_controller};
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
pub(super) fn hear_requests_alone(harness: &mut Harness, seconds: u64) {
    harness.controller.observe_requests(StoreEvent::Reset(harness.list("kyverno.io/v2", "UpdateRequest")), harness.now);
    for _ in 0..seconds {
        while harness.controller.step(harness.now) == Step::Worked {}
        harness.tick(1_000);
    }
}

#[test]
fn a_request_waits_for_the_policy_that_admission_knew() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply(&POLICY.replace("name: made", "name: other"));
    harness.apply(TRIGGER);
    hear_requests_alone(&mut harness, 30);
    assert_eq!(harness.pending_requests(), 1);
    harness.settle();
    assert!(harness.find(MADE).is_none(), "the policy does not say so any more");
    assert!(harness.find(&MADE.replace("made", "other")).is_some());
}

#[test]
fn a_request_of_a_policy_that_is_gone_makes_nothing() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply(&POLICY.replace("name: made", "name: other"));
    harness.apply(TRIGGER);
    harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    hear_requests_alone(&mut harness, 30);
    harness.settle();
    assert_eq!(harness.pending_requests(), 0);
    assert!(harness.list("v1", "Secret").is_empty());
}

#[test]
fn a_request_waits_for_the_end_of_an_exception_that_admission_knew_no_more() {
    let exception = "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e}, spec: {
      exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [ConfigMap]}}]}}}";
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(exception);
    harness.settle();
    harness.delete(exception);
    harness.apply(TRIGGER);
    hear_requests_alone(&mut harness, 2);
    assert!(harness.find(MADE).is_none());
    harness.settle();
    assert!(harness.find(MADE).is_some());
}

#[test]
fn what_was_done_is_not_done_again_because_it_is_told_again() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply(TRIGGER);
    let request = harness.list("kyverno.io/v2", "UpdateRequest").pop().unwrap();
    while harness.find(MADE).is_none() {
        harness.pump();
        harness.controller.step(harness.now);
    }
    harness.delete(MADE);
    // Once done, and once gone.
    for _ in 0..2 {
        harness.controller.observe_requests(StoreEvent::Apply(request.clone()), harness.now);
        harness.settle();
        assert!(harness.find(MADE).is_none(), "what was deleted stays deleted");
    }
    assert_eq!(harness.pending_requests(), 0);
}

/// Has the controller watch `ConfigMap`s, and makes the trigger before the policy of these tests.
fn watched() -> Harness {
    let mut harness = Harness::new();
    harness.apply(&POLICY.replace("{name: p}", "{name: w}").replace("name: made", "name: w").replace("false", "true"));
    harness.apply(TRIGGER);
    harness.apply(&POLICY.replace("k: v", "k: '{{ request.object.data.v }}'"));
    harness.settle();
    harness
}

#[test]
fn an_update_that_changes_nothing_is_judged_by_the_stored_trigger_before_the_watch_tells_of_it() {
    let mut harness = watched();
    let changed = TRIGGER.replace("v: x", "v: z");
    harness.admission.close(true);
    harness.apply(&changed);
    harness.admission.close(false);
    harness.apply(&changed);
    hear_requests_alone(&mut harness, 30);
    harness.settle();
    assert_eq!(harness.find(MADE).unwrap().str_at(&["data", "k"]), Some("z"));
}

#[test]
fn an_update_makes_nothing_for_a_deleted_trigger_before_the_watch_tells_of_the_deletion() {
    let mut harness = watched();
    harness.apply(&TRIGGER.replace("v: x", "v: z"));
    harness.pump();
    harness.admission.close(true);
    harness.delete(TRIGGER);
    hear_requests_alone(&mut harness, 30);
    harness.settle();
    assert_eq!(harness.find(MADE), None);
    assert_eq!(harness.pending_requests(), 0);
}

/// How many calls it takes to carry out the creation of a trigger that the watch told of.
fn calls_for_a_creation(policy: &str) -> usize {
    let cluster = MemoryCluster::new(Options::default());
    let calls = Arc::new(AtomicUsize::new(0));
    let view = FaultyCluster::new(Arc::new(as_controller(&cluster))).before_calls({
        let calls = Arc::clone(&calls);
        move || {
            calls.fetch_add(1, Ordering::Relaxed);
            None
        }
    });
    let mut harness = Harness::over(cluster, Arc::new(view));
    // This one has the controller watch all ConfigMaps.
    harness.apply(
        &POLICY
            .replace("{name: p}", "{name: w}")
            .replace("ConfigMap]", "ConfigMap], names: [none]")
            .replace("false", "true"),
    );
    harness.apply(policy);
    harness.settle();
    harness.apply(TRIGGER);
    harness.pump();
    let before = calls.load(Ordering::Relaxed);
    while harness.controller.step(harness.now) == Step::Worked {}
    assert!(harness.find(MADE).is_some());
    calls.load(Ordering::Relaxed) - before
}

#[test]
fn rules_that_synchronize_take_a_creation_from_the_watch_and_others_from_the_api_server() {
    let once = calls_for_a_creation(POLICY);
    assert_eq!(calls_for_a_creation(&POLICY.replace("synchronize: false", "synchronize: true")), once - 1);
}

const MARKING: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], names: [t]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: ConfigMap, name: board, namespace: default}]
      patchStrategicMerge: {data: {mark: '{{ request.object.data.v }}'}}
";
const BOARD: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: board}, data: {is: there}}";

#[test]
fn a_retried_request_patches_nothing_for_a_policy_that_is_gone_before_the_watch_tells_of_it() {
    let mut harness = Harness::new();
    harness.apply(BOARD);
    harness.apply(MARKING);
    harness.settle();
    harness.apply(&TRIGGER.replace("v: x", "w: x"));
    hear_requests_alone(&mut harness, 1);
    let requests = harness.list("kyverno.io/v2", "UpdateRequest");
    assert_eq!(requests.last().and_then(|request| request.str_at(&["status", "state"])), Some("Failed"));
    harness.admission.close(true);
    harness.apply(TRIGGER);
    harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    hear_requests_alone(&mut harness, 30);
    harness.settle();
    assert_eq!(harness.find(BOARD).unwrap().str_at(&["data", "mark"]), None);
    assert_eq!(harness.pending_requests(), 0);
}
