//! `ephor cel`: values, types, costs and functions, and where expressions are wrong.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

fn ephor(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_ephor"))
        .arg("cel")
        .args(arguments)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    format!("$ ephor cel {}\n{text}[{}]\n", arguments.join(" "), output.status.code().unwrap_or(-1))
}

#[test]
fn expressions_are_evaluated_checked_and_priced() {
    let directory = TempDir::new().unwrap();
    let pod = "metadata: {name: web}\nspec:\n  containers:\n  - {name: a, image: nginx}\n";
    std::fs::write(directory.path().join("pod.yaml"), pod).unwrap();
    std::fs::write(directory.path().join("rule.cel"), "object.spec.containers\n  .all(c, c.imag == nginx)\n").unwrap();
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: own}\ndata: {key: value}\n";
    std::fs::write(directory.path().join("config.yaml"), config).unwrap();
    let mut told = String::new();
    let runs: [&[&str]; 17] = [
        &["eval", "-f", "pod.yaml", "object.spec.containers.map(c, c.image)"],
        &["eval", "-i", "pod.yaml", "--var", "params={limit: 1}", "object.spec.containers.size() <= params.limit"],
        &["eval", "--var", "limit=3", "limit + 1", "duration('90s')", "bytes('a\\n')", "optional.none()"],
        &["eval", "-p", "vpol", "image('nginx').registry()"],
        &["eval", "-p", "vpol", "-r", "config.yaml", "resource.Get('v1', 'configmaps', 'own', 'c').data"],
        &["eval", "-p", "nvpol", "-n", "own", "-r", "config.yaml", "resource.List('v1', 'configmaps').items.size()"],
        &["eval", "-p", "nvpol", "http.Get('http://localhost:1')"],
        &["eval", "-p", "vpol", "http.Get('http://localhost:1')"],
        &["eval", "object.spec"],
        &["eval", "--var", "limit", "1"],
        &["eval", "authorizer.group('').resource('pods').check('get').allowed()"],
        &["check", "object.spec.replicas <= 3", "quantity('1Gi')"],
        &["check", "-q", "rule.cel"],
        &["check", "-p", "webhook", "params.limit == 1"],
        &["cost", "-i", "pod.yaml", "object.metadata.name.matches('^web')"],
        &["functions", "isGreaterThan", "qantity"],
        &["functions", "-p", "match-image", "isImage"],
    ];
    for arguments in runs {
        let _ = writeln!(told, "{}", ephor(directory.path(), arguments));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn every_profile_lists_its_functions() {
    let directory = TempDir::new().unwrap();
    for profile in
        ["vap", "vap-message", "webhook", "map", "vpol", "nvpol", "mpol", "gpol", "dpol", "ivpol", "match-image"]
    {
        let told = ephor(directory.path(), &["functions", "-p", profile]);
        assert!(told.contains("string.startsWith(string) -> bool"), "{profile}: {told}");
        assert_eq!(told.contains("authorization"), profile != "match-image", "{profile}");
    }
}
