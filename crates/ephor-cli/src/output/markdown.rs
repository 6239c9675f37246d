//! Results as a Markdown table, for pull requests and job summaries.

use std::fmt::Write as _;

use super::plain;
use crate::apply::Results;

/// The counts and a table of the kept rows.
pub fn render(results: &Results) -> String {
    let tally = &results.tally;
    let mut out = String::from("# Policy results\n\n| Pass | Fail | Warn | Error | Skip |\n|---|---|---|---|---|\n");
    let _ = writeln!(out, "| {} | {} | {} | {} | {} |", tally.pass, tally.fail, tally.warn, tally.error, tally.skip);
    if !results.rows.is_empty() {
        out.push_str("\n| Policy | Rule | Resource | Result | Message |\n|---|---|---|---|---|\n");
    }
    for row in &results.rows {
        let policy = results.policy(row).map_or("", |policy| policy.key.as_str());
        let cells = [policy, &row.rule, &row.subject.to_string(), row.verdict.as_str(), &row.message].map(cell);
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if !results.refused.is_empty() {
        out.push_str("\nPolicies skipped:\n\n");
        for policy in &results.refused {
            let _ = writeln!(out, "- {}: {}", cell(&policy.name), cell(&policy.reason));
        }
    }
    out
}

/// Text that stays in its cell and says nothing in Markdown or HTML.
pub(super) fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain::text(text).chars() {
        match c {
            '\n' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
