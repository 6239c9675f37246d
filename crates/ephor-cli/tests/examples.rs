//! The commands that the README shows, on the project's own examples.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn ephor(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_ephor")).args(arguments).current_dir(root).output().expect("the binary runs")
}

/// Runs with `input` as standard input.
fn ephor_reads(arguments: &[&str], input: &[u8]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ephor"));
    command.args(arguments).current_dir(root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    // A command that reads nothing may be gone already.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input));
    child.wait_with_output().expect("the binary ends")
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

/// The commands of the README with what it shows of their output: a line `…` stands for any number of lines.
#[test]
fn the_readme_shows_what_the_commands_print() {
    let readme = include_str!("../../../README.md");
    let blocks = readme.split("```").skip(1).step_by(2).filter_map(|block| block.trim_start().strip_prefix("$ ephor "));
    let mut commands = 0;
    for block in blocks {
        let (command, shown) = block.split_once('\n').unwrap();
        let piped =
            command.split(" | ephor ").fold(Vec::new(), |input, command| ephor_reads(&words(command), &input).stdout);
        let told = steady(&text(&piped));
        let mut rest = told.as_str();
        for part in steady(shown).split("…\n").map(str::trim).filter(|part| !part.is_empty()) {
            let at = rest.find(part).unwrap_or_else(|| panic!("`ephor {command}` does not print\n{part}\nbut\n{rest}"));
            rest = &rest[at + part.len()..];
        }
        commands += 1;
    }
    assert_eq!(commands, 9);
}

/// The words of a command, the last of which may be in single quotes.
fn words(command: &str) -> Vec<&str> {
    let (plain, quoted) = command.split_once('\'').map_or((command, None), |(plain, rest)| (plain, Some(rest)));
    plain.split_whitespace().chain(quoted.map(|rest| rest.trim_end_matches('\''))).collect()
}

/// Text without what differs from run to run: ports, durations, spaces at the ends of lines.
fn steady(text: &str) -> String {
    let line = |line: &str| {
        let line = line.split("127.0.0.1:").next().unwrap_or_default();
        let line = if line.ends_with("s after the start.") { line.split(',').next().unwrap_or_default() } else { line };
        format!("{}\n", line.trim_end())
    };
    text.lines().map(line).collect()
}

#[test]
fn the_tour_of_the_sandbox_comes_out_as_promised() {
    let output = ephor(&["sandbox", "examples/policies", "--resources", "examples/workloads.yaml", "--tour"]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));
    assert!(told.contains("\nEvery step behaved as expected, "), "{told}");
}

#[test]
fn a_tour_without_its_policies_breaks_its_promises() {
    let output = ephor(&["sandbox", "examples/policies/namespace-defaults.yaml", "--tour"]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}{}", text(&output.stderr));
    assert!(told.contains("pod/web created\nexpected: the policy allowed-registries to refuse this\n"), "{told}");
    assert!(told.contains("\nNot every step behaved as expected, "), "{told}");
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
