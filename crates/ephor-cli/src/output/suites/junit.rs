//! Rows as `JUnit` XML: a test suite for each policy of a test file, a test case for each rule and resource.

use super::Style;
use crate::locate::Located;
use crate::output::junit_xml::{Case, CaseResult, Problem, Suite, document};
use crate::testing::{Row, SuiteReport};

/// The whole XML document. What could not be loaded is an error of a test case of its own.
pub fn junit(reports: &[SuiteReport], style: Style) -> String {
    document(&reports.iter().flat_map(|report| suites(report, style)).collect::<Vec<_>>())
}

fn suites(report: &SuiteReport, style: Style) -> Vec<Suite> {
    let file = report.path.display().to_string();
    let mut suites: Vec<Suite> = Vec::new();
    for row in report.rows.iter().filter(|row| style.shows(row)) {
        let case = case(row, &file, style);
        if let Some(suite) = suites.iter_mut().find(|suite| suite.name == row.policy.as_str()) {
            suite.cases.push(case);
        } else {
            let name = row.policy.to_string();
            suites.push(Suite { name, file: Some(file.clone()), cases: vec![case] });
        }
    }
    let errors: Vec<Case> = report.findings.iter().filter(|finding| finding.is_error()).map(load_error).collect();
    if !errors.is_empty() {
        suites.push(Suite { name: "load".to_owned(), file: Some(file), cases: errors });
    }
    suites
}

fn load_error(error: &Located) -> Case {
    let place = error.place();
    let problem = Problem { kind: error.code, message: error.message.clone(), details: String::new() };
    Case {
        class: "load".to_owned(),
        name: if place.is_empty() { error.code.to_string() } else { place },
        place: None,
        result: CaseResult::Error(problem),
    }
}

fn case(row: &Row, file: &str, style: Style) -> Case {
    let message = row.message.clone();
    let result = if !row.passed {
        let details = match &row.diff {
            Some(diff) => format!("{message}\n{diff}"),
            None => message,
        };
        CaseResult::Failure(Problem { kind: "", message: row.reason.to_string(), details })
    } else if style.detailed && !message.is_empty() {
        CaseResult::Output(message)
    } else {
        CaseResult::Passed
    };
    let place = Some((file.to_owned(), row.at.line));
    Case { class: row.rule.to_string(), name: row.resource.clone(), place, result }
}
