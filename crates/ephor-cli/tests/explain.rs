//! `ephor explain` for requests that files alone do not tell.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const POLICY: &str = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owner, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  background: false
  rules:
  - name: known
    match: {any: [{resources: {kinds: [Pod], operations: [UPDATE]}}]}
    context: [{name: owners, configMap: {name: c, namespace: d}}]
    validate:
      message: 'the owner is {{ owners.data.name }}'
      deny: {conditions: {any: [{key: '{{ owners.data.name }}', operator: Equals, value: ann}]}}
  - name: status
    match: {any: [{resources: {kinds: [Pod/status]}}]}
    validate: {message: no statuses, deny: {}}
";

const VALUES: &str = "{apiVersion: cli.kyverno.io/v1alpha1, kind: Values, globalValues: {request.operation: UPDATE},
policies: [{name: owner, rules: [{name: known, values: {owners.data.name: ann}}]}]}";

fn explain(directory: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ephor"))
        .args(["explain", "policy.yaml", "pod.yaml"])
        .args(words)
        .current_dir(directory)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn values_operation_and_subresource_make_the_request() {
    let directory = TempDir::new().unwrap();
    for (name, text) in [
        ("policy.yaml", POLICY),
        ("values.yaml", VALUES),
        ("pod.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: p}}"),
    ] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let (code, text) = explain(directory.path(), &["--values", "values.yaml"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("Pod default/p UPDATE\n") && text.contains("the owner is ann"), "{text}");
    // What the command line says counts more than the values.
    let (code, text) = explain(directory.path(), &["--values", "values.yaml", "--operation", "create"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("Pod default/p CREATE\n"), "{text}");
    let (code, text) = explain(directory.path(), &["--subresource", "status", "--operation", "UPDATE"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("Pod/status default/p UPDATE\n") && text.contains("no statuses"), "{text}");
    let (code, text) = explain(directory.path(), &["--subresource", "stauts"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("pods have no subresource `stauts`; known: "), "{text}");
}

#[test]
fn a_rule_that_looks_at_the_user_asks_for_one() {
    let directory = TempDir::new().unwrap();
    let policy = |body: &str| {
        format!(
            "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{background: false, rules: [{{name: r, {body}}}]}}}}"
        )
    };
    for (name, text) in
        [("pod.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: p}}"), ("user.yaml", "{userInfo: {username: ann}}")]
    {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let exec = "match: {any: [{resources: {kinds: [Pod/exec]}}]}";
    for (body, asks) in [
        (
            format!(
                "{exec}, exclude: {{any: [{{clusterRoles: [cluster-admin]}}]}}, validate: {{message: no exec, deny: {{}}}}"
            ),
            true,
        ),
        (format!("{exec}, validate: {{message: 'not {{{{ request.userInfo.username }}}}', deny: {{}}}}"), true),
        (format!("{exec}, validate: {{message: no exec, deny: {{}}}}"), false),
    ] {
        std::fs::write(directory.path().join("policy.yaml"), policy(&body)).unwrap();
        let words = ["--operation", "CONNECT", "--subresource", "exec"];
        let (_, text) = explain(directory.path(), &words);
        assert_eq!(text.contains("name one with `--userinfo FILE`"), asks, "{text}");
        let (_, text) = explain(directory.path(), &[&words[..], &["--userinfo", "user.yaml"]].concat());
        assert!(!text.contains("--userinfo"), "{text}");
    }
}

#[test]
fn a_subresource_and_its_name_are_part_of_the_request() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("pod.yaml"), "{apiVersion: v1, kind: Pod, metadata: {name: p}}").unwrap();
    let policy = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {background: false, rules: [{name: r, match: \
                  {any: [{resources: {kinds: [Pod/exec]}}]}, validate: {message: denied, deny: {conditions: {all: [{key: \
                  '{{ request.name }}/{{ request.subResource }}', operator: Equals, value: p/exec}]}}}}]}}";
    std::fs::write(directory.path().join("policy.yaml"), policy).unwrap();
    let (code, text) = explain(directory.path(), &["--operation", "CONNECT", "--subresource", "exec"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(!text.contains("Unknown key"), "{text}");
}

const CEL: &str = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: c, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  background: false
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    celPreconditions: [{name: a, expression: has(object.metadata.name)}]
    validate:
      cel:
        variables: [{name: count, expression: object.spec.containers.size()}]
        expressions: [{expression: 'variables.count < 1 || !object.spec.containers.all(c, has(c.image))', message: too many}]
";

#[test]
fn expressions_of_cel_are_shown_with_their_values() {
    let directory = TempDir::new().unwrap();
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: i}]}}";
    for (name, text) in [("policy.yaml", CEL), ("pod.yaml", pod)] {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let (code, text) = explain(directory.path(), &[]);
    assert_eq!(code, Some(1), "{text}");
    for step in [
        "celPreconditions[0].expression: `has(object.metadata.name)` = true",
        "validate.cel.variables[0].expression: `object.spec.containers.size()` = 1",
        "validate.cel.expressions[0].expression: `variables.count < 1 || !object.spec.containers.all(c, has(c.image))` = false",
        "           `variables.count < 1` = false\n",
        "             `variables.count` = 1\n",
        "           `!object.spec.containers.all(c, has(c.image))` = false\n",
        "             `object.spec.containers.all(c, has(c.image))` = true\n",
        "                 `has(c.image)` = true\n",
        "too many",
    ] {
        assert!(text.contains(step), "{step}:\n{text}");
    }
}
