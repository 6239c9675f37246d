//! An edit of a rule's `clone` leaves its copies as they are until their new source or their trigger changes.

use ephor_expr::Value;
use ephor_runtime::content::{OWNERSHIP_ANNOTATION, set_entry};

use super::harness::{Harness, document};

fn policy(source: &str) -> String {
    format!(
        "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {{name: p}}
spec:
  rules:
  - name: r
    match: {{any: [{{resources: {{kinds: [ConfigMap], names: ['t*']}}}}]}}
    generate:
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: 'copy-{{{{ request.object.metadata.name }}}}'
      namespace: default
      clone: {{namespace: default, name: {source}}}
"
    )
}

fn secret(name: &str, value: &str) -> String {
    format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}, stringData: {{k: {value}}}}}")
}

fn trigger(name: &str, data: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{k: {data}}}}}")
}

fn copy(harness: &Harness, of: &str) -> Option<Value> {
    harness.find(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: copy-{of}}}}}"))
}

fn says(harness: &Harness, of: &str) -> String {
    copy(harness, of).and_then(|copy| copy.str_at(&["stringData", "k"]).map(str::to_owned)).unwrap_or_default()
}

/// Sources `old` and `new`, a copy of `old`, and a rule that names `source` since then.
fn edited(source: &str) -> Harness {
    let mut harness = Harness::new();
    for object in [&secret("old", "old"), &secret("new", "new"), &policy("old"), &trigger("t", "x")] {
        harness.apply(object);
    }
    harness.settle();
    let before = copy(&harness, "t").unwrap();
    assert_eq!(says(&harness, "t"), "old");
    harness.apply(&policy(source));
    harness.settle();
    assert_eq!(copy(&harness, "t"), Some(before), "the edit leaves it as it is");
    harness
}

fn delete(harness: &mut Harness, name: &str) {
    harness.delete(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}"));
}

#[test]
fn a_copy_follows_the_new_source_from_the_next_change_on() {
    type Act = fn(&mut Harness);
    let rows: [(&str, Act, &str); 8] = [
        ("the new source changes", |harness| harness.apply(&secret("new", "newer")), "newer"),
        ("its trigger changes", |harness| harness.apply(&trigger("t", "y")), "new"),
        ("somebody edits the copy", |harness| harness.apply(&secret("copy-t", "edited")), "new"),
        ("somebody deletes the copy", |harness| delete(harness, "copy-t"), "new"),
        ("the old source changes", |harness| harness.apply(&secret("old", "older")), "old"),
        ("the old source goes", |harness| delete(harness, "old"), "old"),
        ("another trigger comes, and the new source is marked", |harness| harness.apply(&trigger("t2", "x")), "old"),
        ("everything is looked at again", |harness| harness.controller.resync(harness.now), "old"),
    ];
    for (what, act, after) in rows {
        let mut harness = edited("new");
        act(&mut harness);
        harness.settle();
        assert_eq!(says(&harness, "t"), after, "{what}");
        harness.apply(&secret("new", "newest"));
        harness.settle();
        assert_eq!(says(&harness, "t"), "newest", "{what}");
        delete(&mut harness, "new");
        harness.settle();
        assert_eq!(copy(&harness, "t"), None, "{what}: it goes with the source that it follows");
    }
}

#[test]
fn a_trigger_that_comes_after_the_edit_has_a_copy_of_the_new_source() {
    let mut harness = edited("new");
    harness.apply(&trigger("t2", "x"));
    harness.settle();
    assert_eq!((says(&harness, "t").as_str(), says(&harness, "t2").as_str()), ("old", "new"));
}

#[test]
fn a_copy_stays_while_the_new_source_is_missing_and_follows_it_once_it_comes() {
    for (old_goes, restarts) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut harness = edited("late");
        if old_goes {
            delete(&mut harness, "old");
        }
        if restarts {
            harness.restart();
        }
        harness.settle();
        assert_eq!(says(&harness, "t"), "old");
        harness.apply(&secret("late", "late"));
        harness.settle();
        assert_eq!(says(&harness, "t"), "late", "old one gone: {old_goes}, restarted: {restarts}");
    }
}

#[test]
fn a_rule_that_names_its_former_source_again_follows_it_at_once() {
    let mut harness = edited("new");
    harness.apply(&policy("old"));
    harness.settle();
    harness.apply(&secret("new", "newer"));
    harness.settle();
    assert_eq!(says(&harness, "t"), "old");
    harness.apply(&secret("old", "older"));
    harness.settle();
    assert_eq!(says(&harness, "t"), "older");
}

