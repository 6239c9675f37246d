//! `ephor install`: manifests on standard output, what is to be said about the values on standard error.

use std::path::Path;
use std::process::{Command, Output};

const FROM_KYVERNO: &str = "../../charts/ephor/examples/from-kyverno.yaml";

fn install(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ephor"))
        .args(["install", "--print"])
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_values_file_of_kyvernos_chart_is_taken_without_a_warning() {
    let output = install(&["-f", FROM_KYVERNO]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stderr);
    assert!(said.lines().all(|line| line.starts_with("note: ") && line.ends_with("; ignored")), "{said}");
    assert!(said.contains("note: global.resyncPeriod: Ephor watches and needs no resync; ignored\n"), "{said}");
    assert!(text(&output.stdout).starts_with("---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: policies\n"));
}

#[test]
fn values_that_the_chart_does_not_have_are_refused_together() {
    let output =
        install(&["--set", "admissionController.replics=3,backgroundController.dnsPolicy=Any,crds.instal=true"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""));
    let said = text(&output.stderr);
    for fault in [
        "the chart has no value `admissionController.replics` (did you mean `replicas`?)",
        "the chart has no value `crds.instal` (did you mean `install`?)",
        "`backgroundController.dnsPolicy` is `\"Any\"`: expected \"ClusterFirst\" or \"ClusterFirstWithHostNet\" or",
    ] {
        assert!(said.contains(fault), "{fault}\n{said}");
    }
}
