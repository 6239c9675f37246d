//! Upstream's command-line suites through the library behind `ephor test`.
//!
//! The suites lie beside the project, in `../shared/conformance/{cli,policies}`. `tests/conformance/known.tsv` lists
//! those that fail, how many rows of each, and why; the list is exact: a suite that fails otherwise, or passes, fails
//! this test. Suites of policies that Ephor does not support yet are refused by name and not listed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ephor_cli::testing::{Selection, SuiteReport, find_suites, run_files};

/// What suites may be refused for, as messages name it. It is empty once everything is built.
const NOT_BUILT: [&str; 7] = [
    "`verifyImages`",
    "`imageExtractors`",
    "`envoyPayloads`",
    "`httpPayloads`",
    "`evaluation.mode`",
    "a `MutatingPolicy`",
    "`ImageValidatingPolicy`",
];

/// What became of a suite.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    /// All rows are as expected.
    Pass,
    /// It needs what is not built yet, and is refused for it.
    Refused,
    /// Some rows are not as expected, or something could not be loaded: `rows that fail/rows`.
    Fail(String),
}

/// One line of the list.
struct Known {
    rows: String,
    reason: String,
}

fn conformance() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    assert!(
        folder.is_dir(),
        "the conformance suites are not there: put the `shared` folder beside the project, as `{}`",
        folder.display()
    );
    folder.canonicalize().unwrap()
}

fn known() -> BTreeMap<String, Known> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/known.tsv");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.map(|line| {
        let parts: Vec<&str> = line.split('\t').collect();
        let [suite, rows, reason] = parts[..] else { panic!("{line:?} is not `suite<TAB>rows<TAB>reason`") };
        assert!(!reason.is_empty(), "{suite} is listed without a reason");
        (suite.to_owned(), Known { rows: rows.to_owned(), reason: reason.to_owned() })
    });
    entries.collect()
}

/// Reports of one file as one status.
fn status(reports: &[&SuiteReport]) -> Status {
    let errors = || reports.iter().flat_map(|r| &r.findings).filter(|f| f.is_error());
    let unbuilt = |message: &str| NOT_BUILT.iter().any(|what| message.contains(what));
    let refused = errors().any(|f| f.code == "not-supported" && unbuilt(&f.message));
    let otherwise = errors().any(|f| f.code != "not-supported" || !unbuilt(&f.message));
    let rows = || reports.iter().flat_map(|r| &r.rows);
    let failed = rows().filter(|row| !row.passed).count();
    match (refused, otherwise, failed) {
        (true, false, _) => Status::Refused,
        (false, false, 0) => Status::Pass,
        _ => Status::Fail(format!("{failed}/{}", rows().count())),
    }
}

/// Why a suite fails, for whoever has to look into it.
fn story(reports: &[&SuiteReport]) -> String {
    let mut lines = Vec::new();
    for report in reports {
        lines.extend(report.findings.iter().filter(|f| f.is_error()).map(|f| format!("{}: {}", f.place(), f.message)));
        let rows = report.rows.iter().filter(|row| !row.passed);
        lines.extend(rows.map(|r| format!("{} {} {}: {}: {}", r.policy, r.rule, r.resource, r.reason, r.message)));
    }
    lines.iter().flat_map(|line| ["    ", line, "\n"]).collect()
}

#[expect(clippy::print_stdout, reason = "the tally is for whoever runs the test")]
#[test]
fn suites_are_as_the_list_of_known_differences_says() {
    let folder = conformance();
    let mut files = Vec::new();
    for part in ["cli", "policies"] {
        files.extend(find_suites(&folder.join(part), "kyverno-test.yaml").unwrap());
    }
    let reports = run_files(&files, &Selection::default(), &|| {});
    let mut suites: BTreeMap<String, Vec<&SuiteReport>> = BTreeMap::new();
    for report in &reports {
        let suite = report.path.parent().unwrap().strip_prefix(&folder).unwrap();
        suites.entry(suite.to_str().unwrap().to_owned()).or_default().push(report);
    }
    let mut known = known();
    let (mut passed, mut refused, mut listed) = (0, 0, Vec::new());
    let mut faults = Vec::new();
    for (suite, reports) in &suites {
        match (status(reports), known.remove(suite)) {
            (Status::Pass, None) => passed += 1,
            (Status::Refused, None) => refused += 1,
            (Status::Fail(rows), Some(entry)) if rows == entry.rows => {
                listed.push(format!("  {suite}: {}", entry.reason));
            }
            (Status::Fail(rows), Some(entry)) => {
                faults.push(format!("{suite}: {rows} rows fail, not {}\n{}", entry.rows, story(reports)));
            }
            (Status::Fail(rows), None) => faults.push(format!("{suite}: {rows} rows fail\n{}", story(reports))),
            (status, Some(_)) => faults.push(format!("{suite}: {status:?}, take it off the list\n")),
        }
    }
    let count = suites.len();
    println!("{count} suites: {passed} pass, {refused} refused, {} known to differ:", listed.len());
    println!("{}", listed.join("\n"));
    // The suites at hand are a sample: what is listed may be elsewhere.
    for suite in known.keys() {
        println!("  {suite}: not there");
    }
    assert!(count > 0, "no suites in {}", folder.display());
    assert!(faults.is_empty(), "{} suites differ from the list:\n{}", faults.len(), faults.concat());
}
