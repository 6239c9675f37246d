//! `ephor test` as a library: suites in, rows out.
//!
//! A [`suite::Suite`] is a `kyverno-test.yaml` as written; [`Case`] is one with everything it names loaded; `run`
//! evaluates it and compares what comes out with what is expected, a [`Row`] for each. Upstream's suites run as they
//! are, but an expectation is met only by what was evaluated: a policy that cannot be loaded, a rule or resource that
//! does not exist and a rule that does not apply are failures, the last unless `skip` is expected.

mod bounds;
mod case;
mod compare;
mod find;
mod hits;
mod mocks;
mod respond;
mod row;
mod rows;
mod select;
mod subjects;
pub mod suite;
#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use case::Case;
pub use find::{TestFile, find_suites};
pub use row::{Reason, Row};
pub use select::Selection;

use std::path::PathBuf;

use ephor_engine::diagnostic::Diagnostic;
use ephor_expr::value::Path as FieldPath;
use rayon::prelude::*;

use crate::load::Typed;
use crate::locate::Located;
use suite::{Expectation, Suite};

/// The result of one test document.
#[derive(Debug)]
pub struct SuiteReport {
    /// The test file.
    pub path: PathBuf,
    /// The test's name; may be empty.
    pub name: String,
    /// How many policies were loaded.
    pub policies: usize,
    /// How many triggers.
    pub resources: usize,
    /// How many exceptions.
    pub exceptions: usize,
    /// One for each expectation and resource.
    pub rows: Vec<Row>,
    /// What could not be loaded, and warnings.
    pub findings: Vec<Located>,
}

impl SuiteReport {
    /// Whether all rows are as expected and everything could be loaded.
    pub fn passed(&self) -> bool {
        !self.could_not() && self.rows.iter().all(|row| row.passed)
    }

    /// Whether something could not be loaded.
    pub fn could_not(&self) -> bool {
        self.findings.iter().any(Located::is_error)
    }
}

/// Runs the tests of a file, one a document. A file that is no test gives one report with the findings.
pub fn run_file(file: &TestFile, selection: &Selection) -> Vec<SuiteReport> {
    let read = match file.bounds.refusal_of_test(&file.path) {
        Some(refusal) => Err(vec![Located::plain("outside", refusal)]),
        None => suite::read_suites(&file.path),
    };
    match read {
        Ok(suites) => suites.into_iter().filter_map(|suite| run(file, suite, selection)).collect(),
        Err(findings) => vec![SuiteReport {
            path: file.path.clone(),
            name: String::new(),
            policies: 0,
            resources: 0,
            exceptions: 0,
            rows: Vec::new(),
            findings,
        }],
    }
}

/// Runs the tests of files, several at a time; reports come in the order of the files. `done` is called after each.
pub fn run_files(files: &[TestFile], selection: &Selection, done: &(dyn Fn() + Sync)) -> Vec<SuiteReport> {
    let reports = files.par_iter().map(|file| {
        let reports = run_file(file, selection);
        done();
        reports
    });
    reports.collect::<Vec<_>>().into_iter().flatten().collect()
}

/// The results that test files expect. What cannot be read expects nothing.
pub fn expectations(files: &[TestFile]) -> Vec<Expectation> {
    let readable = files.iter().filter(|file| file.bounds.refusal_of_test(&file.path).is_none());
    let suites = readable.filter_map(|file| suite::read_suites(&file.path).ok()).flatten();
    suites.flat_map(|suite| suite.value.results.unwrap_or_default()).collect()
}

/// Runs one test; `None` if nothing of it is selected.
fn run(file: &TestFile, mut suite: Typed<Suite>, selection: &Selection) -> Option<SuiteReport> {
    let all = suite.value.results.take().unwrap_or_default();
    let expects_nothing = all.is_empty();
    let numbered = all.into_iter().enumerate().map(|(index, result)| Expectation { index, ..result });
    let selected: Vec<_> = numbered.filter_map(|result| selection.narrow(result)).collect();
    if selected.is_empty() && !expects_nothing {
        return None;
    }
    suite.value.results = Some(selected);
    let name = suite.value.name().to_owned();
    let mut case = Case::load(file, suite);
    if expects_nothing {
        let message = "the test expects nothing: it has no `results`";
        case.findings
            .push(Located::of_diagnostic(Diagnostic::warning("no-results", FieldPath::root(), message), &case.origin));
    }
    let responses = respond::responses(&mut case);
    let rows = rows::rows(&mut case, &responses);
    Some(SuiteReport {
        path: file.path.clone(),
        name,
        policies: case.policies.policies.len(),
        resources: case.triggers.len(),
        exceptions: case.exception_count,
        rows,
        findings: case.findings,
    })
}
