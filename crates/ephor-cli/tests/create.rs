//! What `ephor create` writes, `ephor test` and `ephor check` take.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

fn ephor(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ephor")).args(arguments).current_dir(directory).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn created_files_make_a_test_that_runs() {
    let directory = TempDir::new().unwrap();
    let here = directory.path();
    std::fs::write(
        here.join("policy.yaml"),
        "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  background: false
  rules:
  - name: by-user
    match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: molly}]}]}
    validate:
      message: not in dev
      deny: {conditions: {any: [{key: '{{ request.operation }}', operator: Equals, value: UPDATE}]}}
",
    )
    .unwrap();
    std::fs::write(here.join("pod.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: team}\n")
        .unwrap();
    for arguments in [
        &["values", "-g", "request.operation=UPDATE", "-o", "values.yaml"][..],
        &["user-info", "-u", "molly", "-g", "dev", "-o", "user.yaml"],
        &[
            "test",
            "-p",
            "policy.yaml",
            "-r",
            "pod.yaml",
            "-f",
            "values.yaml",
            "--fail",
            "p,by-user,web,team,Pod",
            "-o",
            "kyverno-test.yaml",
        ],
        &["exception", "e", "--policy-rules", "p,by-user", "--any", "kind=Pod,name=w*", "-o", "exception.yaml"],
    ] {
        let (code, output) = ephor(here, &[&["create"], arguments].concat());
        assert_eq!((code, output.as_str()), (Some(0), ""), "{arguments:?}");
    }
    // The user is not among the arguments of `create test`.
    let test = here.join("kyverno-test.yaml");
    std::fs::write(&test, std::fs::read_to_string(&test).unwrap() + "userinfo: user.yaml\n").unwrap();
    let (code, output) = ephor(here, &["test", "."]);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("1 tests passed and 0 tests failed"), "{output}");
    let (code, output) = ephor(here, &["check", "policy.yaml", "exception.yaml", "--strict"]);
    assert_eq!(code, Some(0), "{output}");
}
