//! Results as data: JSON and YAML.

use ephor_expr::value::Path;
use ephor_expr::yaml::to_yaml;
use ephor_expr::{Map, Value};

use super::plain;
use crate::apply::{Results, Row};
use crate::locate::Located;
use crate::tally::Tally;

/// Results as one JSON object.
pub fn json(results: &Results) -> String {
    format!("{}\n", plain::json(&value(results)))
}

/// The same object as YAML.
pub fn yaml(results: &Results) -> String {
    to_yaml(&value(results))
}

/// `{summary, results, policiesSkipped, diagnostics}`; empty parts but the first two are left out.
fn value(results: &Results) -> Value {
    let mut map = Map::new();
    map.insert("summary", summary(&results.tally));
    let rows = results.rows.iter().map(|row| record(results, row));
    map.insert("results", Value::array(rows.collect()));
    if !results.refused.is_empty() {
        let refused = results.refused.iter();
        let refused = refused.map(|policy| {
            Value::from([("policy", policy.name.as_str().into()), ("reason", policy.reason.as_str().into())])
        });
        map.insert("policiesSkipped", Value::array(refused.collect()));
    }
    if !results.findings.is_empty() {
        map.insert("diagnostics", Value::array(results.findings.iter().map(diagnostic).collect()));
    }
    Value::object(map)
}

/// The counts.
fn summary(tally: &Tally) -> Value {
    let count = |n: u64| Value::from(i64::try_from(n).unwrap_or(i64::MAX));
    Value::from([
        ("pass", count(tally.pass)),
        ("fail", count(tally.fail)),
        ("warn", count(tally.warn)),
        ("error", count(tally.error)),
        ("skip", count(tally.skip)),
    ])
}

/// One row with everything that is known about it.
fn record(results: &Results, row: &Row) -> Value {
    let mut record = Map::new();
    let subject = &row.subject;
    let mut resource = Map::new();
    for (key, text) in [
        ("apiVersion", subject.api_version.as_str()),
        ("kind", &subject.kind),
        ("namespace", &subject.namespace),
        ("name", &subject.name),
        ("file", &subject.file),
    ] {
        if !text.is_empty() {
            resource.insert(key, text);
        }
    }
    if subject.line > 0 {
        resource.insert("line", i64::from(subject.line));
    }
    record.insert("resource", resource);
    record.insert("result", row.verdict.as_str());
    if !row.rule.is_empty() {
        record.insert("rule", row.rule.clone());
    }
    if !row.message.is_empty() {
        record.insert("message", row.message.clone());
    }
    if let Some(policy) = results.policy(row) {
        record.insert("policy", policy.key.clone());
        for (key, text) in [("category", &policy.category), ("severity", &policy.severity)] {
            if let Some(text) = text {
                record.insert(key, text.clone());
            }
        }
        let place = row.place(policy);
        record.insert("source", position(&place));
        if let Some(help) = place.help {
            record.insert("help", help);
        }
    }
    if let Some(detail) = &row.detail {
        if !detail.exceptions.is_empty() {
            record.insert("exceptions", detail.exceptions.clone());
        }
        if !detail.properties.is_empty() {
            record.insert("properties", detail.properties.clone());
        }
    }
    Value::object(record)
}

/// `{file, line, column, path}`, as far as they are known.
fn position(place: &Located) -> Value {
    let mut map = Map::new();
    if let Some(file) = &place.file {
        map.insert("file", file.name.as_str());
    }
    if let Some((start, _)) = place.span {
        map.insert("line", i64::from(start.line));
        map.insert("column", i64::from(start.column));
    }
    if place.path != Path::root() {
        map.insert("path", place.path.to_string());
    }
    Value::object(map)
}

fn diagnostic(finding: &Located) -> Value {
    let mut map = position(finding).as_object().cloned().unwrap_or_default();
    map.insert("code", finding.code);
    map.insert("severity", if finding.is_error() { "error" } else { "warning" });
    map.insert("message", finding.message.as_str());
    if let Some(help) = &finding.help {
        map.insert("help", help.as_str());
    }
    Value::object(map)
}
