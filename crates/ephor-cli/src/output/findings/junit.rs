//! Findings as `JUnit` XML: a suite for each file, a failed case for each finding that counts.

use super::{level, message};
use crate::locate::Located;
use crate::output::junit_xml::{Case, CaseResult, Problem, Suite, document};

/// The suites of `files`. Warnings fail their cases only if they `count`; a file without findings is one passed case.
pub fn junit(findings: &[Located], files: &[String], count: bool) -> String {
    let of = |name: Option<&str>| -> Vec<&Located> {
        findings.iter().filter(|finding| finding.file.as_ref().map(|file| file.name.as_str()) == name).collect()
    };
    let mut suites: Vec<Suite> = files.iter().map(|name| suite(name, &of(Some(name)), count)).collect();
    let elsewhere = of(None);
    if !elsewhere.is_empty() {
        suites.push(suite("ephor", &elsewhere, count));
    }
    document(&suites)
}

fn suite(name: &str, findings: &[&Located], count: bool) -> Suite {
    let mut cases: Vec<Case> = findings.iter().map(|finding| case(name, finding, count)).collect();
    if cases.is_empty() {
        let (class, name) = (name.to_owned(), "check".to_owned());
        cases.push(Case { class, name, place: None, result: CaseResult::Passed });
    }
    Suite { name: name.to_owned(), file: None, cases }
}

fn case(suite: &str, finding: &Located, count: bool) -> Case {
    let place = finding.place();
    Case {
        class: if place.is_empty() { suite.to_owned() } else { place },
        name: finding.code.to_string(),
        place: None,
        result: if count || finding.is_error() {
            let problem = Problem { kind: level(finding), message: message(finding), details: String::new() };
            CaseResult::Failure(problem)
        } else {
            CaseResult::Output(message(finding))
        },
    }
}
