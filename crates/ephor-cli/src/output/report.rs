//! `--policy-report`: results as report objects of `openreports.io`.

use std::collections::BTreeMap;

use ephor_engine::outcome::Verdict;
use ephor_engine::rules::validate::pod_security::PodSecurityFailure;
use ephor_expr::yaml::to_yaml;
use ephor_expr::{Map, Str, Value};

use super::{plain, structured};
use crate::apply::{Action, Card, Results, Row, Tally};

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
        match results.card(row).map(|card| card.namespace.is_some()) {
            Some(true) => namespaced.entry(row.policy).or_default().push(row),
            _ => cluster.push(row),
        }
    }
    let mut reports = Vec::new();
    if !cluster.is_empty() || namespaced.is_empty() {
        reports.push(report(results, "ClusterReport", "merged", None, &cluster));
    }
    for (policy, rows) in namespaced {
        if let Some(card) = results.plan.cards.get(policy) {
            reports.push(report(results, "PolicyReport", &card.name, card.namespace.as_ref(), &rows));
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
    let mut tally = Tally::default();
    for row in rows {
        tally.add(row.verdict);
    }
    let mut metadata = Map::new();
    metadata.insert("name", name);
    if let Some(namespace) = namespace {
        metadata.insert("namespace", namespace.clone());
    }
    let entries = rows.iter().filter_map(|row| Some(entry(results, row, results.card(row)?)));
    Value::from([
        ("apiVersion", "openreports.io/v1alpha1".into()),
        ("kind", kind.into()),
        ("metadata", metadata.into()),
        ("results", Value::array(entries.collect())),
        ("source", "".into()),
        ("summary", structured::summary(&tally)),
    ])
}

fn entry(results: &Results, row: &Row, card: &Card) -> Value {
    let mut entry = Map::new();
    entry.insert("source", "kyverno");
    entry.insert("policy", card.key.clone());
    if row.action != Action::Cleanup {
        entry.insert("rule", row.rule.clone());
    }
    for (key, text) in [("category", &card.category), ("severity", &card.severity)] {
        if let Some(text) = text {
            entry.insert(key, text.clone());
        }
    }
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
    entry.insert("resources", Value::array(vec![resource.into()]));
    entry.insert("result", row.verdict.as_str());
    entry.insert("scored", card.scored);
    let properties = properties(row, card);
    let message = overriding(row.verdict, &properties).unwrap_or_else(|| row.message.clone());
    if !message.is_empty() {
        entry.insert("message", message);
    }
    if !properties.is_empty() {
        entry.insert("properties", properties);
    }
    let now = results.plan.now;
    let timestamp = [("nanos", i64::from(now.subsec_nanosecond()).into()), ("seconds", now.as_second().into())];
    entry.insert("timestamp", Value::from(timestamp));
    Value::object(entry)
}

/// Properties are texts.
fn properties(row: &Row, card: &Card) -> Map {
    let mut map = Map::new();
    if let Some(background) = card.background {
        map.insert("process", if background { "background scan" } else { "admission review" });
    }
    let Some(detail) = &row.detail else { return map };
    for (key, value) in detail.properties.iter() {
        let text = value.as_str().map_or_else(|| value.to_json(), str::to_owned);
        map.insert(key.clone(), text);
    }
    if !detail.exceptions.is_empty() {
        map.insert("exceptions", detail.exceptions.join(","));
    }
    if let Some(failure) = &detail.pod_security {
        pod_security(failure, &mut map);
    }
    map
}

fn pod_security(failure: &PodSecurityFailure, map: &mut Map) {
    map.insert("standard", failure.level.clone());
    map.insert("version", failure.version.clone());
    let ids: Vec<&str> = failure.checks.iter().map(|check| check.id).collect();
    map.insert("controls", ids.join(","));
    // Upstream's order of members, which a sorted map does not have.
    let text = |text: &str| Value::from(text).to_json();
    let controls = failure.checks.iter().map(|check| {
        let images: Vec<String> = check.images.iter().map(|image| text(image)).collect();
        format!(r#"{{"ID":{},"Name":{},"Images":[{}]}}"#, text(check.id), text(check.control), images.join(","))
    });
    map.insert("controlsJSON", format!("[{}]", controls.collect::<Vec<_>>().join(",")));
}

/// The message that a rule's properties give a verdict (`passMessage` and so on), or all (`message`).
fn overriding(verdict: Verdict, properties: &Map) -> Option<Str> {
    let own = format!("{}Message", verdict.as_str());
    let text = properties.get(&own).or_else(|| properties.get("message"))?;
    text.as_str().filter(|text| !text.is_empty()).map(Str::new)
}
