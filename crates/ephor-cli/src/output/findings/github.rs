//! Findings as workflow commands of GitHub Actions, which annotate the lines of a change.

use super::{level, message};
use crate::locate::Located;
use crate::output::github::{data, property};

/// A command for each finding.
pub fn github(findings: &[Located]) -> String {
    findings.iter().map(command).collect()
}

fn command(finding: &Located) -> String {
    let mut properties = Vec::new();
    if let Some(file) = &finding.file {
        properties.push(format!("file={}", property(&file.name)));
    }
    if let Some((start, end)) = finding.span {
        properties.push(format!("line={},col={}", start.line, start.column));
        // The column of the end is read as one of the first line.
        if end.line == start.line && end.column > start.column {
            properties.push(format!("endColumn={}", end.column));
        }
    }
    properties.push(format!("title={}", finding.code));
    format!("::{} {}::{}\n", level(finding), properties.join(","), data(&message(finding)))
}
