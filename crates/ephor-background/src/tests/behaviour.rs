//! What the action tables do not say.

use ephor_expr::{Str, Value};
use ephor_runtime::content::{normalized_content, set_meta};

use super::harness::Harness;

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
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply(TRIGGER);
    harness.settle();
    assert!(harness.find(&secret("a")).is_some());
    harness.apply(&TRIGGER.replace("to: a", "to: b"));
    harness.settle();
    assert!(harness.find(&secret("a")).is_none() && harness.find(&secret("b")).is_some());
    assert_eq!(harness.pending_requests(), 0);
}

#[test]
fn a_second_pass_writes_nothing() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(TRIGGER);
    harness.settle();
    let revision = harness.cluster.revision();
    harness.controller.resync(harness.now);
    harness.settle();
    assert_eq!(harness.cluster.revision(), revision);
    harness.restart();
    harness.settle();
    assert_eq!(harness.cluster.revision(), revision, "not after a restart either");
}

#[test]
fn a_policy_as_it_was_before_is_not_taken_in_again() {
    let mut harness = Harness::new();
    let before = harness.snapshot();
    harness.apply(POLICY);
    harness.pump();
    assert_eq!(harness.controller.state().infos.len(), 1);
    harness.controller.observe_policies(before, harness.now);
    assert_eq!(harness.controller.state().infos.len(), 1);
}

#[test]
fn what_was_missed_is_made_good_after_a_restart() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(TRIGGER);
    harness.settle();
    harness.stop();
    // Admission is down too: nobody writes requests.
    harness.admission.close(true);
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: u, labels: {on: 'yes'}}, data: {to: c, v: x}}");
    harness.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    harness.restart();
    harness.settle();
    assert!(harness.find(&secret("a")).is_none(), "its trigger is gone");
    assert!(harness.find(&secret("c")).is_some());
}

#[test]
fn a_policy_that_is_deleted_while_nobody_looks_takes_its_objects_along() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(TRIGGER);
    harness.settle();
    harness.stop();
    harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    harness.restart();
    harness.settle();
    assert!(harness.find(&secret("a")).is_none());
}

#[test]
fn triggers_older_than_the_policy_are_left_alone_without_generate_existing() {
    let mut harness = Harness::new();
    harness.apply(TRIGGER);
    harness.apply(POLICY);
    harness.settle();
    assert!(harness.find(&secret("a")).is_none());
    harness.apply(&TRIGGER.replace("v: x", "v: z"));
    harness.settle();
    assert!(harness.find(&secret("a")).is_some(), "an update is a trigger");
}

#[test]
fn a_foreign_object_with_copied_labels_is_never_deleted() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(TRIGGER);
    harness.settle();
    let mut copy = harness.find(&secret("a")).unwrap();
    for key in ["uid", "resourceVersion", "creationTimestamp"] {
        ephor_runtime::content::set_meta(&mut copy, key, None);
    }
    ephor_runtime::content::set_meta(&mut copy, "name", Some("mine".into()));
    harness.apply_object(&copy);
    harness.settle();
    harness.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    harness.settle();
    assert!(harness.find(&secret("a")).is_none());
    assert!(harness.find(&secret("mine")).is_some());
    harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    harness.settle();
    assert!(harness.find(&secret("mine")).is_some());
}

#[test]
fn two_triggers_of_one_object_share_it() {
    let mut harness = Harness::new();
    harness.apply(&POLICY.replace("'{{ request.object.data.v }}'", "same"));
    harness.apply(TRIGGER);
    harness.apply(&TRIGGER.replace("name: t", "name: u"));
    harness.settle();
    harness.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    harness.settle();
    assert!(harness.find(&secret("a")).is_some(), "the other trigger still wants it");
    harness.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: u}}");
    harness.settle();
    assert!(harness.find(&secret("a")).is_none());
}

#[test]
fn a_failure_shows_on_the_policy_and_goes_again() {
    let mut harness = Harness::new();
    harness.apply(&POLICY.replace("'{{ request.object.metadata.namespace }}'", "nowhere"));
    harness.apply(TRIGGER);
    harness.settle();
    assert_eq!(harness.given_up().len(), 1, "the request is given up; the work is not");
    let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}";
    let text = harness.find(policy).unwrap().to_json();
    assert!(text.contains("BackgroundConverged") && text.contains("\"status\":\"False\""), "{text}");
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: nowhere}}");
    harness.settle();
    let text = harness.find(policy).unwrap().to_json();
    assert!(text.contains("\"status\":\"True\""), "{text}");
    assert_eq!(harness.given_up().len(), 0, "the work is done after all");
    assert!(harness.find("{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: nowhere}}").is_some());
}

#[test]
fn a_clone_list_selects_by_what_the_trigger_says() {
    let mut harness = Harness::new();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: sources}}");
    for (name, label) in [("one", "yes"), ("two", "no")] {
        harness.apply(&format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: sources, labels: {{copy: '{label}'}}}}}}"
        ));
    }
    harness.apply(
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
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {v: 'yes'}}");
    harness.settle();
    assert!(harness.find(&secret("one")).is_some() && harness.find(&secret("two")).is_none());
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {v: 'no'}}");
    harness.settle();
    assert!(harness.find(&secret("one")).is_none() && harness.find(&secret("two")).is_some());
}

