//! A Policy of `team-a` that tries to write beyond its namespace, through the whole running server.

use ephor_cluster::{Cluster as _, ClusterError, DeleteOptions, ListQuery, WriteOptions};
use ephor_expr::{Value, yaml};
use ephor_kube::KubeCluster;

use crate::process::{Sandbox, eventually};

fn create(cluster: &KubeCluster, text: &str) -> Result<Value, ClusterError> {
    let object = yaml::parse_value(text).expect("YAML");
    let part = |key: &str| object.str_at(&[key]).expect("a text").to_owned();
    let resource = cluster.resolve(&part("apiVersion"), &part("kind"))?;
    cluster.create(&resource, object, &WriteOptions::default())
}

fn config_map(namespace: &str, name: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {namespace}}}, data: {{k: v}}}}")
}

fn policy(name: &str, trigger: &str, rule: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: Policy, metadata: {{name: {name}, namespace: team-a}}, spec: {{rules: [{{
           name: r, match: {{any: [{{resources: {{kinds: [ConfigMap], names: [{trigger}]}}}}]}}, {rule}}}]}}}}"
    )
}

fn json_patch(operations: &str) -> String {
    format!(
        "mutate: {{targets: [{{apiVersion: v1, kind: ConfigMap, name: mine, namespace: team-a}}], \
         patchesJson6902: '[{operations}]'}}"
    )
}

fn replace(path: &str, value: &str) -> String {
    format!(r#"{{"op": "replace", "path": "{path}", "value": "{value}"}}"#)
}

/// A sandbox with the objects of two teams.
fn world() -> (Sandbox, KubeCluster) {
    let sandbox = Sandbox::start(&[]);
    let cluster = sandbox.cluster();
    for team in ["team-a", "team-b"] {
        let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {team}}}}}");
        create(&cluster, &namespace).expect("a namespace");
    }
    for (namespace, name) in [("team-a", "mine"), ("team-a", "done"), ("team-b", "theirs")] {
        create(&cluster, &config_map(namespace, name)).expect("a map");
    }
    (sandbox, cluster)
}

#[test]
fn what_a_policy_patches_is_what_it_selected() {
    let (_sandbox, cluster) = world();
    let unbound = r#"{"op": "remove", "path": "/metadata/uid"}, {"op": "remove", "path": "/metadata/resourceVersion"}"#;
    let theirs = format!("{}, {}", replace("/metadata/namespace", "team-b"), replace("/metadata/name", "theirs"));
    let settings = format!("{}, {}", replace("/metadata/namespace", "kyverno"), replace("/metadata/name", "kyverno"));
    let binding = format!("{}, {}", replace("/kind", "RoleBinding"), replace("/data/k", "taken"));
    let attacks = [
        format!("{theirs}, {unbound}, {}", replace("/data/k", "taken")),
        format!("{settings}, {unbound}"),
        format!("{binding}, {theirs}, {unbound}"),
        format!("{}, {}", replace("/metadata/name", "other"), replace("/data/k", "taken")),
    ];
    for (i, operations) in attacks.iter().enumerate() {
        create(&cluster, &policy(&format!("attack-{i}"), "trigger", &json_patch(operations))).expect("a policy");
    }
    // A policy sees requests from when it is ready.
    let policies = cluster.resolve("kyverno.io/v1", "Policy").expect("a kind");
    eventually("all policies are ready", || {
        let found = cluster.list(&policies, &ListQuery::all()).ok()?.items;
        let ready = |policy: &&Value| {
            let conditions = policy.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
            let holds = |c: &Value| c.str_at(&["type"]) == Some("Ready") && c.str_at(&["status"]) == Some("True");
            conditions.iter().any(holds)
        };
        (found.iter().filter(ready).count() == attacks.len()).then_some(())
    });
    let maps = cluster.resolve("v1", "ConfigMap").expect("a kind");
    let before = cluster.get(&maps, Some("team-b"), "theirs").expect("a map");
    create(&cluster, &config_map("team-a", "trigger")).expect("a trigger");
    let requests = cluster.resolve("kyverno.io/v2", "UpdateRequest").expect("a kind");
    eventually("all of them fail", || {
        let found = cluster.list(&requests, &ListQuery::all()).ok()?.items;
        let failed = |request: &&Value| {
            let message = request.str_at(&["status", "message"]).unwrap_or_default();
            message.contains("would make it another object")
        };
        (found.iter().filter(failed).count() == attacks.len()).then_some(())
    });
    assert_eq!(cluster.get(&maps, Some("team-b"), "theirs").expect("a map"), before);
    assert!(cluster.get(&maps, Some("team-a"), "other").is_err());
    let mine = cluster.get(&maps, Some("team-a"), "mine").expect("a map");
    assert_eq!(mine.str_at(&["data", "k"]), Some("v"), "a patch comes as a whole or not at all");
}

#[test]
fn targets_beyond_the_namespace_are_refused_with_the_policy() {
    let (_sandbox, cluster) = world();
    let patch = "patchStrategicMerge: {metadata: {labels: {taken: 'yes'}}}";
    for (rule, why) in [
        (
            format!(
                "mutate: {{targets: [{{apiVersion: v1, kind: '{{{{ request.object.data.k }}}}', name: x}}], {patch}}}"
            ),
            "without variables",
        ),
        (
            format!("mutate: {{targets: [{{apiVersion: '*', kind: Namespace, name: team-b}}], {patch}}}"),
            "without wildcards",
        ),
        (format!("mutate: {{targets: [{{apiVersion: v1, kind: Namespace, name: team-b}}], {patch}}}"), "own namespace"),
        (
            "generate: {apiVersion: v1, kind: Secret, name: x, namespace: '{{ request.object.data.k }}', data: {}}"
                .to_owned(),
            "own namespace",
        ),
        (
            "generate: {namespace: team-a, cloneList: {namespace: team-b, kinds: [v1/Secret]}}".to_owned(),
            "own namespace",
        ),
    ] {
        let refused = create(&cluster, &policy("p", "trigger", &rule)).expect_err(&rule);
        assert!(refused.to_string().contains(why), "{rule}: {refused}");
    }
}

#[test]
fn a_mutation_at_admission_cannot_move_its_object() {
    let (_sandbox, cluster) = world();
    let moved = "mutate: {patchStrategicMerge: {metadata: {namespace: team-b}}}";
    create(&cluster, &policy("moves", "moved", moved)).expect("a policy");
    let turned = "mutate: {patchesJson6902: '[{\"op\": \"replace\", \"path\": \"/kind\", \"value\": \"Secret\"}]'}";
    create(&cluster, &policy("turns", "turned", turned)).expect("a policy");
    let maps = cluster.resolve("v1", "ConfigMap").expect("a kind");
    for name in ["moved", "turned"] {
        eventually("the mutation is refused", || {
            let stored = create(&cluster, &config_map("team-a", name));
            if stored.is_ok() {
                // The policy is not in force yet.
                cluster.delete(&maps, Some("team-a"), name, &DeleteOptions::default()).ok()?;
            }
            stored.err()
        });
        assert!(cluster.get(&maps, Some("team-b"), name).is_err());
    }
}
