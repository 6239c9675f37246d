//! Objects that are written often: for a reason, and because somebody takes it back.

use super::harness::{Harness, document};
use crate::writer::Note;

const COPY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: copy
    match: {any: [{resources: {kinds: [ConfigMap], names: [trigger]}}]}
    generate:
      generateExisting: true
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: copy
      namespace: default
      clone: {namespace: default, name: source}
";

fn harness() -> Harness {
    let mut harness = Harness::new();
    harness.admission.close(true);
    harness.apply(&secret("source", 0));
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: trigger}}");
    harness.apply(COPY);
    harness.settle();
    harness
}

fn secret(name: &str, number: usize) -> String {
    format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}, data: {{k: '{number:04}'}}}}")
}

fn copied(harness: &Harness) -> String {
    let copy = harness.find("{apiVersion: v1, kind: Secret, metadata: {name: copy}}").unwrap();
    copy.str_at(&["data", "k"]).unwrap().to_owned()
}

#[test]
fn a_source_that_changes_often_is_followed_each_time() {
    let mut harness = harness();
    let begun = harness.now;
    for number in 1..=12 {
        harness.apply(&secret("source", number));
        harness.settle();
        assert_eq!(copied(&harness), format!("{number:04}"));
    }
    assert!(harness.now - begun < 30_000, "nothing was put off: {} ms", harness.now - begun);
}

#[test]
fn who_takes_a_change_back_again_and_again_is_left_alone_for_a_while() {
    let mut harness = harness();
    harness.notes.lock().unwrap().clear();
    let begun = harness.now;
    for _ in 0..12 {
        let mut copy = harness.find("{apiVersion: v1, kind: Secret, metadata: {name: copy}}").unwrap();
        copy.as_object_mut().unwrap().insert("data", document("{k: AAAA}"));
        harness.apply_object(&copy);
        for _ in 0..10 {
            harness.pump();
            harness.controller.step(harness.now);
        }
    }
    assert!(harness.now - begun < 30_000, "{} ms", harness.now - begun);
    let changes = harness.notes.lock().unwrap().iter().filter(|note| matches!(note, Note::Changed { .. })).count();
    assert_eq!(changes, 5);
    assert_eq!(copied(&harness), "AAAA");
    // When the other has given up, the object is put right.
    harness.settle();
    assert_eq!(copied(&harness), "0000");
}

const APPEND: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: append
    match: {any: [{resources: {kinds: [Secret]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: ConfigMap, name: all, namespace: default}]
      patchStrategicMerge: {data: {'{{ request.object.metadata.name }}': here}}
";

#[test]
fn many_triggers_of_one_target_all_leave_their_mark() {
    let mut harness = Harness::new();
    harness.admission.close(true);
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: all}}");
    harness.apply(APPEND);
    harness.settle();
    for number in 0..20 {
        let name = format!("s{number}");
        let trigger = harness.cluster_create(&document(&secret(&name, 0)));
        let uid = trigger.str_at(&["metadata", "uid"]).unwrap();
        harness.cluster_create(&document(&format!(
            "{{apiVersion: kyverno.io/v2, kind: UpdateRequest, metadata: {{name: ur-{name}, namespace: kyverno}},
              spec: {{requestType: mutate, policy: p, rule: append, resource: {{apiVersion: v1, kind: Secret,
                namespace: default, name: {name}, uid: {uid}}}, context: {{admissionRequestInfo: {{operation: CREATE,
                admissionRequest: {{operation: CREATE, uid: u{number}, namespace: default, name: {name},
                  object: {trigger}}}}}}}}}}}",
            trigger = trigger.to_json()
        )));
    }
    harness.settle();
    let all = harness.find("{apiVersion: v1, kind: ConfigMap, metadata: {name: all}}").unwrap();
    assert_eq!(all.get("data").unwrap().as_object().unwrap().len(), 20);
    assert_eq!(harness.pending_requests(), 0);
}
