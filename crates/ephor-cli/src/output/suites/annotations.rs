//! Rows that fail as findings about their test file: for code scanning and the annotations of a change.

use std::sync::Arc;

use ephor_engine::diagnostic::Severity;
use ephor_expr::value::Path;

use crate::locate::{Located, SourceFile};
use crate::output::findings;
use crate::testing::{Row, SuiteReport};

/// One SARIF log for all test files.
pub fn sarif(reports: &[SuiteReport]) -> String {
    findings::sarif(&failures(reports))
}

/// A workflow command of GitHub Actions for each row that fails and each thing that cannot be loaded.
pub fn github(reports: &[SuiteReport]) -> String {
    findings::github(&failures(reports))
}

fn failures(reports: &[SuiteReport]) -> Vec<Located> {
    let mut found = Vec::new();
    for report in reports {
        found.extend(report.findings.iter().cloned());
        let file = Arc::new(SourceFile { name: report.path.display().to_string(), text: String::new() });
        found.extend(report.rows.iter().filter(|row| !row.passed).map(|row| failure(row, &file)));
    }
    found
}

fn failure(row: &Row, file: &Arc<SourceFile>) -> Located {
    let message = format!("{}/{} for {}: {}: {}", row.policy, row.rule, row.resource, row.reason, row.message);
    Located {
        file: Some(Arc::clone(file)),
        span: Some((row.at, row.at)),
        path: Path::root(),
        code: "test-failed",
        severity: Severity::Error,
        message,
        help: None,
    }
}
