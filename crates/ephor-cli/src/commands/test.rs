//! `ephor test`.

use crate::output::test_text;
use std::path::PathBuf;

use super::CommandResult;
use crate::exit::Exit;
use crate::testing::{Selection, SuiteReport, find_suites, run_files};
use crate::ui::Ui;

/// Arguments of `ephor test`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directories to look for tests in, or test files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// What test files are called.
    #[arg(long, short, default_value = "kyverno-test.yaml")]
    file_name: String,
    /// Which results to check.
    #[arg(long, short, default_value = "policy=*,rule=*,resource=*")]
    test_case_selector: Selection,
    /// Show failures only.
    #[arg(long)]
    fail_only: bool,
    /// Show the rules' messages.
    #[arg(long)]
    detailed_results: bool,
    /// Fail if there are no tests.
    #[arg(long)]
    require_tests: bool,
}

/// Runs the tests.
pub fn run(args: &Args, ui: &Ui) -> CommandResult {
    let mut files = Vec::new();
    for path in &args.paths {
        let found = find_suites(path, &args.file_name)
            .map_err(|e| anyhow::Error::new(e).context(format!("cannot look for tests in `{}`", path.display())))?;
        files.extend(found);
    }
    files.sort();
    files.dedup();
    let reports = run_files(&files, &args.test_case_selector, &|| {});
    for report in &reports {
        ui.findings(&report.findings);
    }
    ui.result(&test_text::render(
        &reports,
        &test_text::Style { colour: ui.colour(), fail_only: args.fail_only, detailed: args.detailed_results },
    ))?;
    if reports.is_empty() && args.require_tests {
        return Ok(Exit::Findings);
    }
    Ok(if reports.iter().any(SuiteReport::could_not) {
        Exit::CouldNot
    } else if reports.iter().any(|r| !r.passed()) {
        Exit::Findings
    } else {
        Exit::Clean
    })
}
