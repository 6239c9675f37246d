use ephor_expr::yaml::{Limits, parse_values};

use super::*;
use crate::reports::found;

const NEW: &str = "
apiVersion: wgpolicyk8s.io/v1alpha2
kind: PolicyReport
metadata: {name: a, namespace: shop}
scope: {apiVersion: v1, kind: Pod, name: till, namespace: shop}
results:
- {policy: require-team, rule: team, result: fail, severity: high, category: Ownership, message: 'no <team> | \"x\"'}
- {policy: limits, rule: cpu, result: fail, severity: low, message: \"\\e[31mred\\u202e\\nsecond line\"}
---
apiVersion: wgpolicyk8s.io/v1alpha2
kind: PolicyReport
metadata: {name: b, namespace: shop}
scope: {apiVersion: v1, kind: Pod, name: cart, namespace: shop}
results:
- {policy: require-team, rule: team, result: pass, severity: high}
- {policy: limits, rule: cpu, result: fail, severity: low, message: no limit}
---
apiVersion: openreports.io/v1alpha1
kind: ClusterReport
metadata: {name: merged}
results:
- policy: '<script>alert(1)</script>'
  result: warn
  message: old API
  resources: [{apiVersion: v1, kind: Namespace, name: yard}]
";

const OLD: &str = "
apiVersion: wgpolicyk8s.io/v1alpha2
kind: PolicyReport
metadata: {name: b, namespace: shop}
scope: {apiVersion: v1, kind: Pod, name: cart, namespace: shop}
results:
- {policy: require-team, rule: team, result: fail, severity: high}
- {policy: limits, rule: cpu, result: fail, severity: low, message: no limit}
";

fn results(documents: &str) -> Vec<Found> {
    let documents = parse_values(documents, &Limits::default()).unwrap();
    documents.iter().flat_map(|document| found(document).unwrap()).collect()
}

fn overview() -> Overview {
    Overview::new(results(NEW), None)
}

fn compared() -> Overview {
    Overview::new(results(NEW), Some(&results(OLD)))
}

#[test]
fn a_table_has_the_worst_first() {
    insta::assert_snapshot!(table(&overview(), false));
}

#[test]
fn a_table_says_what_changed() {
    insta::assert_snapshot!(table(&compared(), false));
}

#[test]
fn a_wide_table_has_messages() {
    insta::assert_snapshot!(wide(&overview(), false));
}

#[test]
fn data_has_counts_and_results() {
    insta::assert_snapshot!(yaml(&compared()));
    assert_eq!(Value::from_json(&json(&compared())).unwrap(), data(&compared()));
}

#[test]
fn markdown_holds_its_text() {
    insta::assert_snapshot!(markdown(&compared()));
}

#[test]
fn sarif_names_objects() {
    insta::assert_snapshot!(sarif(&overview()).replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn a_page_holds_its_text() {
    let page = html(&compared());
    insta::assert_snapshot!(page.split_once("<body>").unwrap().1);
}

#[test]
fn a_page_runs_and_fetches_nothing() {
    let page = html(&compared());
    for word in ["<script", "http:", "https:", "url(", "@import", "src=", " style=", " on"] {
        let mut tags =
            page.split('<').skip(1).filter_map(|part| part.split_once('>')).map(|(tag, _)| format!("<{tag}"));
        assert!(!tags.any(|tag| tag.contains(word) && !tag.starts_with("<meta")), "{word}");
    }
    assert!(!page.contains("<script") && page.contains("default-src 'none'"));
}

#[test]
fn no_format_lets_control_characters_through() {
    for text in
        [wide(&overview(), false), json(&overview()), yaml(&overview()), markdown(&overview()), html(&overview())]
    {
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
}

#[test]
fn nothing_is_no_table() {
    let none = Overview::new(Vec::new(), None);
    assert_eq!(table(&none, false), "pass: 0, fail: 0, warn: 0, error: 0, skip: 0\n");
    assert!(html(&none).contains("There are no results."));
}
