//! `ephor report` as a library call: arguments in, text and exit code out.

use std::fs;
use std::sync::Arc;

use clap::Parser;
use ephor_cluster::MemoryCluster;
use tempfile::TempDir;

use super::cluster_tests::cluster;
use super::report::{Args, ran};
use crate::exit::Exit;

const REPORT: &str = "
apiVersion: wgpolicyk8s.io/v1alpha2
kind: PolicyReport
metadata: {name: a, namespace: shop}
scope: {apiVersion: v1, kind: Pod, name: till, namespace: shop, uid: a}
results:
- {policy: require-team, rule: team, result: fail, severity: high, category: Ownership, message: no team}
- {policy: limits, rule: cpu, result: pass, severity: low}
";

/// A command line around [`Args`].
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Runs `ephor report` with these words; `@` is a file with `text`.
fn report(text: &str, words: &str, cluster: Option<&MemoryCluster>) -> (String, Exit) {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("reports.yaml");
    fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let words = words.split_whitespace().map(|word| word.replace('@', &file));
    let line = match Line::try_parse_from(std::iter::once("report".to_owned()).chain(words)) {
        Ok(line) => line,
        Err(error) => return (error.render().to_string(), Exit::CouldNot),
    };
    match ran(&line.args, cluster.map(|cluster| Arc::new(cluster.clone())).as_ref(), false) {
        Ok(shown) => {
            let warnings = shown.warnings.iter().map(|warning| format!("warning: {warning}\n"));
            (warnings.chain([shown.text]).collect(), shown.exit)
        }
        Err(error) => (format!("error: {error:#}\n"), Exit::CouldNot),
    }
}

fn totals(text: &str) -> &str {
    text.lines().find(|line| line.starts_with("pass:")).unwrap_or(text)
}

#[test]
fn each_filter_leaves_out_what_does_not_fit() {
    let (all, fails) = ("pass: 1, fail: 1, warn: 0, error: 0, skip: 0", "pass: 0, fail: 1, warn: 0, error: 0, skip: 0");
    let none = "pass: 0, fail: 0, warn: 0, error: 0, skip: 0";
    for (filter, expected) in [
        ("", all),
        ("--policy require-*", fails),
        ("-n shop", all),
        ("-n yard", none),
        ("--result fail,error", fails),
        ("--severity critical,high", fails),
        ("--kind Pod", all),
        ("--kind Service", none),
        ("--category Ownership", fails),
    ] {
        let (text, exit) = report(REPORT, &format!("@ {filter}"), None);
        assert_eq!((totals(&text), exit), (expected, Exit::Clean), "{filter}");
    }
}

#[test]
fn the_exit_code_follows_fail_on() {
    for (words, exit) in [
        ("@", Exit::Clean),
        ("@ --fail-on fail", Exit::Findings),
        ("@ --fail-on error,warn", Exit::Clean),
        ("@ --fail-on fail --policy limits", Exit::Clean),
        ("@ --fail-on failed", Exit::CouldNot),
        ("@ --severity hihg", Exit::CouldNot),
        ("", Exit::CouldNot),
        ("- --compare -", Exit::CouldNot),
    ] {
        assert_eq!(report(REPORT, words, None).1, exit, "{words}");
    }
}

#[test]
fn what_is_no_report_is_an_error() {
    for (text, message) in [
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}}", "Pod `a` is not a policy report"),
        (&REPORT.replace("result: pass", "result: passed"), "result 1 has the verdict `passed`"),
        (&REPORT.replace("policy: limits, ", ""), "result 1 names no policy"),
    ] {
        let (found, exit) = report(text, "@", None);
        assert!(found.contains(message), "{found}");
        assert_eq!(exit, Exit::CouldNot);
    }
}

#[test]
fn reports_of_a_cluster_are_read() {
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---";
    let (text, exit) = report("", "--cluster --fail-on fail", Some(&cluster(&format!("{namespace}{REPORT}"))));
    assert_eq!((totals(&text), exit), ("pass: 1, fail: 1, warn: 0, error: 0, skip: 0", Exit::Findings));
}

#[test]
fn a_report_that_cannot_be_read_hides_no_other() {
    let bad = REPORT.replace("name: a,", "name: b,").replace("result: fail", "result: perhaps");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---";
    let stored = cluster(&format!("{namespace}{REPORT}---{bad}"));
    let (text, exit) = report("", "--cluster", Some(&stored));
    assert!(text.contains("warning: PolicyReport `b`: result 0 has the verdict `perhaps`"), "{text}");
    assert_eq!((totals(&text), exit), ("pass: 1, fail: 1, warn: 0, error: 0, skip: 0", Exit::Clean));
}

#[test]
fn a_result_that_is_stored_in_both_groups_counts_once() {
    let other = REPORT
        .replace("wgpolicyk8s.io/v1alpha2", "openreports.io/v1alpha1")
        .replace("kind: PolicyReport", "kind: Report");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---";
    let (text, _) = report("", "--cluster", Some(&cluster(&format!("{namespace}{REPORT}---{other}"))));
    assert_eq!(totals(&text), "pass: 1, fail: 1, warn: 0, error: 0, skip: 0", "{text}");
}

#[test]
fn results_are_computed_without_reports() {
    let documents = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: bad, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: good, namespace: shop, labels: {team: a}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team, annotations: {policies.kyverno.io/severity: high}}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: '?*'}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: of-requests}
spec:
  background: false
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: '?*'}}}}
";
    let stored = cluster(documents);
    let (text, exit) = report("", "--cluster --compute --fail-on fail -n shop", Some(&stored));
    assert_eq!((totals(&text), exit), ("pass: 1, fail: 1, warn: 0, error: 0, skip: 0", Exit::Findings), "{text}");
    assert!(text.contains("warning: policy of-requests judges requests only"), "{text}");
    assert!(text.contains("require-team") && text.contains("high"), "{text}");
}
