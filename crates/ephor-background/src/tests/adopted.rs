//! Objects that were there before a rule wrote to them: a rule keeps them in step, and never deletes them.

use ephor_expr::Value;
use ephor_runtime::content::{ADOPTED_LABEL, OWNERSHIP_ANNOTATION, set_entry};

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

/// The author gives what the rule makes another name.
fn moved() -> End {
    ("target", |harness| harness.apply(&POLICY.replace("name: '{{", "name: 'other-{{")))
}

/// The object is there without any mark of the rule.
fn check_left(harness: &Harness, taken: &Value, end: &str) {
    let left = harness.find(SECRET).unwrap_or_else(|| panic!("{end}: deleted"));
    assert_eq!(left.at(&["metadata", "uid"]), taken.at(&["metadata", "uid"]));
    let labels = left.at(&["metadata", "labels"]).map(Value::to_json).unwrap_or_default();
    assert!(!labels.contains("kyverno") && !labels.contains("ephor"), "{end}: {labels}");
    assert!(left.at(&["metadata", "annotations", OWNERSHIP_ANNOTATION]).is_none(), "{end}");
}

/// When the marks are taken away.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Running,
    RightBeforeTheEnd,
    Stopped,
}

#[test]
fn no_mark_that_its_owner_takes_away_makes_it_an_object_of_the_rule() {
    const ANNOTATION: (&str, &str) = ("annotations", OWNERSHIP_ANNOTATION);
    const LABEL: (&str, &str) = ("labels", ADOPTED_LABEL);
    for (marks, when) in [
        ([ANNOTATION].as_slice(), When::Running),
        (&[ANNOTATION], When::RightBeforeTheEnd),
        (&[ANNOTATION], When::Stopped),
        (&[LABEL], When::Running),
        (&[LABEL], When::Stopped),
        (&[ANNOTATION, LABEL], When::Running),
        (&[ANNOTATION, LABEL], When::RightBeforeTheEnd),
    ] {
        for (end, act) in ends() {
            let mut harness = Harness::new();
            for object in [SECRET, POLICY, TRIGGER] {
                harness.apply(object);
            }
            harness.settle();
            if when == When::Stopped {
                harness.stop();
            }
            let mut taken = harness.find(SECRET).unwrap();
            for (field, key) in marks {
                assert!(taken.at(&["metadata", field, key]).is_some());
                set_entry(&mut taken, field, key, None);
            }
            harness.apply_object(&taken);
            match when {
                When::Running => {
                    harness.settle();
                    harness.restart();
                    harness.settle();
                }
                When::RightBeforeTheEnd => {}
                When::Stopped => {
                    harness.restart();
                    harness.settle();
                }
            }
            act(&mut harness);
            harness.settle();
            check_left(&harness, &taken, &format!("{end}, {marks:?} gone, {when:?}"));
        }
    }
}

#[test]
fn an_object_that_was_there_before_is_kept_in_step_and_never_deleted() {
    for server_side_apply in [false, true] {
        for restart in [false, true] {
            for (end, act) in ends().into_iter().chain([moved()]) {
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
                check_left(&harness, &taken, end);
            }
        }
    }
}

#[test]
fn an_object_that_the_rule_created_is_deleted_whatever_its_owner_notes_on_it() {
    let edits: [fn(&str) -> Option<String>; 2] =
        [|_| None, |annotation| Some(annotation.replacen('{', r#"{"adopted":true,"#, 1))];
    let edits = edits.into_iter().flat_map(|edit| [(edit, None), (edit, Some("true"))]);
    let edits: Vec<_> = edits.flat_map(|(edit, label)| [(edit, label, false), (edit, label, true)]).collect();
    for (end, act) in ends() {
        for (edit, label, is_corrected) in edits.iter().copied() {
            let mut harness = Harness::new();
            harness.apply(POLICY);
            harness.apply(TRIGGER);
            harness.settle();
            let mut made = harness.find(SECRET).unwrap();
            let annotation = made.str_at(&["metadata", "annotations", OWNERSHIP_ANNOTATION]).unwrap().to_owned();
            set_entry(&mut made, "annotations", OWNERSHIP_ANNOTATION, edit(&annotation).as_deref());
            set_entry(&mut made, "labels", ADOPTED_LABEL, label);
            harness.apply_object(&made);
            if is_corrected {
                harness.settle();
                harness.stop();
                harness.start();
            }
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
