//! The commands that the README shows, on the project's own examples.

use std::path::Path;
use std::process::{Command, Output};

fn ephor(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_ephor")).args(arguments).current_dir(root).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_example_workloads_break_six_rules() {
    let with_exception = ["--resource", "examples/workloads.yaml", "--exception", "examples/exceptions.yaml"];
    let output = ephor(&[&["apply", "examples/policies"], &with_exception[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.ends_with("\npass: 19, fail: 6, warn: 0, error: 0, skip: 1 \n"), "{told}");
}

#[test]
fn the_tour_of_the_sandbox_comes_out_as_promised() {
    let output = ephor(&["sandbox", "examples/policies", "--resources", "examples/workloads.yaml", "--tour"]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));
    assert!(told.contains("\nAll came out as promised, "), "{told}");
}

#[test]
fn a_tour_without_its_policies_breaks_its_promises() {
    let output = ephor(&["sandbox", "examples/policies/namespace-defaults.yaml", "--tour"]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}{}", text(&output.stderr));
    assert!(told.contains("pod/web created\nexpected: the policy allowed-registries to refuse this\n"), "{told}");
    assert!(told.contains("\nNot all came out as promised, "), "{told}");
}

#[test]
fn the_example_suite_passes() {
    let output = ephor(&["test", "examples/tests"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("Test Summary: 10 tests passed and 0 tests failed"));
}

#[test]
fn the_example_policies_have_no_findings() {
    let output = ephor(&["check", "--strict", "examples/policies"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn the_broken_policy_is_refused_with_the_right_words() {
    let output = ephor(&["check", "examples/broken"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stdout);
    for word in ["require-team-label.yaml:14:9", "did you mean `message`?", "did you mean `to_upper`?"] {
        assert!(told.contains(word), "{told}");
    }
}
