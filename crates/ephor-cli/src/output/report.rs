//! `--policy-report`: results as report objects of `openreports.io`.

use std::collections::BTreeMap;

use ephor_expr::yaml::to_yaml;
use ephor_expr::{Map, Str, Value};
use ephor_reports::report::summary;
use ephor_reports::{Dialect, Entry, PolicyFacts, entry};

use super::plain;
use crate::apply::{Action, PolicySummary, Results, Row};

/// How reports are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// YAML documents.
    Yaml,
    /// JSON objects, one after another.
    Json,
}

/// One `ClusterReport` called `merged` for the policies without namespace, and one `PolicyReport` for each namespaced
/// policy.
pub fn render(results: &Results, format: Format) -> String {
    let mut cluster = Vec::new();
    let mut namespaced: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
    for row in &results.rows {
        match results.policy(row).map(|policy| policy.namespace.is_some()) {
            Some(true) => namespaced.entry(row.policy).or_default().push(row),
            _ => cluster.push(row),
        }
    }
    let mut reports = Vec::new();
    if !cluster.is_empty() || namespaced.is_empty() {
        reports.push(report(results, "ClusterReport", "merged", None, &cluster));
    }
    for (policy, rows) in namespaced {
        if let Some(policy) = results.plan.policies.get(policy) {
            reports.push(report(results, "PolicyReport", &policy.name, policy.namespace.as_ref(), &rows));
        }
    }
    match format {
        Format::Json => {
            let reports = reports.iter().map(plain::json);
            reports.collect::<Vec<_>>().join("\n") + "\n"
        }
        Format::Yaml => reports.iter().map(to_yaml).collect::<Vec<_>>().join("---\n"),
    }
}

fn report(results: &Results, kind: &str, name: &str, namespace: Option<&Str>, rows: &[&Row]) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name", name);
    if let Some(namespace) = namespace {
        metadata.insert("namespace", namespace.clone());
    }
    let entries = rows.iter().filter_map(|row| Some(result(results, row, results.policy(row)?)));
    Value::from([
        ("apiVersion", Dialect::OpenReports.api_version().into()),
        ("kind", kind.into()),
        ("metadata", metadata.into()),
        ("results", Value::array(entries.collect())),
        ("source", "".into()),
        ("summary", summary(rows.iter().map(|row| row.verdict.as_str()))),
    ])
}

/// One entry. Unlike the report of one object, it names its resource, and says also that it is not scored.
fn result(results: &Results, row: &Row, policy: &PolicySummary) -> Value {
    let policy = PolicyFacts {
        source: policy.program.as_ref().map_or(entry::SOURCE, |program| entry::source(program.id.kind)),
        key: &policy.key,
        category: policy.category.as_ref(),
        severity: policy.severity.as_ref(),
        scored: policy.scored,
        background: policy.background,
    };
    let rule = (row.action != Action::Cleanup).then(|| row.rule.clone());
    let mut members = Entry::new(policy, rule, row.verdict, &row.message, row.detail.as_deref()).members();
    let subject = &row.subject;
    let mut resource = Map::new();
    for (key, text) in [
        ("apiVersion", &subject.api_version),
        ("kind", &subject.kind),
        ("name", &subject.name),
        ("namespace", &subject.namespace),
        ("uid", &subject.uid),
    ] {
        if !text.is_empty() {
            resource.insert(key, text.clone());
        }
    }
    members.insert("resources", Value::array(vec![resource.into()]));
    members.insert("scored", policy.scored);
    members.insert("timestamp", entry::timestamp(results.plan.now));
    Value::object(members)
}
