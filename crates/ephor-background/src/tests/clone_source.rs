//! An edit of a rule's `clone` leaves its copies as they are until their new source or their trigger changes.

use ephor_expr::Value;
use ephor_runtime::content::{OWNERSHIP_ANNOTATION, set_entry};

use super::bed::{Bed, document};

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

fn copy(bed: &Bed, of: &str) -> Option<Value> {
    bed.find(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: copy-{of}}}}}"))
}

fn says(bed: &Bed, of: &str) -> String {
    copy(bed, of).and_then(|copy| copy.str_at(&["stringData", "k"]).map(str::to_owned)).unwrap_or_default()
}

/// Sources `old` and `new`, a copy of `old`, and a rule that names `source` since then.
fn edited(source: &str) -> Bed {
    let mut bed = Bed::new();
    for object in [&secret("old", "old"), &secret("new", "new"), &policy("old"), &trigger("t", "x")] {
        bed.apply(object);
    }
    bed.settle();
    let before = copy(&bed, "t").unwrap();
    assert_eq!(says(&bed, "t"), "old");
    bed.apply(&policy(source));
    bed.settle();
    assert_eq!(copy(&bed, "t"), Some(before), "the edit leaves it as it is");
    bed
}

fn delete(bed: &mut Bed, name: &str) {
    bed.delete(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}"));
}

#[test]
fn a_copy_follows_the_new_source_from_the_next_change_on() {
    type Act = fn(&mut Bed);
    let rows: [(&str, Act, &str); 8] = [
        ("the new source changes", |bed| bed.apply(&secret("new", "newer")), "newer"),
        ("its trigger changes", |bed| bed.apply(&trigger("t", "y")), "new"),
        ("somebody edits the copy", |bed| bed.apply(&secret("copy-t", "edited")), "new"),
        ("somebody deletes the copy", |bed| delete(bed, "copy-t"), "new"),
        ("the old source changes", |bed| bed.apply(&secret("old", "older")), "old"),
        ("the old source goes", |bed| delete(bed, "old"), "old"),
        ("another trigger comes, and the new source is marked", |bed| bed.apply(&trigger("t2", "x")), "old"),
        ("everything is looked at again", |bed| bed.controller.resync(bed.now), "old"),
    ];
    for (what, act, after) in rows {
        let mut bed = edited("new");
        act(&mut bed);
        bed.settle();
        assert_eq!(says(&bed, "t"), after, "{what}");
        bed.apply(&secret("new", "newest"));
        bed.settle();
        assert_eq!(says(&bed, "t"), "newest", "{what}");
        delete(&mut bed, "new");
        bed.settle();
        assert_eq!(copy(&bed, "t"), None, "{what}: it goes with the source that it follows");
    }
}

#[test]
fn a_trigger_that_comes_after_the_edit_has_a_copy_of_the_new_source() {
    let mut bed = edited("new");
    bed.apply(&trigger("t2", "x"));
    bed.settle();
    assert_eq!((says(&bed, "t").as_str(), says(&bed, "t2").as_str()), ("old", "new"));
}

#[test]
fn a_copy_stays_while_the_new_source_is_missing_and_follows_it_once_it_comes() {
    for (old_goes, restarts) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut bed = edited("late");
        if old_goes {
            delete(&mut bed, "old");
        }
        if restarts {
            bed.restart();
        }
        bed.settle();
        assert_eq!(says(&bed, "t"), "old");
        bed.apply(&secret("late", "late"));
        bed.settle();
        assert_eq!(says(&bed, "t"), "late", "old one gone: {old_goes}, restarted: {restarts}");
    }
}

#[test]
fn a_rule_that_names_its_former_source_again_follows_it_at_once() {
    let mut bed = edited("new");
    bed.apply(&policy("old"));
    bed.settle();
    bed.apply(&secret("new", "newer"));
    bed.settle();
    assert_eq!(says(&bed, "t"), "old");
    bed.apply(&secret("old", "older"));
    bed.settle();
    assert_eq!(says(&bed, "t"), "older");
}

#[test]
fn a_copy_that_waits_goes_with_its_trigger() {
    let mut bed = edited("new");
    bed.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    bed.settle();
    assert_eq!(copy(&bed, "t"), None);
}

#[test]
fn nothing_that_its_owner_notes_on_a_copy_keeps_other_content_in_it() {
    let forged = |bed: &Bed| {
        let mut copy = copy(bed, "t").unwrap();
        let annotation = document(copy.str_at(&["metadata", "annotations", OWNERSHIP_ANNOTATION]).unwrap());
        let references = annotation.str_at(&["references"]).unwrap().to_owned();
        let annotation = annotation.to_json().replace(&references, "0000000000000000");
        set_entry(&mut copy, "annotations", OWNERSHIP_ANNOTATION, Some(&annotation));
        set_entry(&mut copy, "labels", "generate.kyverno.io/source-uid", Some("another"));
        copy.as_object_mut().unwrap().insert("stringData", Value::from([("k", Value::from("forged"))]));
        copy
    };
    // Before the edit, at the same time as the edit, and across a restart.
    let mut bed = edited("old");
    bed.apply_object(&forged(&bed));
    bed.settle();
    assert_eq!(says(&bed, "t"), "old");
    bed.apply_object(&forged(&bed));
    bed.apply(&policy("new"));
    bed.settle();
    assert_eq!(says(&bed, "t"), "new");
    let mut bed = edited("new");
    bed.stop();
    bed.apply_object(&forged(&bed));
    bed.restart();
    bed.settle();
    assert_eq!(says(&bed, "t"), "new");
}

#[test]
fn a_request_from_before_the_edit_is_no_change() {
    let mut bed = Bed::new();
    for object in [&secret("old", "old"), &secret("new", "new"), &policy("old")] {
        bed.apply(object);
    }
    bed.settle();
    bed.apply(&trigger("t", "x"));
    bed.pump();
    while copy(&bed, "t").is_none() {
        bed.controller.step(bed.now);
    }
    assert!(bed.pending_requests() > 0);
    bed.apply(&policy("new"));
    bed.settle();
    assert_eq!(says(&bed, "t"), "old");
}
