//! What is refused when a policy is loaded, what is warned of, and what is neither.

mod autogen;
mod bodies;
mod cel_policies;
mod large;
mod policies;
mod selection;
mod variables;

use ephor_engine::compile::compile;
use ephor_engine::diagnostic::Diagnostic;
use ephor_expr::Value;

use crate::support::{policy, policy_of_rule, value};

/// Findings of a document as `E code path` or `W code path`, those of errors at the start.
fn findings(document: &Value) -> Vec<String> {
    let compiled = compile(document);
    assert_eq!(compiled.program.is_none(), compiled.findings.iter().any(Diagnostic::is_error));
    let mut lines: Vec<String> = compiled
        .findings
        .iter()
        .map(|f| format!("{} {} {}", if f.is_error() { "E" } else { "W" }, f.code, f.path.slashed()))
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Rules with the findings for a policy of each; paths are from the rule, which is `.` itself.
fn check_rules(rows: &[(&str, &[&str])]) {
    for (rule, want) in rows {
        let want: Vec<String> =
            want.iter().map(|line| line.replace(" /", " ./").replace(" .", " /spec/rules/0")).collect();
        assert_eq!(findings(&policy_of_rule(&value(rule))), want, "{rule}");
    }
}

fn check_policies(rows: &[(&str, &[&str])]) {
    for (text, want) in rows {
        assert_eq!(findings(&policy(&value(text))), *want, "{text}");
    }
}

const RULE: &str = "validate: {deny: {}}";
