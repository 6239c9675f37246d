//! `ephor check` places faults of CEL expressions inside the YAML scalars that hold them.

use std::process::Command;

use tempfile::TempDir;

const POLICY: &str = r#"apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  background: false
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Secret]}}]}
    celPreconditions:
    - {name: plain, expression: object.a == nope1}
    validate:
      cel:
        expressions:
        - expression: "object.\u0061 == 'é' && nope2"
        - expression: 'object.a == ''b'' && nope3'
        - expression: >-
            object.a == 'b' &&
            nope4
        - expression: |
            object.a == 'b' &&
              nope5
        - expression: object.a
"#;

#[test]
fn faults_are_placed_in_plain_quoted_folded_and_literal_scalars() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("policy.yaml"), POLICY).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_ephor"))
        .args(["check", "policy.yaml", "--output-format", "concise", "--quiet"])
        .current_dir(directory.path())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let places: Vec<&str> = text.lines().filter(|line| line.contains("policy.yaml:")).collect();
    let undeclared = |name: &str| {
        let (before, _) = POLICY.split_once(name).unwrap();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
        (format!("policy.yaml:{line}:{column}:"), format!("undeclared reference to '{name}' (in container '')"))
    };
    for name in ["nope1", "nope2", "nope3", "nope4", "nope5"] {
        let (place, message) = undeclared(name);
        let found = places.iter().any(|line| line.starts_with(&place) && line.contains(&message));
        assert!(found, "{place} {message}\n{text}");
    }
    assert!(text.contains("must evaluate to bool but got dyn"), "{text}");
    assert_eq!(places.len(), 6, "{text}");
}
