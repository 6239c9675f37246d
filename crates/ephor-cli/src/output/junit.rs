//! Results as `JUnit` XML: a test suite for each policy, a test case for each rule and resource.

use ephor_engine::outcome::Verdict;

use super::junit_xml::{Case, CaseResult, Problem, Suite, document};
use crate::apply::{Results, Row};

/// The whole XML document. A policy that was refused is a suite with one error.
pub fn render(results: &Results) -> String {
    let mut rows: Vec<&Row> = results.rows.iter().collect();
    rows.sort_by_key(|row| row.policy);
    let mut suites: Vec<Suite> = Vec::new();
    for rows in rows.chunk_by(|a, b| a.policy == b.policy) {
        let policy = rows.first().and_then(|row| results.policy(row));
        suites.push(Suite {
            name: policy.map_or_else(String::new, |policy| policy.key.to_string()),
            file: None,
            cases: rows.iter().map(|row| case(results, row)).collect(),
        });
    }
    suites.extend(results.refused.iter().map(|policy| Suite {
        name: policy.name.clone(),
        file: None,
        cases: vec![Case {
            class: policy.name.clone(),
            name: "load".to_owned(),
            place: None,
            result: CaseResult::Error(Problem { message: policy.reason.clone(), ..Problem::default() }),
        }],
    }));
    document(&suites)
}

fn case(results: &Results, row: &Row) -> Case {
    let place = results.policy(row).map(|policy| row.place(policy).place()).unwrap_or_default();
    let problem = || Problem { kind: "", message: row.text().to_string(), details: place };
    Case {
        class: row.rule.to_string(),
        name: row.subject.to_string(),
        place: Some((row.subject.file.to_string(), row.subject.line.max(1))),
        result: match row.verdict {
            Verdict::Pass => CaseResult::Passed,
            Verdict::Warn => CaseResult::Output(format!("warning: {}", row.text())),
            Verdict::Fail => CaseResult::Failure(problem()),
            Verdict::Error => CaseResult::Error(problem()),
            Verdict::Skip => CaseResult::Skipped(problem()),
        },
    }
}
