//! Reports of `ephor test`, a format a file.

mod annotations;
mod junit;
mod markdown;
mod structured;
#[cfg(test)]
mod tests;
mod text;

pub use annotations::{github, sarif};
pub use junit::junit;
pub use markdown::markdown;
pub use structured::{json, yaml};
pub use text::text;

use crate::testing::{Row, SuiteReport};

/// What to show of reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// With colour.
    pub colour: bool,
    /// Only rows that fail.
    pub fail_only: bool,
    /// With messages.
    pub detailed: bool,
}

impl Style {
    fn shows(self, row: &Row) -> bool {
        !(self.fail_only && row.passed)
    }
}

/// How many rows pass and fail.
fn counts(reports: &[SuiteReport]) -> (usize, usize) {
    let rows = || reports.iter().flat_map(|report| &report.rows);
    let passed = rows().filter(|row| row.passed).count();
    (passed, rows().count() - passed)
}

/// The word for a row's result.
fn result(row: &Row) -> &'static str {
    if row.passed { "Pass" } else { "Fail" }
}
