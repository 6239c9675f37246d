//! `UpdateRequest`s that are tried no more: how they show, and when they end.

use ephor_expr::Value;

use super::harness::{Harness, document};
use crate::state::MAX_GIVEN_UP;
use crate::writer::Note;

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
      name: 'made-{{ request.object.metadata.name }}'
      namespace: '{{ request.object.data.to }}'
      data: {data: {k: dg==}}
";

fn trigger(namespace: &str, name: &str, more: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}}},
          data: {{to: nowhere{more}}}}}"
    )
}

const CAT: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: cat, namespace: default}}";
const NOWHERE: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: nowhere}}";

/// A harness in which the work for `default/cat` is given up.
fn harness() -> Harness {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply(&trigger("default", "cat", ""));
    harness.settle();
    harness
}

#[test]
fn a_request_that_is_given_up_stays_as_failed_without_the_objects_it_carried() {
    let mut harness = harness();
    for restart in [false, true] {
        if restart {
            harness.restart();
            harness.settle();
        }
        let requests = harness.given_up();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].str_at(&["status", "state"]), Some("Failed"));
        assert_eq!(requests[0].str_at(&["spec", "resource", "name"]), Some("cat"), "kubectl shows what it is about");
        let info = requests[0].at(&["spec", "context", "admissionRequestInfo"]).unwrap();
        assert_eq!(info.to_json(), r#"{"operation":"CREATE"}"#);
    }
}

#[test]
fn a_request_whose_target_does_not_exist_goes_when_it_is_given_up() {
    let mut harness = Harness::new();
    harness.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: \
         [{resources: {kinds: [ConfigMap]}}]}, mutate: {targets: [{apiVersion: v1, kind: Secret, name: absent, namespace: \
         default}], patchStrategicMerge: {metadata: {labels: {a: b}}}}}]}}",
    );
    harness.settle();
    harness.apply(&trigger("default", "cat", ""));
    harness.settle();
    assert_eq!((harness.given_up().len(), harness.pending_requests()), (0, 0));
    let failed =
        |note: &Note| matches!(note, Note::Failed { message, .. } if message.contains("default/absent: not found"));
    assert!(harness.notes.lock().unwrap().iter().any(failed), "it is told all the same");
}

#[test]
fn it_ends_when_the_work_is_done_after_all() {
    let mut harness = harness();
    harness.apply(NOWHERE);
    harness.apply(&trigger("default", "cat", ", more: x"));
    harness.settle();
    assert!(harness.find("{apiVersion: v1, kind: Secret, metadata: {name: made-cat, namespace: nowhere}}").is_some());
    assert_eq!((harness.given_up().len(), harness.pending_requests()), (0, 0));
    assert!(harness.controller.state().failures.is_empty());
}

#[test]
fn an_event_that_asks_again_is_taken_up() {
    for restart in [false, true] {
        let mut harness = harness();
        let before = harness.given_up();
        if restart {
            harness.restart();
            harness.settle();
        }
        // Again it fails, and is tried anew: the request that was given up is replaced by one that counts from zero.
        harness.apply(&trigger("default", "cat", ", more: x"));
        let mut states = std::collections::BTreeSet::new();
        for _ in 0..20 {
            while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
            for request in harness.list("kyverno.io/v2", "UpdateRequest") {
                states.insert(request.at(&["status", "retryCount"]).and_then(Value::as_i64).unwrap_or_default());
            }
            harness.tick(1_000);
        }
        assert!(states.contains(&0) && states.contains(&1), "{states:?}");
        harness.settle();
        let after = harness.given_up();
        assert_eq!((before.len(), after.len()), (1, 1));
        // The third event finds that it can be done.
        harness.apply(NOWHERE);
        harness.apply(&trigger("default", "cat", ", more: y"));
        harness.settle();
        assert!(
            harness.find("{apiVersion: v1, kind: Secret, metadata: {name: made-cat, namespace: nowhere}}").is_some()
        );
        assert_eq!((harness.given_up().len(), harness.pending_requests()), (0, 0));
    }
}

#[test]
fn it_ends_with_its_trigger_and_with_its_policy_also_when_no_controller_runs() {
    for gone in [CAT, "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}"] {
        for stopped in [false, true] {
            let mut harness = harness();
            if stopped {
                harness.stop();
                harness.admission.close(true);
            }
            harness.delete(gone);
            if stopped {
                harness.restart();
            }
            harness.settle();
            assert_eq!((harness.given_up().len(), harness.pending_requests()), (0, 0), "{gone} {stopped}");
        }
    }
}

#[test]
fn it_ends_after_a_day() {
    let mut harness = harness();
    harness.tick(23 * 3_600_000);
    harness.settle();
    assert_eq!(harness.given_up().len(), 1);
    harness.tick(3_600_000);
    harness.settle();
    assert_eq!(harness.given_up().len(), 0);
}

#[test]
fn work_that_fails_for_another_event_is_shown_once() {
    let mut harness = harness();
    let first = harness.given_up();
    harness.apply(&trigger("default", "cat", ", more: x"));
    harness.settle();
    let second = harness.given_up();
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first[0].at(&["metadata", "uid"]), second[0].at(&["metadata", "uid"]));
}

/// Where the triggers of requests are that were given up.
fn count(harness: &Harness, namespace: &str) -> usize {
    let namespace_of = |request: &Value| request.str_at(&["spec", "resource", "namespace"]) == Some(namespace);
    harness.given_up().iter().filter(|request| namespace_of(request)).count()
}

#[test]
fn many_failures_in_one_namespace_do_not_push_out_those_of_another() {
    let mut harness = harness();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: loud}}");
    for i in 0..MAX_GIVEN_UP + 10 {
        harness.cluster_create(&document(&trigger("loud", &format!("m{i}"), "")));
    }
    harness.settle();
    assert_eq!((count(&harness, "default"), count(&harness, "loud")), (1, MAX_GIVEN_UP - 1));
}
