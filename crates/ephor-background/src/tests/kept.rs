//! What is remembered, and when it is forgotten.

use std::sync::{Arc, Mutex};

use ephor_cluster::{Cluster, DeleteOptions, MemoryCluster};
use ephor_expr::Value;
use ephor_faults::FaultyCluster;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::policies::Snapshot;

use super::harness::{Harness, as_controller};
use crate::Controller;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate:
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: '{{ request.object.metadata.name }}'
      namespace: '{{ request.object.data.in }}'
      data: {stringData: {k: v}}
";

fn trigger(name: &str, namespace: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{in: {namespace}}}}}")
}

fn known(harness: &Harness, kind: &str) -> usize {
    harness.controller.state().index.of_kind(&GroupKind::new("v1", kind)).count()
}

fn made(harness: &Harness) -> Option<Value> {
    harness.find("{apiVersion: v1, kind: Secret, metadata: {name: t}}")
}

const GONE: &str = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}";

#[test]
fn of_kinds_that_nobody_follows_nothing_is_kept() {
    let mut harness = Harness::new();
    harness.apply(&POLICY.replace("synchronize: true", "synchronize: false"));
    harness.apply(&trigger("t", "default"));
    let generated = loop {
        harness.pump();
        harness.controller.step(harness.now);
        let request = harness.list("kyverno.io/v2", "UpdateRequest").pop().unwrap();
        if let Some(generated) = request.at(&["status", "generatedResources"]) {
            break generated.clone();
        }
    };
    let uid = made(&harness).unwrap().str_at(&["metadata", "uid"]).unwrap().to_owned();
    let generated = generated.as_array().unwrap()[0].clone();
    assert_eq!(generated.str_at(&["uid"]), Some(&*uid), "{}", generated.to_json());
    harness.settle();
    // It is there already: an update of the trigger changes nothing.
    harness.apply(&trigger("t", "default").replace("in: default", "in: default, more: x"));
    harness.settle();
    assert_eq!((known(&harness, "ConfigMap"), known(&harness, "Secret")), (0, 0));
    assert!(harness.controller.state().ownership.is_empty());
}

#[test]
fn triggers_are_forgotten_with_the_last_rule_that_follows_them() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(&trigger("t", "default"));
    harness.settle();
    assert_eq!((known(&harness, "ConfigMap"), known(&harness, "Secret")), (1, 1));
    harness.delete(GONE);
    harness.settle();
    assert_eq!(made(&harness), None);
    assert_eq!((known(&harness, "ConfigMap"), known(&harness, "Secret")), (0, 0));
    assert!(harness.controller.watches().is_empty(), "{:?}", harness.controller.watches());
}

#[test]
fn what_a_rule_made_is_known_after_it_ceases_to_synchronize() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply(&trigger("t", "default"));
    harness.settle();
    harness.apply(&POLICY.replace("synchronize: true", "synchronize: false"));
    // Watchers are taken down before the work is done.
    harness.pump();
    harness.pump();
    harness.settle();
    assert_eq!((known(&harness, "ConfigMap"), known(&harness, "Secret")), (0, 1));
    harness.delete(GONE);
    harness.settle();
    assert!(made(&harness).is_some(), "it is on its own");
}

#[test]
fn nothing_is_kept_of_requests_that_failed_and_of_policies_that_are_gone() {
    let reading = "
    context:
    - {name: pods, apiCall: {urlPath: /api/v1/namespaces/default/pods}}
    generate:";
    let once = POLICY.replace("synchronize: true", "synchronize: false");
    let existing = POLICY.replace("synchronize: true", "synchronize: false, generateExisting: true");
    let existing = existing.replace("      synchronize: false, generateExisting: true", "      generateExisting: true");
    for policy in [POLICY.to_owned(), once, existing, POLICY.replace("\n    generate:", reading)] {
        let mut harness = Harness::new();
        harness.apply(&trigger("early", "nowhere"));
        harness.apply(&trigger("sound", "default"));
        harness.apply(&policy);
        harness.settle();
        harness.apply(&trigger("t", "nowhere"));
        harness.settle();
        assert_eq!(harness.pending_requests(), 0, "given up");
        if !policy.contains("synchronize: true") {
            let state = harness.controller.state();
            assert!(state.events.is_empty(), "{:?}", state.events);
        }
        harness.delete(GONE);
        harness.settle();
        {
            let state = harness.controller.state();
            assert!(state.events.is_empty(), "{:?}", state.events);
            assert!(state.acted.is_empty() && state.former.is_empty(), "{:?} {:?}", state.acted, state.former);
            assert!(state.failures.is_empty() && state.ownership.is_empty(), "{:?}", state.failures);
        }
        assert!(harness.controller.watches().is_empty(), "{:?}", harness.controller.watches());
    }
}

