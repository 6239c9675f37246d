use std::path::PathBuf;

use ephor_engine::outcome::Verdict;
use ephor_expr::yaml::Position;

use super::*;
use crate::locate::Located;
use crate::testing::Reason;

fn row(resource: &str, reason: Reason, message: &str) -> Row {
    Row {
        policy: "p".into(),
        rule: "r<1>".into(),
        at: Position { line: 7, column: 3, offset: 0 },
        resource: resource.to_owned(),
        passed: matches!(reason, Reason::Ok | Reason::Excluded),
        reason,
        message: message.to_owned(),
        diff: None,
    }
}

fn reports() -> Vec<SuiteReport> {
    let want = Reason::Want { want: Verdict::Fail, got: Verdict::Pass };
    let differs = Row { diff: Some("-a: 1\n+a: \"2\"\n".into()), ..row("v1/Pod/x/c", Reason::ResourceDiff, "other") };
    vec![SuiteReport {
        path: PathBuf::from("a/kyverno-test.yaml"),
        name: "a".to_owned(),
        policies: 1,
        resources: 3,
        exceptions: 1,
        rows: vec![row("v1/Pod/x/a", Reason::Ok, "fine"), row("v1/Pod/x/b", want, "is | fine & \"good\""), differs],
        findings: vec![Located::plain("unreadable", "no such file: `x`")],
    }]
}

#[test]
fn a_table_with_reasons_and_a_summary() {
    insta::assert_snapshot!(text(&reports(), Style::default()));
    insta::assert_snapshot!("fail_only", text(&reports(), Style { fail_only: true, ..Style::default() }));
    insta::assert_snapshot!("detailed", text(&reports(), Style { detailed: true, ..Style::default() }));
}

#[test]
fn one_list_of_data() {
    let json = json(&reports(), Style::default());
    let value = ephor_expr::Value::from_json(&json).unwrap();
    assert_eq!(value.as_array().map(<[_]>::len), Some(3));
    insta::assert_snapshot!(json);
    let yaml = yaml(&reports(), Style::default());
    assert_eq!(ephor_expr::yaml::parse_value(&yaml).unwrap(), value);
}

#[test]
fn markdown_cells_hold_their_text() {
    insta::assert_snapshot!(markdown(&reports(), Style { detailed: true, ..Style::default() }));
}

#[test]
fn junit_is_escaped_and_closed() {
    insta::assert_snapshot!(junit(&reports(), Style::default()));
}

#[test]
fn annotations_are_of_what_fails() {
    let reports = reports();
    let commands = github(&reports);
    let lines: Vec<&str> = commands.lines().collect();
    assert_eq!(lines.len(), 3, "{commands}");
    assert!(
        lines[1]
            .starts_with("::error file=a/kyverno-test.yaml,line=7,col=3,title=test-failed::p/r<1> for v1/Pod/x/b: ")
    );
    let log = ephor_expr::Value::from_json(&sarif(&reports)).unwrap();
    let results = log.get("runs").and_then(|runs| runs.as_array()?.first()?.get("results")?.as_array());
    assert_eq!(results.map(<[_]>::len), Some(3));
}
