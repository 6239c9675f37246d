//! What the action tables do not say.

use ephor_expr::{Str, Value};
use ephor_runtime::content::{normalized_content, set_meta};

use super::bed::Bed;

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
      namespace: '{{ request.object.metadata.namespace }}'
      data: {stringData: {k: '{{ request.object.data.v }}'}}
";

const TRIGGER: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, labels: {on: 'yes'}}, data: {to: a, v: x}}";

fn secret(name: &str) -> String {
    format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}")
}

#[test]
fn a_trigger_that_renders_another_name_takes_the_old_object_along() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.settle();
    bed.apply(TRIGGER);
    bed.settle();
    assert!(bed.find(&secret("a")).is_some());
    bed.apply(&TRIGGER.replace("to: a", "to: b"));
    bed.settle();
    assert!(bed.find(&secret("a")).is_none() && bed.find(&secret("b")).is_some());
    assert_eq!(bed.pending_requests(), 0);
}

#[test]
fn a_second_pass_writes_nothing() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.apply(TRIGGER);
    bed.settle();
    let revision = bed.cluster.revision();
    bed.controller.resync(bed.now);
    bed.settle();
    assert_eq!(bed.cluster.revision(), revision);
    bed.restart();
    bed.settle();
    assert_eq!(bed.cluster.revision(), revision, "not after a restart either");
}

#[test]
fn a_policy_as_it_was_before_is_not_taken_in_again() {
    let mut bed = Bed::new();
    let before = bed.snapshot();
    bed.apply(POLICY);
    bed.pump();
    assert_eq!(bed.controller.state().infos.len(), 1);
    bed.controller.observe_policies(before, bed.now);
    assert_eq!(bed.controller.state().infos.len(), 1);
}

#[test]
fn what_was_missed_is_made_good_after_a_restart() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.apply(TRIGGER);
    bed.settle();
    bed.stop();
    // Admission is down too: nobody writes requests.
    bed.door.close(true);
    bed.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: u, labels: {on: 'yes'}}, data: {to: c, v: x}}");
    bed.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    bed.restart();
    bed.settle();
    assert!(bed.find(&secret("a")).is_none(), "its trigger is gone");
    assert!(bed.find(&secret("c")).is_some());
}

#[test]
fn a_policy_that_is_deleted_while_nobody_looks_takes_its_objects_along() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.apply(TRIGGER);
    bed.settle();
    bed.stop();
    bed.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    bed.restart();
    bed.settle();
    assert!(bed.find(&secret("a")).is_none());
}

#[test]
fn triggers_older_than_the_policy_are_left_alone_without_generate_existing() {
    let mut bed = Bed::new();
    bed.apply(TRIGGER);
    bed.apply(POLICY);
    bed.settle();
    assert!(bed.find(&secret("a")).is_none());
    bed.apply(&TRIGGER.replace("v: x", "v: z"));
    bed.settle();
    assert!(bed.find(&secret("a")).is_some(), "an update is a trigger");
}

#[test]
fn a_foreign_object_with_copied_labels_is_never_deleted() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.apply(TRIGGER);
    bed.settle();
    let mut copy = bed.find(&secret("a")).unwrap();
    for key in ["uid", "resourceVersion", "creationTimestamp"] {
        ephor_runtime::content::set_meta(&mut copy, key, None);
    }
    ephor_runtime::content::set_meta(&mut copy, "name", Some("mine".into()));
    bed.apply_object(&copy);
    bed.settle();
    bed.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    bed.settle();
    assert!(bed.find(&secret("a")).is_none());
    assert!(bed.find(&secret("mine")).is_some());
    bed.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    bed.settle();
    assert!(bed.find(&secret("mine")).is_some());
}

#[test]
fn two_triggers_of_one_object_share_it() {
    let mut bed = Bed::new();
    bed.apply(&POLICY.replace("'{{ request.object.data.v }}'", "same"));
    bed.apply(TRIGGER);
    bed.apply(&TRIGGER.replace("name: t", "name: u"));
    bed.settle();
    bed.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    bed.settle();
    assert!(bed.find(&secret("a")).is_some(), "the other trigger still wants it");
    bed.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: u}}");
    bed.settle();
    assert!(bed.find(&secret("a")).is_none());
}

