//! Objects that were there before a rule wrote to them: a rule keeps them in step, and never deletes them.

use ephor_expr::Value;
use ephor_runtime::content::{OWNERSHIP_ANNOTATION, set_entry};

use super::harness::{Harness, document};

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {on: 'yes'}}}}]}
    generate:
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: '{{ request.object.data.to }}'
      namespace: default
      data: {data: {k: '{{ request.object.data.v }}'}}
";
const TRIGGER: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, labels: {on: 'yes'}}, data: {to: a, v: eA==}}";
const SECRET: &str = "{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {team: blue}}, data: {own: eA==}}";

type End = (&'static str, fn(&mut Harness));

/// Ways in which the rule stops wanting the object.
fn ends() -> Vec<End> {
    vec![
        ("policy", |harness| harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}")),
        ("rule", |h| h.apply(&POLICY.replace("name: r\n", "name: other\n").replace("[ConfigMap]", "[Pod]"))),
        ("trigger", |harness| harness.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}")),
        ("match", |harness| harness.apply(&TRIGGER.replace("'yes'", "'no'"))),
        ("name", |harness| harness.apply(&TRIGGER.replace("to: a", "to: b"))),
    ]
}

#[test]
fn an_object_that_was_there_before_is_kept_in_step_and_never_deleted() {
    for server_side_apply in [false, true] {
        for restart in [false, true] {
            for (end, act) in ends() {
                let policy = POLICY.replace("spec:\n", &format!("spec:\n  useServerSideApply: {server_side_apply}\n"));
                let mut harness = Harness::new();
                harness.apply(SECRET);
                harness.apply(&policy);
                harness.apply(TRIGGER);
                harness.settle();
                let taken = harness.find(SECRET).unwrap();
                assert_eq!(taken.str_at(&["data", "k"]), Some("eA=="), "{end}: in step");
                if restart {
                    harness.restart();
                    harness.settle();
                }
                act(&mut harness);
                harness.settle();
                let left = harness.find(SECRET).unwrap_or_else(|| panic!("{end}: deleted"));
                assert_eq!(left.at(&["metadata", "uid"]), taken.at(&["metadata", "uid"]));
                let labels = left.at(&["metadata", "labels"]).map(Value::to_json).unwrap_or_default();
                assert!(!labels.contains("kyverno"), "{end}: {labels}");
                assert!(left.at(&["metadata", "annotations", OWNERSHIP_ANNOTATION]).is_none(), "{end}");
            }
        }
    }
}

#[test]
fn an_object_that_the_rule_created_is_deleted_whatever_its_owner_notes_on_it() {
    let edits: [fn(&str) -> Option<String>; 2] =
        [|_| None, |annotation| Some(annotation.replacen('{', r#"{"adopted":true,"#, 1))];
    for (end, act) in ends() {
        for edit in edits {
            let mut harness = Harness::new();
            harness.apply(POLICY);
            harness.apply(TRIGGER);
            harness.settle();
            let mut made = harness.find(SECRET).unwrap();
            let annotation = made.str_at(&["metadata", "annotations", OWNERSHIP_ANNOTATION]).unwrap().to_owned();
            set_entry(&mut made, "annotations", OWNERSHIP_ANNOTATION, edit(&annotation).as_deref());
            harness.apply_object(&made);
            // The edit is not corrected before the end of the rule.
            act(&mut harness);
            harness.settle();
            assert!(harness.find(SECRET).is_none(), "{end}: still there");
        }
    }
}

#[test]
fn an_object_without_any_label_of_its_rule_is_still_known_to_be_created() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(TRIGGER);
    harness.settle();
    harness.apply_object(&document("{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {own: eA==}}"));
    harness.settle();
    harness.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    harness.settle();
    assert!(harness.find(SECRET).is_none());
}

#[test]
fn what_upstream_created_for_the_very_rule_is_deleted() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(TRIGGER);
    harness.settle();
    // Without the annotation and without any memory, it is as upstream leaves it.
    harness.stop();
    let mut made = harness.find(SECRET).unwrap();
    set_entry(&mut made, "annotations", OWNERSHIP_ANNOTATION, None);
    harness.apply_object(&made);
    harness.restart();
    harness.settle();
    harness.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    harness.settle();
    assert!(harness.find(SECRET).is_none());
}
