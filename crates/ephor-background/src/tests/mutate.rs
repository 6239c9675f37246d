//! Mutate rules for existing targets.

use ephor_cluster::{Cluster, ListQuery};
use ephor_expr::Value;
use ephor_runtime::watcher::StoreEvent;

use super::harness::Harness;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {'on': 'yes'}}}}]}
    mutate:
      mutateExistingOnPolicyUpdate: false
      targets: [{apiVersion: v1, kind: ConfigMap, name: board, namespace: default}]
      patchStrategicMerge: {data: {'{{ request.object.metadata.name }}': '{{ request.object.data.v }}'}}
";

fn trigger(name: &str, v: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{'on': 'yes'}}}}, data: {{v: {v}}}}}"
    )
}

const BOARD: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: board}, data: {is: there}}";

fn mark(harness: &Harness, name: &str) -> Option<String> {
    harness.find(BOARD).unwrap().str_at(&["data", name]).map(str::to_owned)
}

#[test]
fn a_trigger_patches_the_target_when_it_comes_and_when_it_changes() {
    let mut harness = Harness::new();
    harness.apply(BOARD);
    harness.apply(POLICY);
    harness.settle();
    harness.apply(&trigger("dog", "one"));
    harness.settle();
    assert_eq!(mark(&harness, "dog").as_deref(), Some("one"));
    harness.apply(&trigger("dog", "two"));
    harness.settle();
    assert_eq!(mark(&harness, "dog").as_deref(), Some("two"));
    assert_eq!(harness.pending_requests(), 0);
}

#[test]
fn what_is_so_already_is_not_written() {
    let mut harness = Harness::new();
    harness.apply(BOARD);
    harness.apply(&POLICY.replace("OnPolicyUpdate: false", "OnPolicyUpdate: true"));
    harness.apply(&trigger("dog", "one"));
    harness.settle();
    let board = harness.find(BOARD).unwrap();
    harness.apply(&trigger("dog", "one"));
    harness.restart();
    harness.settle();
    assert_eq!(harness.find(BOARD).unwrap(), board);
}

#[test]
fn a_request_waits_until_its_trigger_is_stored() {
    let mut harness = Harness::new();
    harness.apply(BOARD);
    harness.apply(POLICY);
    harness.settle();
    let (controller, cluster, now) = (harness.controller.clone(), harness.cluster.clone(), harness.now);
    harness.admission.between(move || {
        let resource = cluster.resolve("kyverno.io/v2", "UpdateRequest").unwrap();
        let requests = cluster.list(&resource, &ListQuery::all()).unwrap().items;
        assert_eq!(requests.len(), 1);
        controller.observe_requests(StoreEvent::Reset(requests), now);
        controller.step(now);
    });
    harness.apply(&trigger("dog", "one"));
    harness.settle();
    assert_eq!(mark(&harness, "dog").as_deref(), Some("one"));
}

#[test]
fn a_status_is_patched_where_it_is_written() {
    let mut harness = Harness::new();
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1,
      selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
        spec: {containers: [{name: main, image: example}]}}}}";
    harness.apply(deployment);
    harness.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r,
          match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {
            targets: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}],
            patchStrategicMerge: {spec: {replicas: 3}, status: {observedGeneration: 7}}}}]}}",
    );
    harness.settle();
    harness.apply(&trigger("dog", "one"));
    harness.settle();
    let found = harness.find(deployment).unwrap();
    assert_eq!(found.at(&["spec", "replicas"]).and_then(Value::as_i64), Some(3));
    assert_eq!(found.at(&["status", "observedGeneration"]).and_then(Value::as_i64), Some(7));
}