#[test]
fn a_failure_shows_on_the_policy_and_goes_again() {
    let mut bed = Bed::new();
    bed.apply(&POLICY.replace("'{{ request.object.metadata.namespace }}'", "nowhere"));
    bed.apply(TRIGGER);
    bed.settle();
    assert_eq!(bed.given_up().len(), 1, "the request is given up; the work is not");
    let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}";
    let text = bed.find(policy).unwrap().to_json();
    assert!(text.contains("BackgroundConverged") && text.contains("\"status\":\"False\""), "{text}");
    bed.apply("{apiVersion: v1, kind: Namespace, metadata: {name: nowhere}}");
    bed.settle();
    let text = bed.find(policy).unwrap().to_json();
    assert!(text.contains("\"status\":\"True\""), "{text}");
    assert_eq!(bed.given_up().len(), 0, "the work is done after all");
    assert!(bed.find("{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: nowhere}}").is_some());
}

#[test]
fn a_clone_list_selects_by_what_the_trigger_says() {
    let mut bed = Bed::new();
    bed.apply("{apiVersion: v1, kind: Namespace, metadata: {name: sources}}");
    for (name, label) in [("one", "yes"), ("two", "no")] {
        bed.apply(&format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: sources, labels: {{copy: '{label}'}}}}}}"
        ));
    }
    bed.apply(
        "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate:
      synchronize: true
      namespace: '{{ request.object.metadata.namespace }}'
      cloneList:
        namespace: sources
        kinds: [v1/Secret]
        selector: {matchLabels: {copy: '{{ request.object.data.v }}'}}
",
    );
    bed.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {v: 'yes'}}");
    bed.settle();
    assert!(bed.find(&secret("one")).is_some() && bed.find(&secret("two")).is_none());
    bed.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {v: 'no'}}");
    bed.settle();
    assert!(bed.find(&secret("one")).is_none() && bed.find(&secret("two")).is_some());
}

#[test]
fn a_deleted_object_comes_back_also_for_a_trigger_as_old_as_its_policy() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    // In the same second.
    let trigger = super::bed::document(TRIGGER);
    bed.cluster_create(&trigger);
    bed.settle();
    bed.door.close(true);
    bed.delete(&secret("a"));
    bed.settle();
    assert!(bed.find(&secret("a")).is_some());
}

#[test]
fn what_a_rule_compares_its_own_object_with_stays() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {on: 'yes'}}}}]}
    context:
    - name: now
      apiCall: {urlPath: /api/v1/namespaces/default/secrets, jmesPath: \"items[?metadata.name=='all'] | [0].data.k || 'none'\"}
    - name: parts
      apiCall: {urlPath: /api/v1/namespaces/default/configmaps, jmesPath: \"items[?metadata.labels.part=='yes'].data.v\"}
    preconditions:
      all: [{key: \"{{ base64_encode(to_string(parts)) }}\", operator: NotEquals, value: '{{ now }}'}]
    generate:
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: all
      namespace: default
      data: {data: {k: \"{{ base64_encode(to_string(parts)) }}\"}}
";
    let part = |name: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{part: 'yes'}}}}, data: {{v: {name}}}}}"
        )
    };
    let mut bed = Bed::new();
    bed.apply(policy);
    bed.apply(&part("a"));
    bed.apply(TRIGGER);
    bed.settle();
    let value = |bed: &Bed| bed.find(&secret("all")).map(|s| s.str_at(&["data", "k"]).unwrap().to_owned());
    let first = value(&bed);
    assert!(first.is_some());
    let revision = bed.cluster.revision();
    bed.controller.resync(bed.now);
    bed.settle();
    bed.restart();
    bed.settle();
    assert_eq!((value(&bed), bed.cluster.revision()), (first.clone(), revision));
    // What it reads changes, and so does what it wants.
    bed.apply(&part("b"));
    bed.settle();
    assert!(value(&bed).is_some() && value(&bed) != first);
}

