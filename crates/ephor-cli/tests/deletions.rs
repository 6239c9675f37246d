//! `ephor plan --deletions`: what would be deleted, and when.

use std::process::Command;

use tempfile::TempDir;

const POLICIES: &str = "apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: temporary}
spec:
  schedule: '0 0 1 1 *'
  match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {temporary: 'yes'}}}}]}
---
apiVersion: policies.kyverno.io/v1
kind: NamespacedDeletingPolicy
metadata: {name: at-home, namespace: shop, annotations: {ephor.dev/cleanup-limit: '1'}}
spec:
  schedule: '0 0 1 1 * 2099'
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods]}]}
";

const OBJECTS: &str = "apiVersion: v1
kind: Pod
metadata: {name: one, namespace: shop, labels: {temporary: 'yes'}}
---
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: shop}
---
apiVersion: v1
kind: Pod
metadata: {name: three, namespace: other, labels: {cleanup.kyverno.io/ttl: '2098-01-01'}, creationTimestamp: '2026-01-01T00:00:00Z'}
---
apiVersion: v1
kind: Pod
metadata: {name: past, namespace: other, labels: {cleanup.kyverno.io/ttl: 1h}, creationTimestamp: '2026-01-01T00:00:00Z'}
";

#[test]
fn what_would_be_deleted_is_told_with_its_times() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("policies.yaml"), POLICIES).unwrap();
    std::fs::write(directory.path().join("objects.yaml"), OBJECTS).unwrap();
    let run = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_ephor"))
            .args(["plan", "--deletions", "policies.yaml"])
            .args(more)
            .current_dir(directory.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let objects = ["--resource", "objects.yaml", "--times", "0"];
    let (code, said) = run(&objects);
    insta::assert_snapshot!(said, @r"
    ClusterCleanupPolicy temporary
      now: 1 object
        Pod shop/one
    NamespacedDeletingPolicy shop/at-home
      now: 2 objects (none goes: more than 1, its ephor.dev/cleanup-limit)
        Pod shop/one
        Pod shop/two
    label cleanup.kyverno.io/ttl
      now: Pod other/past
      2098-01-01T00:00:00Z: Pod other/three
    ");
    assert_eq!(code, Some(0));
    assert_eq!(run(&[&objects[..], &["--exit-code"]].concat()).0, Some(1));
    let (code, said) = run(&[]);
    assert!(said.contains("-01-01T00:00:00Z: 0 objects") && said.contains("2099-01-01T00:00:00Z: 0 objects"), "{said}");
    assert_eq!(code, Some(0));
}
