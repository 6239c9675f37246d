//! `ephor check --fix` keeps what policies do.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Every old spelling that is rewritten, in the two ways of writing YAML.
const POLICIES: &str = "apiVersion: kyverno.io/v2beta1
kind: ClusterPolicy
metadata:
  name: block # the first
spec:
  validationFailureAction: enforce
  validationFailureActionOverrides:
  - action: audit
    namespaces: [lenient]
  failurePolicy: Ignore
  background: false
  rules:
  - name: no-host-network
    match:
      resources:
        kinds: [Pod]
    exclude:
      resources:
        namespaces:
        - free
    preconditions:
    - key: '{{ request.operation }}'
      operator: NotEqual
      value: DELETE
    validate:
      message: no host network
      pattern: {spec: {=(hostNetwork): false}}
  - name: owner
    match:
      resources:
        kinds:
        - ConfigMap
        name: 'c*'
    validate:
      message: an owner is needed
      deny:
        conditions:
          all:
          - {key: '{{ request.object.metadata.labels.owner || `null` }}', operator: NotEqual, value: alice}
          - {key: \"{{ request.object.metadata.labels.owner || '' }}\", operator: Equal, value: ''}
---
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: flow}, spec: {
  validationFailureAction: audit, schemaValidation: false, rules: [
  {name: app, match: {resources: {kinds: [Pod], name: 'a*'}}, validate: {pattern: {metadata: {labels: {app: '?*'}}}}}]}}
";

const RESOURCES: &str = "apiVersion: v1
kind: Pod
metadata: {name: a, namespace: strict, labels: {app: x}}
spec: {hostNetwork: true}
---
apiVersion: v1
kind: Pod
metadata: {name: ab, namespace: lenient}
spec: {hostNetwork: true}
---
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: free}
spec: {hostNetwork: true}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: strict}
spec: {template: {spec: {hostNetwork: true}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: j, namespace: free}
spec: {jobTemplate: {spec: {template: {spec: {hostNetwork: true}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c1, namespace: strict}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c2, namespace: strict, labels: {owner: alice}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: strict}
";

fn ephor(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ephor"))
        .args(arguments)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn fixed_policies_judge_as_before() {
    let directory = TempDir::new().unwrap();
    let policies = directory.path().join("policies.yaml");
    std::fs::write(&policies, POLICIES).unwrap();
    std::fs::write(directory.path().join("resources.yaml"), RESOURCES).unwrap();
    // Violations under Audit become warnings, so that the actions show.
    let judge = || ephor(directory.path(), &["apply", "policies.yaml", "-r", "resources.yaml", "--audit-warn", "-t"]);
    let before = judge();
    assert_eq!(before.0, Some(1), "{}", before.1);
    assert!(before.1.contains("no-host-network"), "{}", before.1);

    let check = |more: &[&str]| ephor(directory.path(), &[&["check", "policies.yaml"], more].concat());
    let (code, diff) = check(&["--diff"]);
    assert_eq!(code, Some(1));
    assert!(diff.starts_with("--- a/policies.yaml\n+++ b/policies.yaml\n"), "{diff}");
    assert_eq!(std::fs::read_to_string(&policies).unwrap(), POLICIES);
    assert_eq!(check(&["--strict", "--quiet"]).0, Some(1));

    let (code, found) = check(&["--fix", "--strict", "--quiet"]);
    assert_eq!((code, found.as_str()), (Some(0), ""));
    let fixed = std::fs::read_to_string(&policies).unwrap();
    assert_ne!(fixed, POLICIES);
    insta::assert_snapshot!(fixed);
    assert_eq!(judge(), before);

    assert_eq!(check(&["--diff"]), (Some(0), String::new()));
}

#[test]
fn a_file_behind_a_linked_directory_is_not_rewritten() {
    let directory = TempDir::new().unwrap();
    let outside = TempDir::new().unwrap();
    let precious = outside.path().join("a.yaml");
    std::fs::write(&precious, POLICIES).unwrap();
    std::fs::create_dir(directory.path().join("x")).unwrap();
    std::os::unix::fs::symlink(outside.path(), directory.path().join("x/sub")).unwrap();
    let absolute = directory.path().join("x/sub").to_string_lossy().into_owned();
    for argument in ["x/sub", "x/sub/a.yaml", "x/*/*.yaml", "x/sub/../sub/a.yaml", absolute.as_str()] {
        assert_eq!(ephor(directory.path(), &["check", "--fix", argument]).0, Some(2), "{argument}");
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), POLICIES, "{argument}");
    }
}

#[test]
fn a_file_behind_a_link_is_not_rewritten() {
    let directory = TempDir::new().unwrap();
    let outside = TempDir::new().unwrap();
    let precious = outside.path().join("precious.yaml");
    std::fs::write(&precious, POLICIES).unwrap();
    std::os::unix::fs::symlink(&precious, directory.path().join("a.yaml")).unwrap();
    std::fs::write(directory.path().join("b.yaml"), POLICIES).unwrap();
    assert_eq!(ephor(directory.path(), &["check", "--fix", "."]).0, Some(2));
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), POLICIES);
    assert_ne!(std::fs::read_to_string(directory.path().join("b.yaml")).unwrap(), POLICIES);
}
