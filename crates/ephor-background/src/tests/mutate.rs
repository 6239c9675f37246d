//! Mutate rules for existing targets.

use ephor_cluster::{Cluster, ListQuery};
use ephor_expr::Value;
use ephor_runtime::watcher::StoreEvent;

use super::bed::Bed;

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

fn mark(bed: &Bed, name: &str) -> Option<String> {
    bed.find(BOARD).unwrap().str_at(&["data", name]).map(str::to_owned)
}

#[test]
fn a_trigger_patches_the_target_when_it_comes_and_when_it_changes() {
    let mut bed = Bed::new();
    bed.apply(BOARD);
    bed.apply(POLICY);
    bed.settle();
    bed.apply(&trigger("dog", "one"));
    bed.settle();
    assert_eq!(mark(&bed, "dog").as_deref(), Some("one"));
    bed.apply(&trigger("dog", "two"));
    bed.settle();
    assert_eq!(mark(&bed, "dog").as_deref(), Some("two"));
    assert_eq!(bed.pending_requests(), 0);
}

#[test]
fn what_is_so_already_is_not_written() {
    let mut bed = Bed::new();
    bed.apply(BOARD);
    bed.apply(&POLICY.replace("OnPolicyUpdate: false", "OnPolicyUpdate: true"));
    bed.apply(&trigger("dog", "one"));
    bed.settle();
    let board = bed.find(BOARD).unwrap();
    bed.apply(&trigger("dog", "one"));
    bed.restart();
    bed.settle();
    assert_eq!(bed.find(BOARD).unwrap(), board);
}

#[test]
fn a_request_waits_until_its_trigger_is_stored() {
    let mut bed = Bed::new();
    bed.apply(BOARD);
    bed.apply(POLICY);
    bed.settle();
    let (controller, cluster, now) = (bed.controller.clone(), bed.cluster.clone(), bed.now);
    bed.door.between(move || {
        let resource = cluster.resolve("kyverno.io/v2", "UpdateRequest").unwrap();
        let requests = cluster.list(&resource, &ListQuery::all()).unwrap().items;
        assert_eq!(requests.len(), 1);
        controller.observe_requests(StoreEvent::Reset(requests), now);
        controller.step(now);
    });
    bed.apply(&trigger("dog", "one"));
    bed.settle();
    assert_eq!(mark(&bed, "dog").as_deref(), Some("one"));
}

#[test]
fn a_status_is_patched_where_it_is_written() {
    let mut bed = Bed::new();
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1,
      selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
        spec: {containers: [{name: main, image: example}]}}}}";
    bed.apply(deployment);
    bed.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r,
          match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {
            targets: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}],
            patchStrategicMerge: {spec: {replicas: 3}, status: {observedGeneration: 7}}}}]}}",
    );
    bed.settle();
    bed.apply(&trigger("dog", "one"));
    bed.settle();
    let found = bed.find(deployment).unwrap();
    assert_eq!(found.at(&["spec", "replicas"]).and_then(Value::as_i64), Some(3));
    assert_eq!(found.at(&["status", "observedGeneration"]).and_then(Value::as_i64), Some(7));
}

#[test]
fn a_subresource_is_read_and_written_where_it_is() {
    let mut bed = Bed::new();
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
    bed.apply(deployment);
    bed.apply(&policy("scale", "{spec: {replicas: '{{ target.spec.replicas | add(@, `2`) }}'}}"));
    bed.settle();
    bed.apply(&trigger("dog", "one"));
    bed.settle();
    let found = bed.find(deployment).unwrap();
    assert_eq!(found.at(&["spec", "replicas"]).and_then(Value::as_i64), Some(3), "{}", found.to_json());

    bed.apply(&policy("status", "{spec: {replicas: 9}, status: {observedGeneration: 7}}"));
    bed.settle();
    bed.apply(&trigger("cat", "one"));
    bed.settle();
    let found = bed.find(deployment).unwrap();
    assert_eq!(found.at(&["spec", "replicas"]).and_then(Value::as_i64), Some(3), "a status is all that is written");
    assert_eq!(found.at(&["status", "observedGeneration"]).and_then(Value::as_i64), Some(7));

    bed.apply(&policy("rollback", "{spec: {replicas: 9}}"));
    bed.settle();
    bed.apply(&trigger("fox", "one"));
    while bed.pump() || bed.controller.step(bed.now) == crate::Step::Worked {}
    let requests = bed.list("kyverno.io/v2", "UpdateRequest");
    let messages: Vec<_> = requests.iter().filter_map(|request| request.str_at(&["status", "message"])).collect();
    let message = "rule r for ConfigMap default/fox: failed to fetch target Deployment/rollback default/web: \
                   deployments.apps have no subresource `rollback`";
    assert_eq!(messages, [message]);
}

/// The controller is at a trigger's request, for that long, before the trigger is stored.
fn slowly(bed: &Bed, millis: u64) {
    let (controller, cluster, now) = (bed.controller.clone(), bed.cluster.clone(), bed.now);
    bed.door.between(move || {
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
    let mut bed = Bed::new();
    bed.apply(BOARD);
    bed.apply(
        &POLICY
            .replace("'on': 'yes'}}", "'on': 'yes'}}, operations: [CREATE, UPDATE, DELETE]")
            .replace("request.object.data.v", "request.operation")
            .replace("request.object.metadata.name", "request.name"),
    );
    bed.settle();
    for (act, operation) in [("one", "CREATE"), ("two", "UPDATE"), ("", "DELETE")] {
        slowly(&bed, 29_000);
        if act.is_empty() {
            bed.delete(&trigger("dog", "two"));
        } else {
            bed.apply(&trigger("dog", act));
        }
        bed.tick(29_000);
        bed.settle();
        assert_eq!(mark(&bed, "dog").as_deref(), Some(operation));
        assert_eq!(bed.pending_requests(), 0);
    }
}

#[test]
fn an_update_that_was_refused_changes_nothing() {
    let mut bed = Bed::new();
    bed.apply(BOARD);
    bed.apply(POLICY);
    bed.settle();
    bed.apply(&trigger("dog", "one"));
    bed.settle();
    bed.apply(&BOARD.replace("is: there", "is: empty"));
    bed.door.refuse(true);
    let before = bed.find(&trigger("dog", "one")).unwrap();
    let mut after = before.clone();
    ephor_runtime::content::set_entry(&mut after, "annotations", "a", Some("b"));
    let resource = bed.resource(&after);
    assert!(bed.cluster.update(&resource, after, &ephor_cluster::WriteOptions::default()).is_err());
    bed.door.refuse(false);
    assert_eq!(bed.pending_requests(), 1);
    bed.settle();
    assert_eq!((mark(&bed, "dog"), bed.pending_requests()), (None, 0));
}

#[test]
fn an_update_that_says_nothing_new_waits_for_nothing() {
    let mut bed = Bed::new();
    bed.apply(BOARD);
    bed.apply(POLICY);
    bed.settle();
    bed.apply(&trigger("dog", "one"));
    bed.settle();
    bed.apply(&BOARD.replace("is: there", "is: empty"));
    bed.apply(&trigger("dog", "one"));
    while bed.pump() || bed.controller.step(bed.now) == crate::Step::Worked {}
    assert_eq!(mark(&bed, "dog").as_deref(), Some("one"));
}