#[test]
fn what_was_read_for_a_policy_is_followed_as_long_as_the_policy_is_there() {
    let mut harness = Harness::new();
    let wide = |harness: &Harness| {
        harness.controller.watches().get(&GroupKind::new("v1", "Pod")).is_some_and(|watch| watch.wide)
    };
    harness.apply(&POLICY.replace(
        "    generate:",
        "    context: [{name: pods, apiCall: {urlPath: /api/v1/namespaces/default/pods}}]
    preconditions: {all: [{key: '{{ length(pods.items) }}', operator: GreaterThan, value: 0}]}
    generate:",
    ));
    harness.apply(&trigger("t", "default"));
    harness.settle();
    assert!(wide(&harness) && made(&harness).is_none());
    harness.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: main, image: example}]}}",
    );
    harness.settle();
    assert!(made(&harness).is_some());
    harness.apply(POLICY);
    harness.settle();
    assert!(!wide(&harness), "the rule reads nothing any more");
}

#[test]
fn a_trigger_of_a_kind_that_cannot_be_followed_is_known_as_long_as_something_is_made_for_it() {
    // Of kinds that change all the time only those are followed that a rule writes out.
    let policy = POLICY
        .replace("[ConfigMap]", "['Leas?']")
        .replace("'{{ request.object.metadata.name }}'", "made")
        .replace("'{{ request.object.data.in }}'", "default");
    let lease = "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: t, namespace: default}}";
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: made}}";
    let mut harness = Harness::new();
    harness.apply(&policy);
    harness.apply(lease);
    harness.settle();
    assert!(harness.find(secret).is_some() && harness.controller.watches().keys().all(|kind| kind.kind != "Lease"));
    harness.admission.close(true);
    harness.delete(secret);
    harness.settle();
    assert!(harness.find(secret).is_some(), "it came back");
    harness.admission.close(false);
    harness.delete(lease);
    harness.settle();
    assert_eq!(harness.find(secret), None);
    assert!(harness.controller.state().events.is_empty());
}

#[test]
fn what_is_made_while_its_policy_goes_goes_too() {
    let cluster = MemoryCluster::default();
    let going: Arc<Mutex<Option<(Controller, u64)>>> = Arc::default();
    let (behind, act) = (cluster.clone(), Arc::clone(&going));
    let view = FaultyCluster::new(Arc::new(as_controller(&cluster))).before_writes(move |_| {
        if let Some((controller, now)) = act.lock().unwrap().take() {
            let policies = behind.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
            behind.delete(&policies, None, "p", &DeleteOptions::default()).unwrap();
            controller.observe_policies(Arc::new(Snapshot { number: u64::MAX, ..Snapshot::default() }), now);
        }
        None
    });
    let mut harness = Harness::over(cluster, Arc::new(view));
    harness.apply(POLICY);
    harness.settle();
    harness.admission.close(true);
    harness.apply(&trigger("t", "default"));
    *going.lock().unwrap() = Some((harness.controller.clone(), harness.now));
    harness.settle();
    assert!(going.lock().unwrap().is_none(), "the policy is gone");
    assert_eq!(made(&harness), None);
}

#[test]
fn fields_of_others_go_once_a_policy_ceases_to_apply_server_side() {
    let mut harness = Harness::new();
    harness.apply(&POLICY.replace("spec:\n  rules", "spec:\n  useServerSideApply: true\n  rules"));
    harness.apply(&trigger("t", "default"));
    harness.settle();
    let labelled = |harness: &Harness| made(harness).unwrap().at(&["metadata", "labels", "by-hand"]).is_some();
    let mut object = made(&harness).unwrap();
    ephor_runtime::content::set_entry(&mut object, "labels", "by-hand", Some("yes"));
    harness.apply_object(&object);
    // A restarted controller applies again and remembers what the server stored.
    harness.restart();
    harness.settle();
    assert!(labelled(&harness), "an apply leaves the fields of others");
    harness.apply(POLICY);
    harness.settle();
    assert!(!labelled(&harness));
}