#[test]
fn a_deleted_object_comes_back_also_for_a_trigger_as_old_as_its_policy() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    // In the same second.
    let trigger = super::harness::document(TRIGGER);
    harness.cluster_create(&trigger);
    harness.settle();
    harness.admission.close(true);
    harness.delete(&secret("a"));
    harness.settle();
    assert!(harness.find(&secret("a")).is_some());
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
    let mut harness = Harness::new();
    harness.apply(policy);
    harness.apply(&part("a"));
    harness.apply(TRIGGER);
    harness.settle();
    let value = |harness: &Harness| harness.find(&secret("all")).map(|s| s.str_at(&["data", "k"]).unwrap().to_owned());
    let first = value(&harness);
    assert!(first.is_some());
    let revision = harness.cluster.revision();
    harness.controller.resync(harness.now);
    harness.settle();
    harness.restart();
    harness.settle();
    assert_eq!((value(&harness), harness.cluster.revision()), (first.clone(), revision));
    // What it reads changes, and so does what it wants.
    harness.apply(&part("b"));
    harness.settle();
    assert!(value(&harness).is_some() && value(&harness) != first);
}

#[test]
fn within_the_second_of_a_policy_versions_tell_what_came_after_it() {
    let mut harness = Harness::new();
    harness.admission.close(true);
    harness.apply(&TRIGGER.replace("name: t", "name: before").replace("to: a", "to: b"));
    harness.apply(POLICY);
    harness.apply(TRIGGER);
    harness.settle();
    assert!(harness.find(&secret("a")).is_some() && harness.find(&secret("b")).is_none());
}

#[test]
fn what_a_rule_applies_no_more_goes_also_after_a_restart() {
    let policy = POLICY.replace("spec:\n", "spec:\n  useServerSideApply: true\n");
    let mut harness = Harness::new();
    harness.apply(&policy.replace("{k: '{{ request.object.data.v }}'}", "{k: x, more: y}"));
    harness.apply(TRIGGER);
    harness.settle();
    let keys =
        |harness: &Harness| harness.find(&secret("a")).unwrap().get("stringData").unwrap().as_object().unwrap().len();
    assert_eq!(keys(&harness), 2);
    harness.stop();
    harness.apply(&policy);
    harness.restart();
    harness.settle();
    assert_eq!(keys(&harness), 1);
    let revision = harness.cluster.revision();
    let told = harness.notes.lock().unwrap().len();
    harness.restart();
    harness.settle();
    harness.controller.resync(harness.now);
    harness.settle();
    assert_eq!(harness.cluster.revision(), revision, "a second pass writes nothing");
    assert_eq!(harness.notes.lock().unwrap().len(), told, "and tells nothing");
}

#[test]
fn kinds_by_wildcard_are_followed() {
    let mut harness = Harness::new();
    harness.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r,
          match: {any: [{resources: {kinds: ['Config*']}}]}, generate: {synchronize: true, apiVersion: v1,
            kind: Secret, name: made, namespace: default, data: {data: {k: '{{ request.object.data.v }}'}}}}]}}",
    );
    harness.settle();
    harness.admission.close(true);
    let trigger = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {v: x}}";
    let made = |harness: &Harness| harness.find("{apiVersion: v1, kind: Secret, metadata: {name: made}}");
    for v in ["x", "z"] {
        harness.apply(&trigger.replace("v: x", &format!("v: {v}")));
        harness.settle();
        assert_eq!(made(&harness).unwrap().str_at(&["data", "k"]), Some(v), "nobody but the watch has told of it");
    }
    harness.delete(trigger);
    harness.settle();
    assert_eq!(made(&harness), None);
}

#[test]
fn an_object_that_finalizers_hold_is_kept_in_step_until_it_is_gone_and_is_then_made_anew() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply(TRIGGER);
    harness.settle();
    let mut held = harness.find(&secret("a")).unwrap();
    set_meta(&mut held, "finalizers", Some(Value::from(vec!["example.com/hold"])));
    harness.apply_object(&held);
    harness.settle();
    let right = normalized_content(&harness.find(&secret("a")).unwrap());
    harness.delete(&secret("a"));
    let edit = |harness: &mut Harness, key: &str| {
        let mut edited = harness.find(&secret("a")).unwrap();
        edited.as_object_mut().unwrap().insert("data", Value::from([(Str::new(key), Value::from("eHg="))]));
        harness.apply_object(&edited);
        harness.settle();
    };
    for key in ["k", "other"] {
        edit(&mut harness, key);
        let found = harness.find(&secret("a")).unwrap();
        assert!(found.at(&["metadata", "deletionTimestamp"]).is_some());
        assert_eq!(normalized_content(&found), right);
    }
    let mut free = harness.find(&secret("a")).unwrap();
    let uid = free.at(&["metadata", "uid"]).cloned();
    set_meta(&mut free, "finalizers", None);
    harness.apply_object(&free);
    harness.settle();
    let made = harness.find(&secret("a")).unwrap();
    assert!(made.at(&["metadata", "deletionTimestamp"]).is_none() && made.at(&["metadata", "uid"]).cloned() != uid);
}
