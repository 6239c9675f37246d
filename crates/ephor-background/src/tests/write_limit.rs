//! Objects that are written often: for a reason, and because somebody takes it back.

use super::bed::{Bed, document};
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

fn bed() -> Bed {
    let mut bed = Bed::new();
    bed.door.close(true);
    bed.apply(&secret("source", 0));
    bed.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: trigger}}");
    bed.apply(COPY);
    bed.settle();
    bed
}

fn secret(name: &str, number: usize) -> String {
    format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}, data: {{k: '{number:04}'}}}}")
}

fn copied(bed: &Bed) -> String {
    let copy = bed.find("{apiVersion: v1, kind: Secret, metadata: {name: copy}}").unwrap();
    copy.str_at(&["data", "k"]).unwrap().to_owned()
}

#[test]
fn a_source_that_changes_often_is_followed_each_time() {
    let mut bed = bed();
    let begun = bed.now;
    for number in 1..=12 {
        bed.apply(&secret("source", number));
        bed.settle();
        assert_eq!(copied(&bed), format!("{number:04}"));
    }
    assert!(bed.now - begun < 30_000, "nothing was put off: {} ms", bed.now - begun);
}

#[test]
fn who_takes_a_change_back_again_and_again_is_left_alone_for_a_while() {
    let mut bed = bed();
    bed.notes.lock().unwrap().clear();
    let begun = bed.now;
    for _ in 0..12 {
        let mut copy = bed.find("{apiVersion: v1, kind: Secret, metadata: {name: copy}}").unwrap();
        copy.as_object_mut().unwrap().insert("data", document("{k: AAAA}"));
        bed.apply_object(&copy);
        for _ in 0..10 {
            bed.pump();
            bed.controller.step(bed.now);
        }
    }
    assert!(bed.now - begun < 30_000, "{} ms", bed.now - begun);
    let changes = bed.notes.lock().unwrap().iter().filter(|note| matches!(note, Note::Changed { .. })).count();
    assert_eq!(changes, 5);
    assert_eq!(copied(&bed), "AAAA");
    // When the other has given up, the object is put right.
    bed.settle();
    assert_eq!(copied(&bed), "0000");
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
    let mut bed = Bed::new();
    bed.door.close(true);
    bed.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: all}}");
    bed.apply(APPEND);
    bed.settle();
    for number in 0..20 {
        let name = format!("s{number}");
        let trigger = bed.cluster_create(&document(&secret(&name, 0)));
        let uid = trigger.str_at(&["metadata", "uid"]).unwrap();
        bed.cluster_create(&document(&format!(
            "{{apiVersion: kyverno.io/v2, kind: UpdateRequest, metadata: {{name: ur-{name}, namespace: kyverno}},
              spec: {{requestType: mutate, policy: p, rule: append, resource: {{apiVersion: v1, kind: Secret,
                namespace: default, name: {name}, uid: {uid}}}, context: {{admissionRequestInfo: {{operation: CREATE,
                admissionRequest: {{operation: CREATE, uid: u{number}, namespace: default, name: {name},
                  object: {trigger}}}}}}}}}}}",
            trigger = trigger.to_json()
        )));
    }
    bed.settle();
    let all = bed.find("{apiVersion: v1, kind: ConfigMap, metadata: {name: all}}").unwrap();
    assert_eq!(all.get("data").unwrap().as_object().unwrap().len(), 20);
    assert_eq!(bed.pending_requests(), 0);
}
