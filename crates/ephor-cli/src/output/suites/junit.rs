//! Rows as `JUnit` XML: a test suite for each policy of a test file, a test case for each rule and resource.

use std::fmt::Write as _;

use super::Style;
use crate::output::junit::escape;
use crate::testing::{Row, SuiteReport};

/// The whole XML document. What could not be loaded is an error of a test case of its own.
pub fn junit(reports: &[SuiteReport], style: Style) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ephor\">\n");
    for report in reports {
        let file = escape(&report.path.display().to_string());
        let mut policies: Vec<(&str, Vec<&Row>)> = Vec::new();
        for row in report.rows.iter().filter(|row| style.shows(row)) {
            match policies.iter_mut().find(|(policy, _)| *policy == row.policy.as_str()) {
                Some((_, rows)) => rows.push(row),
                None => policies.push((&row.policy, vec![row])),
            }
        }
        for (policy, rows) in policies {
            let failures = rows.iter().filter(|row| !row.passed).count();
            // Writing to a string does not fail.
            let _ = writeln!(
                out,
                "  <testsuite name=\"{}\" file=\"{file}\" tests=\"{}\" failures=\"{failures}\" errors=\"0\">",
                escape(policy),
                rows.len()
            );
            for row in rows {
                case(&mut out, row, &file, style);
            }
            out.push_str("  </testsuite>\n");
        }
        let errors: Vec<_> = report.findings.iter().filter(|finding| finding.is_error()).collect();
        if errors.is_empty() {
            continue;
        }
        let count = errors.len();
        let _ = writeln!(
            out,
            "  <testsuite name=\"load\" file=\"{file}\" tests=\"{count}\" failures=\"0\" errors=\"{count}\">"
        );
        for error in errors {
            let place = error.place();
            let _ = writeln!(
                out,
                "    <testcase classname=\"load\" name=\"{}\">\n      <error type=\"{}\" message=\"{}\"/>\n    \
                 </testcase>",
                escape(if place.is_empty() { error.code } else { &place }),
                error.code,
                escape(&error.message)
            );
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn case(out: &mut String, row: &Row, file: &str, style: Style) {
    let (rule, resource) = (escape(&row.rule), escape(&row.resource));
    let line = row.at.line;
    let _ = write!(out, "    <testcase classname=\"{rule}\" name=\"{resource}\" file=\"{file}\" line=\"{line}\"");
    let message = escape(&row.message);
    let _ = if !row.passed {
        let reason = escape(&row.reason.to_string());
        let diff = row.diff.as_deref().map(|diff| format!("&#10;{}", escape(diff))).unwrap_or_default();
        writeln!(out, ">\n      <failure message=\"{reason}\">{message}{diff}</failure>\n    </testcase>")
    } else if style.detailed && !message.is_empty() {
        writeln!(out, ">\n      <system-out>{message}</system-out>\n    </testcase>")
    } else {
        writeln!(out, "/>")
    };
}
