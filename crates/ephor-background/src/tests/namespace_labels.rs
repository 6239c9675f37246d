//! Namespaces whose labels change, and rules that select by them.

use super::bed::Bed;

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

fn label(bed: &mut Bed, labels: &str) {
    bed.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: x, labels: {{{labels}}}}}}}"));
    bed.settle();
}

#[test]
fn a_label_that_no_rule_asks_for_is_no_event() {
    let mut bed = Bed::new();
    label(&mut bed, "on: 'yes'");
    bed.apply(POLICY);
    bed.settle();
    bed.apply(TRIGGER);
    bed.settle();
    bed.delete(MADE);
    bed.settle();
    label(&mut bed, "on: 'yes', more: x");
    assert_eq!(bed.find(MADE), None, "what was deleted stays deleted");
}

#[test]
fn triggers_older_than_the_rule_do_not_count_for_a_label_that_no_rule_asks_for() {
    for synchronize in ["synchronize: true", "synchronize: false"] {
        let mut bed = Bed::new();
        label(&mut bed, "on: 'yes'");
        bed.apply(TRIGGER);
        bed.apply(&POLICY.replace("synchronize: false", synchronize));
        bed.settle();
        label(&mut bed, "on: 'yes', more: x");
        assert_eq!(bed.find(MADE), None);
        label(&mut bed, "on: 'no'");
        assert_eq!(bed.find(MADE), None);
        label(&mut bed, "on: 'yes'");
        assert!(bed.find(MADE).is_some(), "now it is selected");
    }
}

#[test]
fn what_is_selected_no_more_goes_under_synchronize_alone() {
    for synchronize in [true, false] {
        let mut bed = Bed::new();
        label(&mut bed, "on: 'yes'");
        bed.apply(&POLICY.replace("synchronize: false", &format!("synchronize: {synchronize}")));
        bed.settle();
        bed.apply(TRIGGER);
        bed.settle();
        assert!(bed.find(MADE).is_some());
        label(&mut bed, "on: 'no'");
        assert_eq!(bed.find(MADE).is_none(), synchronize);
    }
}

#[test]
fn a_label_that_comes_and_goes_at_once_is_no_event() {
    let mut bed = Bed::new();
    label(&mut bed, "on: 'yes'");
    bed.apply(TRIGGER);
    bed.apply(POLICY);
    bed.settle();
    for value in ["'no'", "'yes'"] {
        bed.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: x, labels: {{on: {value}}}}}}}"));
    }
    bed.settle();
    assert_eq!(bed.find(MADE), None);
}
