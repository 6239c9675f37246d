//! Lists of findings, a format a file.

mod github;
mod json;
mod junit;
mod sarif;
#[cfg(test)]
mod tests;

pub use github::github;
pub use json::json;
pub use junit::junit;
pub use sarif::sarif;

use super::diagnostics;
use crate::locate::Located;

/// For a human: each finding with its line and a caret, an empty line between.
pub fn text(findings: &[Located], colour: bool) -> String {
    findings.iter().map(|finding| diagnostics::full(finding, colour) + "\n\n").collect()
}

/// A line for each.
pub fn concise(findings: &[Located]) -> String {
    findings.iter().map(|finding| diagnostics::concise(finding) + "\n").collect()
}

/// `error` or `warning`.
fn level(finding: &Located) -> &'static str {
    if finding.is_error() { "error" } else { "warning" }
}

/// The message with path and hint.
fn message(finding: &Located) -> String {
    let path = if finding.path.is_root() { String::new() } else { format!(" ({})", finding.path) };
    let help = finding.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    format!("{}{path}{help}", finding.message)
}
