//! `DeletingPolicy` on the command line: what would be deleted, and what is wrong with a policy.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const POLICY: &str = "apiVersion: policies.kyverno.io/v1
kind: DeletingPolicy
metadata: {name: sweep}
spec:
  schedule: '0 3 * * *'
  deletionPropagationPolicy: Foreground
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [pods]}
  variables:
  - {name: labels, expression: 'object.metadata.?labels.orValue({})'}
  conditions:
  - {name: temporary, expression: variables.labels.temporary == 'yes'}
";

const POLICY_OF_NAMESPACE: &str = "---
apiVersion: policies.kyverno.io/v1beta1
kind: NamespacedDeletingPolicy
metadata: {name: at-home, namespace: shop}
spec:
  schedule: '@hourly'
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods]}]}
";

/// A mutation that would hide from the policy what it looks for.
const MUTATION: &str = "---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: relabel, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {temporary: changed}}}}
";

const OBJECTS: &str = "
{apiVersion: v1, kind: Pod, metadata: {name: old, namespace: shop, labels: {temporary: 'yes'}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: kept, labels: {temporary: 'no'}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: other, labels: {temporary: 'yes'}}}
";

fn run(directory: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ephor"))
        .args(words)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn files(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn suite(results: &str) -> String {
    format!(
        "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\npolicies: [policy.yaml]\nresources: [objects.yaml]\n\
         results:\n{results}"
    )
}

#[test]
fn apply_tells_what_would_go() {
    let directory = files(&[("policy.yaml", &format!("{POLICY}{POLICY_OF_NAMESPACE}")), ("objects.yaml", OBJECTS)]);
    let (code, text) =
        run(directory.path(), &["apply", "policy.yaml", "-r", "objects.yaml", "--table", "--detailed-results"]);
    // An object that stays is a failure, as upstream counts.
    assert_eq!(code, Some(1), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("Pod/") || line.contains("Secret/")).collect();
    let row = |policy: &str, object: &str| {
        let found = rows.iter().find(|row| row.contains(policy) && row.contains(object));
        found.map_or("", |row| if row.contains("Pass") { "pass" } else { "fail" })
    };
    assert_eq!(row("sweep", "shop/Pod/old"), "pass", "{text}");
    assert_eq!(row("sweep", "default/Pod/kept"), "fail", "{text}");
    assert_eq!(row("at-home", "shop/Pod/old"), "pass", "{text}");
    assert_eq!(rows.len(), 3, "{text}");
    assert!(text.contains("resource matched") && text.contains("resource did not match"), "{text}");
}

#[test]
fn suites_judge_what_is_stored() {
    let results = "- {policy: sweep, kind: Pod, isDeletingPolicy: true, resources: [old], result: pass}\n\
                   - {policy: sweep, kind: Pod, isDeletingPolicy: true, resources: [kept], result: fail}\n\
                   - {policy: sweep, kind: Secret, resources: [other], result: skip}\n\
                   - {policy: relabel, rule: r, kind: Pod, resources: [old], result: pass}\n";
    let policies = format!("{POLICY}{MUTATION}");
    let directory =
        files(&[("policy.yaml", &policies), ("objects.yaml", OBJECTS), ("kyverno-test.yaml", &suite(results))]);
    let (code, text) = run(directory.path(), &["test", "."]);
    assert_eq!(code, Some(0), "{text}");
    // No operation is under way when an object is deleted on a schedule.
    let results = "- {policy: sweep, kind: Pod, resources: [old], operation: DELETE, result: pass}\n";
    let directory =
        files(&[("policy.yaml", POLICY), ("objects.yaml", OBJECTS), ("kyverno-test.yaml", &suite(results))]);
    let (code, text) = run(directory.path(), &["test", "."]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("kyverno-test.yaml:6:59") && text.contains("whatever the operation"), "{text}");
}

#[test]
fn faults_have_their_places() {
    let wrong = POLICY
        .replace("0 3 * * *", "0 25 * * *")
        .replace("  variables:", "  matchConditions: []\n  variables:")
        .replace("== 'yes'}", "== none}");
    let directory = files(&[("policy.yaml", &wrong), ("fine.yaml", POLICY)]);
    let check = |name: &str| run(directory.path(), &["check", name, "--output-format", "concise", "--quiet"]);
    let (code, text) = check("policy.yaml");
    assert_eq!(code, Some(1), "{text}");
    for (part, words) in [
        ("'0 25", "`25` is no hour: expected 0 to 23"),
        ("matchConditions", "unknown field `matchConditions`"),
        ("none}", "undeclared reference to 'none'"),
    ] {
        let (before, _) = wrong.split_once(part).unwrap();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
        let place = format!("policy.yaml:{line}:{column}:");
        assert!(
            text.lines().any(|found| found.starts_with(&place) && found.contains(words)),
            "{place} {words}\n{text}"
        );
    }
    assert_eq!(check("fine.yaml"), (Some(0), String::new()));
}

#[test]
fn explain_shows_the_conditions() {
    let pod = OBJECTS.split("---").next().unwrap();
    let directory = files(&[("policy.yaml", POLICY), ("pod.yaml", pod)]);
    let (code, text) = run(directory.path(), &["explain", "policy.yaml", "pod.yaml", "--operation", "delete"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("conditions[0].expression") && text.contains("resource matched"), "{text}");
}
