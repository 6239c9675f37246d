//! Rows as a Markdown table, for pull requests and job summaries.

use std::fmt::Write as _;

use super::{Style, counts, result};
use crate::output::markdown::cell;
use crate::testing::SuiteReport;

/// A table of all rows, and the summary.
pub fn markdown(reports: &[SuiteReport], style: Style) -> String {
    let mut out = String::from("| ID | POLICY | RULE | RESOURCE | RESULT | REASON |");
    out.push_str(if style.detailed {
        " MESSAGE |\n|---|---|---|---|---|---|---|\n"
    } else {
        "\n|---|---|---|---|---|---|\n"
    });
    let shown = reports.iter().flat_map(|report| &report.rows).filter(|row| style.shows(row));
    for (i, row) in shown.enumerate() {
        let reason = row.reason.to_string();
        let cells = [row.policy.as_str(), row.rule.as_str(), &row.resource, result(row), &reason].map(cell).join(" | ");
        // Writing to a string does not fail.
        let _ = write!(out, "| {} | {cells} |", i + 1);
        if style.detailed {
            let _ = write!(out, " {} |", cell(&row.message));
        }
        out.push('\n');
    }
    let (passed, failed) = counts(reports);
    let _ = writeln!(out, "\n{passed} tests passed and {failed} tests failed");
    out
}
