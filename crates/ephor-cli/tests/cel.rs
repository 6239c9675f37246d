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
        let plain = ["match-image", "gpol", "dpol"].contains(&profile);
        assert_ne!(told.contains("authorization"), plain, "{profile}");
    }
}

#[test]
fn kinds_of_policies_are_those_of_the_head_of_kyverno_unless_another_version_is_named() {
    let directory = TempDir::new().unwrap();
    let expression = "regex.replace('a', 'a', 'b')";
    let told = ephor(directory.path(), &["eval", "-p", "vpol", expression]);
    assert!(told.contains("\nb\n[0]") || told.contains("\n\"b\"\n[0]"), "{told}");
    let told = ephor(directory.path(), &["check", "-p", "vpol", "--kyverno", "1.18", expression]);
    assert!(told.contains("undeclared reference to 'regex'") && told.ends_with("[2]\n"), "{told}");
}