#[test]
fn a_copy_that_waits_goes_with_its_trigger() {
    let mut harness = edited("new");
    harness.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    harness.settle();
    assert_eq!(copy(&harness, "t"), None);
}

#[test]
fn nothing_that_its_owner_notes_on_a_copy_keeps_other_content_in_it() {
    let forged = |harness: &Harness| {
        let mut copy = copy(harness, "t").unwrap();
        let annotation = document(copy.str_at(&["metadata", "annotations", OWNERSHIP_ANNOTATION]).unwrap());
        let references = annotation.str_at(&["references"]).unwrap().to_owned();
        let annotation = annotation.to_json().replace(&references, "0000000000000000");
        set_entry(&mut copy, "annotations", OWNERSHIP_ANNOTATION, Some(&annotation));
        set_entry(&mut copy, "labels", "generate.kyverno.io/source-uid", Some("another"));
        copy.as_object_mut().unwrap().insert("stringData", Value::from([("k", Value::from("forged"))]));
        copy
    };
    // Before the edit, at the same time as the edit, and across a restart.
    let mut harness = edited("old");
    harness.apply_object(&forged(&harness));
    harness.settle();
    assert_eq!(says(&harness, "t"), "old");
    harness.apply_object(&forged(&harness));
    harness.apply(&policy("new"));
    harness.settle();
    assert_eq!(says(&harness, "t"), "new");
    let mut harness = edited("new");
    harness.stop();
    harness.apply_object(&forged(&harness));
    harness.restart();
    harness.settle();
    assert_eq!(says(&harness, "t"), "new");
}

#[test]
fn a_request_from_before_the_edit_is_no_change() {
    let mut harness = Harness::new();
    for object in [&secret("old", "old"), &secret("new", "new"), &policy("old")] {
        harness.apply(object);
    }
    harness.settle();
    harness.apply(&trigger("t", "x"));
    harness.pump();
    while copy(&harness, "t").is_none() {
        harness.controller.step(harness.now);
    }
    assert!(harness.pending_requests() > 0);
    harness.apply(&policy("new"));
    harness.settle();
    assert_eq!(says(&harness, "t"), "old");
}

#[test]
fn copies_of_a_list_wait_as_well() {
    type Act = fn(&mut Harness);
    let policy = |namespace: &str| {
        format!(
            "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{rules: [
              {{name: r, match: {{any: [{{resources: {{kinds: [ConfigMap], names: ['t*']}}}}]}},
                generate: {{synchronize: true, namespace: default, cloneList: {{namespace: {namespace},
                  kinds: [v1/Secret], selector: {{matchLabels: {{copy: 'yes'}}}}}}}}}}]}}}}"
        )
    };
    let source = |namespace: &str, name: &str, value: &str| {
        format!(
            "{{apiVersion: v1, kind: Secret, stringData: {{k: {value}}},
              metadata: {{name: {name}, namespace: {namespace}, labels: {{copy: 'yes'}}}}}}"
        )
    };
    let says = |harness: &Harness, name: &str| {
        let copy = harness.find(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}"));
        copy.and_then(|copy| copy.str_at(&["stringData", "k"]).map(str::to_owned))
    };
    let rows: [(&str, Act, &str); 3] = [
        ("its trigger changes", |harness| harness.apply(&trigger("t", "y")), "new"),
        (
            "another trigger comes",
            |harness| harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: u}}"),
            "old",
        ),
        ("somebody edits the copy", |harness| harness.apply(&secret("both", "edited")), "new"),
    ];
    for (what, act, after) in rows {
        let mut harness = Harness::new();
        for namespace in ["old", "new"] {
            harness.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}"));
            harness.apply(&source(namespace, "both", namespace));
        }
        harness.apply(&source("old", "only-old", "old"));
        harness.apply(&policy("old"));
        harness.apply(&trigger("t", "x"));
        harness.settle();
        assert_eq!(says(&harness, "both").as_deref(), Some("old"), "{what}");
        harness.apply(&policy("new"));
        harness.settle();
        assert_eq!(says(&harness, "both").as_deref(), Some("old"), "{what}: the edit leaves it as it is");
        assert_eq!(says(&harness, "only-old").as_deref(), Some("old"), "{what}: it stays on its own");
        act(&mut harness);
        harness.settle();
        assert_eq!(says(&harness, "both").as_deref(), Some(after), "{what}");
        harness.apply(&source("new", "both", "newer"));
        harness.settle();
        assert_eq!(says(&harness, "both").as_deref(), Some("newer"), "{what}");
        assert_eq!(says(&harness, "only-old").as_deref(), Some("old"), "{what}");
    }
}
