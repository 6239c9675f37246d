//! Tables for a human, and why rows fail.

use std::fmt::Write as _;

use super::{Style, counts, result};
use crate::output::paint::{Colour, paint};
use crate::output::plain;
use crate::output::table::{Cell, Table};
use crate::testing::{Row, SuiteReport};

/// A table for each suite, the reasons of failures below it, and a summary.
pub fn text(reports: &[SuiteReport], style: Style) -> String {
    let mut out = String::new();
    for report in reports {
        if style.fail_only && report.passed() {
            continue;
        }
        suite(&mut out, report, style);
    }
    let (passed, failed) = counts(reports);
    // Writing to a string does not fail.
    if reports.is_empty() {
        out.push_str("No tests found\n");
    } else if style.fail_only {
        let _ = writeln!(out, "\nTest Summary: {failed} out of {} tests failed", passed + failed);
        let failures: Vec<&Row> = reports.iter().flat_map(|r| &r.rows).filter(|row| !row.passed).collect();
        if !failures.is_empty() {
            let _ = write!(out, "\nAggregated Failed Test Cases :\n{}", table(&failures, style));
        }
    } else {
        let _ = writeln!(out, "\nTest Summary: {passed} tests passed and {failed} tests failed");
    }
    out
}

fn suite(out: &mut String, report: &SuiteReport, style: Style) {
    let _ = writeln!(out, "Loading test ( {} ) ...", plain::line(&report.path.display().to_string()));
    let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let _ = write!(
        out,
        "  Applying {} to {}",
        count(report.policies, "policy", "policies"),
        count(report.resources, "resource", "resources")
    );
    if report.exceptions > 0 {
        let _ = write!(out, " with {}", count(report.exceptions, "exception", "exceptions"));
    }
    out.push_str(" ...\n  Checking results ...\n\n");
    let rows: Vec<&Row> = report.rows.iter().filter(|row| style.shows(row)).collect();
    out.push_str(&table(&rows, style));
    for (i, row) in rows.iter().enumerate().filter(|(_, row)| !row.passed) {
        let head = format!("{}: {}", i + 1, row.reason);
        let _ = write!(out, "  {}", paint(&head, Colour::Red, style.colour));
        if !row.message.is_empty() {
            let _ = write!(out, ": {}", plain::block(&row.message, "    "));
        }
        let place = format!("{}:{}", report.path.display(), row.at.line);
        let _ = writeln!(out, "\n    at {}", plain::line(&place));
        for line in row.diff.iter().flat_map(|diff| diff.lines()) {
            let colour = match line.as_bytes().first() {
                Some(b'+') => Colour::Green,
                Some(b'-') => Colour::Red,
                _ => Colour::Dim,
            };
            let _ = writeln!(out, "    {}", paint(&plain::text(line), colour, style.colour));
        }
    }
    out.push('\n');
}

fn table(rows: &[&Row], style: Style) -> String {
    let mut headers = vec!["POLICY", "RULE", "RESOURCE", "RESULT", "REASON"];
    if style.detailed {
        headers.push("MESSAGE");
    }
    let mut table = Table::numbered(&headers);
    for row in rows {
        let colour = if row.passed { Colour::Green } else { Colour::Red };
        let mut cells: Vec<Cell> = vec![
            row.policy.as_str().into(),
            row.rule.as_str().into(),
            row.resource.as_str().into(),
            Cell(result(row).to_owned(), Some(colour)),
            row.reason.to_string().into(),
        ];
        if style.detailed {
            cells.push(row.message.as_str().into());
        }
        table.row(cells);
    }
    table.render(style.colour)
}
