//! Results as GitHub workflow commands: annotations on the files of a pull request.

use std::fmt::Write as _;

use ephor_engine::outcome::Verdict;

use super::plain;
use crate::apply::Results;

/// A line for each finding, then the counts.
pub fn render(results: &Results) -> String {
    let mut out = String::new();
    for finding in &results.findings {
        let level = if finding.is_error() { "error" } else { "warning" };
        let file = finding.file.as_ref().map(|file| format!("file={},", property(&file.name))).unwrap_or_default();
        let line = finding.span.map(|(at, _)| format!("line={},col={},", at.line, at.column)).unwrap_or_default();
        let _ = writeln!(out, "::{level} {file}{line}title={}::{}", finding.code, data(&finding.message));
    }
    for row in &results.rows {
        let level = match row.verdict {
            Verdict::Fail | Verdict::Error => "error",
            Verdict::Warn => "warning",
            Verdict::Pass | Verdict::Skip => continue,
        };
        let policy = results.policy(row).map_or("", |policy| policy.key.as_str());
        let title = if row.rule.is_empty() { policy.to_owned() } else { format!("{policy}/{}", row.rule) };
        let _ = writeln!(
            out,
            "::{level} file={},line={},title={}::{}",
            property(&row.subject.file),
            row.subject.line.max(1),
            property(&title),
            data(&format!("{}: {}", row.subject, row.text()))
        );
    }
    let _ = writeln!(out, "{}", results.tally.to_string().trim_end());
    out
}

/// Text of a command: one line, on which nothing is a command of its own.
pub(super) fn data(text: &str) -> String {
    plain::text(text).replace('%', "%25").replace('\n', "%0A")
}

/// Text of a command's property.
pub(super) fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