#[test]
fn a_subresource_is_read_and_written_where_it_is() {
    let mut harness = Harness::new();
    let deployment =
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 1,
      selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
        spec: {containers: [{name: main, image: example}]}}}}";
    let policy = |subresource: &str, patch: &str| {
        format!(
            "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{rules: [{{name: r,
              match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, mutate: {{
                targets: [{{apiVersion: apps/v1, kind: Deployment/{subresource}, name: 'w*', namespace: default}}],
                patchStrategicMerge: {patch}}}}}]}}}}"
        )
    };
    harness.apply(deployment);
    harness.apply(&policy("scale", "{spec: {replicas: '{{ target.spec.replicas | add(@, `2`) }}'}}"));
    harness.settle();
    harness.apply(&trigger("dog", "one"));
    harness.settle();
    let found = harness.find(deployment).unwrap();
    assert_eq!(found.at(&["spec", "replicas"]).and_then(Value::as_i64), Some(3), "{}", found.to_json());

    harness.apply(&policy("status", "{spec: {replicas: 9}, status: {observedGeneration: 7}}"));
    harness.settle();
    harness.apply(&trigger("cat", "one"));
    harness.settle();
    let found = harness.find(deployment).unwrap();
    assert_eq!(found.at(&["spec", "replicas"]).and_then(Value::as_i64), Some(3), "a status is all that is written");
    assert_eq!(found.at(&["status", "observedGeneration"]).and_then(Value::as_i64), Some(7));

    harness.apply(&policy("rollback", "{spec: {replicas: 9}}"));
    harness.settle();
    harness.apply(&trigger("fox", "one"));
    while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
    let requests = harness.list("kyverno.io/v2", "UpdateRequest");
    let messages: Vec<_> = requests.iter().filter_map(|request| request.str_at(&["status", "message"])).collect();
    let message = "rule r for ConfigMap default/fox: failed to fetch target Deployment/rollback default/web: \
                   deployments.apps have no subresource `rollback`";
    assert_eq!(messages, [message]);
}

/// The controller is at a trigger's request, for that long, before the trigger is stored.
fn slowly(harness: &Harness, millis: u64) {
    let (controller, cluster, now) = (harness.controller.clone(), harness.cluster.clone(), harness.now);
    harness.admission.between(move || {
        let resource = cluster.resolve("kyverno.io/v2", "UpdateRequest").unwrap();
        let requests = cluster.list(&resource, &ListQuery::all()).unwrap().items;
        assert_eq!(requests.len(), 1);
        controller.observe_requests(StoreEvent::Reset(requests), now);
        for passed in 0..=millis / 100 {
            while controller.step(now + 100 * passed) == crate::Step::Worked {}
        }
    });
}

#[test]
fn a_request_waits_as_long_as_other_webhooks_may_take() {
    let mut harness = Harness::new();
    harness.apply(BOARD);
    harness.apply(
        &POLICY
            .replace("'on': 'yes'}}", "'on': 'yes'}}, operations: [CREATE, UPDATE, DELETE]")
            .replace("request.object.data.v", "request.operation")
            .replace("request.object.metadata.name", "request.name"),
    );
    harness.settle();
    for (act, operation) in [("one", "CREATE"), ("two", "UPDATE"), ("", "DELETE")] {
        slowly(&harness, 29_000);
        if act.is_empty() {
            harness.delete(&trigger("dog", "two"));
        } else {
            harness.apply(&trigger("dog", act));
        }
        harness.tick(29_000);
        harness.settle();
        assert_eq!(mark(&harness, "dog").as_deref(), Some(operation));
        assert_eq!(harness.pending_requests(), 0);
    }
}

#[test]
fn an_update_that_was_refused_changes_nothing() {
    let mut harness = Harness::new();
    harness.apply(BOARD);
    harness.apply(POLICY);
    harness.settle();
    harness.apply(&trigger("dog", "one"));
    harness.settle();
    harness.apply(&BOARD.replace("is: there", "is: empty"));
    harness.admission.refuse(true);
    let before = harness.find(&trigger("dog", "one")).unwrap();
    let mut after = before.clone();
    ephor_runtime::content::set_entry(&mut after, "annotations", "a", Some("b"));
    let resource = harness.resource(&after);
    assert!(harness.cluster.update(&resource, after, &ephor_cluster::WriteOptions::default()).is_err());
    harness.admission.refuse(false);
    assert_eq!(harness.pending_requests(), 1);
    harness.settle();
    assert_eq!((mark(&harness, "dog"), harness.pending_requests()), (None, 0));
}

#[test]
fn an_update_that_says_nothing_new_waits_for_nothing() {
    let mut harness = Harness::new();
    harness.apply(BOARD);
    harness.apply(POLICY);
    harness.settle();
    harness.apply(&trigger("dog", "one"));
    harness.settle();
    harness.apply(&BOARD.replace("is: there", "is: empty"));
    harness.apply(&trigger("dog", "one"));
    while harness.pump() || harness.controller.step(harness.now) == crate::Step::Worked {}
    assert_eq!(mark(&harness, "dog").as_deref(), Some("one"));
}
