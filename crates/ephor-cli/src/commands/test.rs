//! `ephor test`.

use std::path::PathBuf;

use clap::ValueEnum;
use ephor_engine::diagnostic::Severity;

use super::CommandResult;
use crate::exit::Exit;
use crate::load::ReadError;
use crate::locate::Located;
use crate::output::suites::{self, Style};
use crate::testing::{Selection, SuiteReport, TestFile, expectations, find_suites, run_files};
use crate::ui::Ui;

/// Arguments of `ephor test`.
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Directories to look for tests in, hidden ones included, or test files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// The name of test files.
    #[arg(long, short, default_value = "kyverno-test.yaml")]
    file_name: String,
    /// Which results to check, with wildcards.
    #[arg(long, short, value_name = "SELECTOR", default_value = "policy=*,rule=*,resource=*")]
    test_case_selector: Selection,
    /// How to print results.
    #[arg(long, short, value_name = "FORMAT")]
    output_format: Option<Format>,
    /// Show failures only.
    #[arg(long)]
    fail_only: bool,
    /// Show the messages of the rules.
    #[arg(long)]
    detailed_results: bool,
    /// Exit with 0 if there are no tests, or none that expects a result.
    #[arg(long)]
    allow_empty: bool,
    /// Accepted for scripts: to find no tests is a failure anyhow.
    #[arg(long, hide = true, conflicts_with = "allow_empty")]
    require_tests: bool,
    /// Accepted for scripts; image registries are not used.
    #[arg(long, hide = true)]
    registry: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Json,
    Yaml,
    Markdown,
    Junit,
    Sarif,
    Github,
}

/// Runs tests.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    if args.registry {
        let message = "image registries are not used: give the data of images in a values file";
        ui.findings(&[Located { severity: Severity::Warning, ..Located::plain("registry", message) }]);
    }
    let files = files(args)?;
    let bar = ui.progress(Some(files.len() as u64), "tests");
    let reports = run_files(&files, &args.test_case_selector, &|| bar.inc(1));
    bar.finish_and_clear();
    let findings: Vec<Located> = reports.iter().flat_map(|report| &report.findings).cloned().collect();
    ui.errors(&findings);
    let colour = ui.colour() && args.output_format.is_none();
    let style = Style { colour, fail_only: args.fail_only, detailed: args.detailed_results };
    ui.result(&match args.output_format {
        None => suites::text(&reports, style),
        Some(Format::Json) => suites::json(&reports, style),
        Some(Format::Yaml) => suites::yaml(&reports, style),
        Some(Format::Markdown) => suites::markdown(&reports, style),
        Some(Format::Junit) => suites::junit(&reports, style),
        Some(Format::Sarif) => suites::sarif(&reports),
        Some(Format::Github) => suites::github(&reports),
    })?;
    if reports.is_empty() && !args.allow_empty {
        let why = match files.len() {
            0 => format!("no file is called `{}`", args.file_name),
            count => {
                let results = expectations(&files);
                let hint = args.test_case_selector.unknown_name(&results).map_or_else(String::new, |(name, near)| {
                    format!(": no result names `{name}`, did you mean `{near}`?")
                });
                format!("`--test-case-selector` selects nothing of {count} test file(s){hint}")
            }
        };
        ui.say(&format!("error: {why}; `--allow-empty` accepts that"));
        return Ok(Exit::Findings);
    }
    if !args.allow_empty && reports.iter().all(|report| report.rows.is_empty() && !report.could_not()) {
        ui.say("error: no test file expects a result; `--allow-empty` accepts that");
        return Ok(Exit::Findings);
    }
    Ok(if reports.iter().any(SuiteReport::could_not) {
        Exit::CouldNot
    } else if reports.iter().all(SuiteReport::passed) {
        Exit::Clean
    } else {
        Exit::Findings
    })
}

/// The test files, each once.
fn files(args: &Args) -> Result<Vec<TestFile>, anyhow::Error> {
    let mut files = Vec::new();
    for path in &args.paths {
        let name = path.display().to_string();
        if name.contains("://") {
            return Err(ReadError::Network { path: name }.into());
        }
        let found = find_suites(path, &args.file_name)
            .map_err(|e| anyhow::Error::new(e).context(format!("cannot look for tests in `{name}`")))?;
        files.extend(found);
    }
    files.sort_by(|a: &TestFile, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}
