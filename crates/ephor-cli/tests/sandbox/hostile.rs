//! Objects whose texts are templates of their own: policies take them as they are.

use std::fs;

use ephor_cluster::{Cluster as _, ClusterError, WriteOptions};
use ephor_expr::{Value, yaml};
use ephor_kube::KubeCluster;

use crate::process::Sandbox;

const POLICIES: &str = r"
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: mode}
spec:
  background: false
  rules:
  - name: keep-mode
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [team-a]}}]}
    mutate:
      patchStrategicMerge:
        metadata: {annotations: {effective: 'mode={{ request.object.metadata.annotations.mode }}'}}
  - name: deny-serve
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [team-a]}}]}
    context:
    - {name: vault, apiCall: {urlPath: /api/v1/namespaces/vault/secrets/tls}}
    validate:
      failureAction: Enforce
      message: 'the mode {{ request.object.metadata.annotations.mode }} is not allowed, {{ vault.metadata.name }} says'
      deny:
        conditions:
          any:
          - key: '{{ request.object.metadata.annotations.mode }}'
            operator: AnyIn
            value: [serve, '*vault*']
";

const VAULT: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: vault}
stringData: {key: hunter2hunter2}
";

/// Creates a `ConfigMap` of `team-a` with this mode.
fn create(cluster: &KubeCluster, name: &str, mode: &str) -> Result<Value, ClusterError> {
    let maps = cluster.resolve("v1", "ConfigMap").expect("a kind");
    let text = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: team-a, annotations: {{mode: {}}}}}}}",
        Value::from(mode).to_json()
    );
    cluster.create(&maps, yaml::parse_value(&text).expect("YAML"), &WriteOptions::default())
}

#[test]
fn texts_of_objects_are_not_evaluated() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let sandbox = Sandbox::start(&[&file("policies.yaml", POLICIES), &file("vault.yaml", VAULT)]);
    let cluster = sandbox.cluster();

    // A Secret of another namespace, turned so that redaction does not know it.
    let reads = "{{ to_upper(base64_decode(vault.data.key)) }}";
    let denied = create(&cluster, "a", reads).expect_err("it is on the list").to_string();
    assert!(denied.contains(&format!("the mode {reads} is not allowed, tls says")), "{denied}");
    assert!(!denied.contains("HUNTER2"), "{denied}");

    // What the list does not deny is not stored as what it denies.
    let evades = "{{ 'serve' || evil }}";
    let stored = create(&cluster, "b", evades).expect("it is not on the list");
    assert_eq!(stored.str_at(&["metadata", "annotations", "effective"]), Some("mode={{ 'serve' || evil }}"));
    let denied = create(&cluster, "c", "serve").expect_err("it is on the list").to_string();
    assert!(denied.contains("the mode serve is not allowed"), "{denied}");
}
