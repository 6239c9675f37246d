//! `UpdateRequest`s that are tried no more: how they show, and when they end.

use ephor_expr::Value;

use super::bed::{Bed, document};
use crate::state::MAX_GIVEN_UP;

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

/// A bed in which the work for `default/cat` is given up.
fn bed() -> Bed {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.settle();
    bed.apply(&trigger("default", "cat", ""));
    bed.settle();
    bed
}

#[test]
fn a_request_that_is_given_up_stays_as_failed_without_the_objects_it_carried() {
    let mut bed = bed();
    for restart in [false, true] {
        if restart {
            bed.restart();
            bed.settle();
        }
        let requests = bed.given_up();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].str_at(&["status", "state"]), Some("Failed"));
        assert_eq!(requests[0].str_at(&["spec", "resource", "name"]), Some("cat"), "kubectl shows what it is about");
        let info = requests[0].at(&["spec", "context", "admissionRequestInfo"]).unwrap();
        assert_eq!(info.to_json(), r#"{"operation":"CREATE"}"#);
    }
}

#[test]
fn it_ends_when_the_work_is_done_after_all() {
    let mut bed = bed();
    bed.apply(NOWHERE);
    bed.apply(&trigger("default", "cat", ", more: x"));
    bed.settle();
    assert!(bed.find("{apiVersion: v1, kind: Secret, metadata: {name: made-cat, namespace: nowhere}}").is_some());
    assert_eq!((bed.given_up().len(), bed.pending_requests()), (0, 0));
    assert!(bed.controller.state().failures.is_empty());
}

#[test]
fn it_ends_with_its_trigger_and_with_its_policy_also_when_no_controller_runs() {
    for gone in [CAT, "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}"] {
        for stopped in [false, true] {
            let mut bed = bed();
            if stopped {
                bed.stop();
                bed.door.close(true);
            }
            bed.delete(gone);
            if stopped {
                bed.restart();
            }
            bed.settle();
            assert_eq!((bed.given_up().len(), bed.pending_requests()), (0, 0), "{gone} {stopped}");
        }
    }
}

#[test]
fn it_ends_after_a_day() {
    let mut bed = bed();
    bed.tick(23 * 3_600_000);
    bed.settle();
    assert_eq!(bed.given_up().len(), 1);
    bed.tick(3_600_000);
    bed.settle();
    assert_eq!(bed.given_up().len(), 0);
}

#[test]
fn work_that_fails_for_another_event_is_shown_once() {
    let mut bed = bed();
    let first = bed.given_up();
    bed.apply(&trigger("default", "cat", ", more: x"));
    bed.settle();
    let second = bed.given_up();
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first[0].at(&["metadata", "uid"]), second[0].at(&["metadata", "uid"]));
}

/// Where the triggers of requests are that were given up.
fn count(bed: &Bed, namespace: &str) -> usize {
    let namespace_of = |request: &Value| request.str_at(&["spec", "resource", "namespace"]) == Some(namespace);
    bed.given_up().iter().filter(|request| namespace_of(request)).count()
}

#[test]
fn many_failures_in_one_namespace_do_not_push_out_those_of_another() {
    let mut bed = bed();
    bed.apply("{apiVersion: v1, kind: Namespace, metadata: {name: loud}}");
    for i in 0..MAX_GIVEN_UP + 10 {
        bed.cluster_create(&document(&trigger("loud", &format!("m{i}"), "")));
    }
    bed.settle();
    assert_eq!((count(&bed, "default"), count(&bed, "loud")), (1, MAX_GIVEN_UP - 1));
}