#[test]
fn within_the_second_of_a_policy_versions_tell_what_came_after_it() {
    let mut bed = Bed::new();
    bed.door.close(true);
    bed.apply(&TRIGGER.replace("name: t", "name: before").replace("to: a", "to: b"));
    bed.apply(POLICY);
    bed.apply(TRIGGER);
    bed.settle();
    assert!(bed.find(&secret("a")).is_some() && bed.find(&secret("b")).is_none());
}

#[test]
fn what_a_rule_applies_no_more_goes_also_after_a_restart() {
    let policy = POLICY.replace("spec:\n", "spec:\n  useServerSideApply: true\n");
    let mut bed = Bed::new();
    bed.apply(&policy.replace("{k: '{{ request.object.data.v }}'}", "{k: x, more: y}"));
    bed.apply(TRIGGER);
    bed.settle();
    let keys = |bed: &Bed| bed.find(&secret("a")).unwrap().get("stringData").unwrap().as_object().unwrap().len();
    assert_eq!(keys(&bed), 2);
    bed.stop();
    bed.apply(&policy);
    bed.restart();
    bed.settle();
    assert_eq!(keys(&bed), 1);
    let revision = bed.cluster.revision();
    let told = bed.notes.lock().unwrap().len();
    bed.restart();
    bed.settle();
    bed.controller.resync(bed.now);
    bed.settle();
    assert_eq!(bed.cluster.revision(), revision, "a second pass writes nothing");
    assert_eq!(bed.notes.lock().unwrap().len(), told, "and tells nothing");
}

#[test]
fn kinds_by_wildcard_are_followed() {
    let mut bed = Bed::new();
    bed.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r,
          match: {any: [{resources: {kinds: ['Config*']}}]}, generate: {synchronize: true, apiVersion: v1,
            kind: Secret, name: made, namespace: default, data: {data: {k: '{{ request.object.data.v }}'}}}}]}}",
    );
    bed.settle();
    bed.door.close(true);
    let trigger = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {v: x}}";
    let made = |bed: &Bed| bed.find("{apiVersion: v1, kind: Secret, metadata: {name: made}}");
    for v in ["x", "z"] {
        bed.apply(&trigger.replace("v: x", &format!("v: {v}")));
        bed.settle();
        assert_eq!(made(&bed).unwrap().str_at(&["data", "k"]), Some(v), "nobody but the watch has told of it");
    }
    bed.delete(trigger);
    bed.settle();
    assert_eq!(made(&bed), None);
}

#[test]
fn an_object_that_finalizers_hold_is_kept_in_step_until_it_is_gone_and_is_then_made_anew() {
    let mut bed = Bed::new();
    bed.apply(POLICY);
    bed.settle();
    bed.apply(TRIGGER);
    bed.settle();
    let mut held = bed.find(&secret("a")).unwrap();
    set_meta(&mut held, "finalizers", Some(Value::from(vec!["example.com/hold"])));
    bed.apply_object(&held);
    bed.settle();
    let right = normalized_content(&bed.find(&secret("a")).unwrap());
    bed.delete(&secret("a"));
    let edit = |bed: &mut Bed, key: &str| {
        let mut edited = bed.find(&secret("a")).unwrap();
        edited.as_object_mut().unwrap().insert("data", Value::from([(Str::new(key), Value::from("eHg="))]));
        bed.apply_object(&edited);
        bed.settle();
    };
    for key in ["k", "other"] {
        edit(&mut bed, key);
        let found = bed.find(&secret("a")).unwrap();
        assert!(found.at(&["metadata", "deletionTimestamp"]).is_some());
        assert_eq!(normalized_content(&found), right);
    }
    let mut free = bed.find(&secret("a")).unwrap();
    let uid = free.at(&["metadata", "uid"]).cloned();
    set_meta(&mut free, "finalizers", None);
    bed.apply_object(&free);
    bed.settle();
    let made = bed.find(&secret("a")).unwrap();
    assert!(made.at(&["metadata", "deletionTimestamp"]).is_none() && made.at(&["metadata", "uid"]).cloned() != uid);
}
