//! Namespaces whose labels change, and rules that select by them.

use super::harness::Harness;
use super::late::hear_requests_alone;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], namespaceSelector: {matchLabels: {on: 'yes'}}}}]}
    generate:
      synchronize: false
      apiVersion: v1
      kind: Secret
      name: made
      namespace: '{{ request.object.metadata.namespace }}'
      data: {stringData: {k: v}}
";
const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: x}}";
const MADE: &str = "{apiVersion: v1, kind: Secret, metadata: {name: made, namespace: x}}";

fn label(harness: &mut Harness, labels: &str) {
    harness.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: x, labels: {{{labels}}}}}}}"));
    harness.settle();
}

#[test]
fn a_label_that_no_rule_asks_for_is_no_event() {
    let mut harness = Harness::new();
    label(&mut harness, "on: 'yes'");
    harness.apply(POLICY);
    harness.settle();
    harness.apply(TRIGGER);
    harness.settle();
    harness.delete(MADE);
    harness.settle();
    label(&mut harness, "on: 'yes', more: x");
    assert_eq!(harness.find(MADE), None, "what was deleted stays deleted");
}

#[test]
fn triggers_older_than_the_rule_do_not_count_for_a_label_that_no_rule_asks_for() {
    for synchronize in ["synchronize: true", "synchronize: false"] {
        let mut harness = Harness::new();
        label(&mut harness, "on: 'yes'");
        harness.apply(TRIGGER);
        harness.apply(&POLICY.replace("synchronize: false", synchronize));
        harness.settle();
        label(&mut harness, "on: 'yes', more: x");
        assert_eq!(harness.find(MADE), None);
        label(&mut harness, "on: 'no'");
        assert_eq!(harness.find(MADE), None);
        label(&mut harness, "on: 'yes'");
        assert!(harness.find(MADE).is_some(), "now it is selected");
    }
}

#[test]
fn what_is_selected_no_more_goes_under_synchronize_alone() {
    for synchronize in [true, false] {
        let mut harness = Harness::new();
        label(&mut harness, "on: 'yes'");
        harness.apply(&POLICY.replace("synchronize: false", &format!("synchronize: {synchronize}")));
        harness.settle();
        harness.apply(TRIGGER);
        harness.settle();
        assert!(harness.find(MADE).is_some());
        label(&mut harness, "on: 'no'");
        assert_eq!(harness.find(MADE).is_none(), synchronize);
    }
}

#[test]
fn a_label_that_comes_and_goes_at_once_is_no_event() {
    let mut harness = Harness::new();
    label(&mut harness, "on: 'yes'");
    harness.apply(TRIGGER);
    harness.apply(POLICY);
    harness.settle();
    for value in ["'no'", "'yes'"] {
        harness.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: x, labels: {{on: {value}}}}}}}"));
    }
    harness.settle();
    assert_eq!(harness.find(MADE), None);
}

#[test]
fn a_request_is_judged_by_the_labels_of_a_new_namespace_before_the_watch_tells_of_it() {
    let mut harness = Harness::new();
    label(&mut harness, "on: 'no'");
    harness.apply(POLICY);
    harness.settle();
    harness.delete("{apiVersion: v1, kind: Namespace, metadata: {name: x}}");
    harness.cluster.reconcile();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {on: 'yes'}}}");
    harness.apply(TRIGGER);
    hear_requests_alone(&mut harness, 30);
    harness.settle();
    assert!(harness.find(MADE).is_some());
}
