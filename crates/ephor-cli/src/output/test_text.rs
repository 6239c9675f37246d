//! Test reports as tables.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table};

use crate::testing::SuiteReport;

/// How the tables look.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// With colour.
    pub colour: bool,
    /// Rows that fail only.
    pub fail_only: bool,
    /// With messages.
    pub detailed: bool,
}

/// Tables and the summary.
pub fn render(reports: &[SuiteReport], style: &Style) -> String {
    let mut out = String::new();
    let (mut good, mut bad) = (0, 0);
    for report in reports {
        let _ = writeln!(out, "Loading test ( {} ) ...", report.path.display());
        let mut table = Table::new();
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(["ID", "POLICY", "RULE", "RESOURCE", "RESULT", "REASON", "MESSAGE"]);
        for (i, row) in report.rows.iter().enumerate() {
            if row.passed {
                good += 1;
            } else {
                bad += 1;
            }
            if row.passed && style.fail_only {
                continue;
            }
            table.add_row([
                (i + 1).to_string(),
                row.policy.to_string(),
                row.rule.to_string(),
                row.resource.clone(),
                if row.passed { "Pass" } else { "Fail" }.to_owned(),
                row.reason.to_string(),
                row.message.clone(),
            ]);
        }
        let _ = writeln!(out, "{table}");
    }
    let _ = writeln!(out, "\nTest Summary: {good} tests passed and {bad} tests failed");
    out
}
