//! Tests of what is registered, and of the thread that registers it.

mod cel;
mod controller;
mod plan;

use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_expr::Value;
use ephor_expr::yaml::parse_value;
use ephor_runtime::config::Config;
use ephor_runtime::decision::PathToken;
use ephor_runtime::policies::StoredPolicy;

use super::{Demand, Inputs, WebhookSettings};

/// A policy document from `kind[/namespace]:name`, its spec without rules, and its rules.
fn policy(id: &str, spec: &str, rules: &[&str]) -> Value {
    let (kind, name) = id.split_once(':').unwrap();
    let (kind, namespace) = kind.split_once('/').unwrap_or((kind, ""));
    let kind = if kind == "pol" { "Policy" } else { "ClusterPolicy" };
    let namespace = if namespace.is_empty() { String::new() } else { format!(", namespace: {namespace}") };
    let rules: Vec<String> = rules.iter().enumerate().map(|(i, rule)| format!("{{name: r{i}, {rule}}}")).collect();
    let background = if spec.contains("background") { "" } else { "background: false, " };
    let spec = if spec.is_empty() { String::new() } else { format!("{spec}, ") };
    let text = format!(
        "{{apiVersion: kyverno.io/v1, kind: {kind}, metadata: {{name: {name}{namespace}, annotations: \
         {{pod-policies.kyverno.io/autogen-controllers: none}}}}, spec: {{{background}{spec}rules: [{}]}}}}",
        rules.join(", ")
    );
    parse_value(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A validate rule on kinds.
fn validates(kinds: &str) -> String {
    format!("match: {{any: [{{resources: {{kinds: {kinds}}}}}]}}, {VALIDATE}")
}

const VALIDATE: &str = "validate: {message: m, deny: {}}";

fn demand(document: &Value) -> Arc<Demand> {
    let stored = StoredPolicy::new(document.clone());
    let why = || stored.findings.iter().map(ToString::to_string).collect::<Vec<_>>();
    Arc::new(Demand::of(&stored).unwrap_or_else(|| panic!("asks for nothing: {:?}", why())))
}

/// The configurations for some policies, by name.
fn planned(documents: &[Value], settings: &WebhookSettings, config: &Config) -> Vec<(String, Value)> {
    planned_with(documents, settings, config, &PathToken::of_key(b"key"))
}

/// The same, where API servers get this token.
fn planned_with(
    documents: &[Value],
    settings: &WebhookSettings,
    config: &Config,
    token: &PathToken,
) -> Vec<(String, Value)> {
    let demands: Vec<_> = documents.iter().map(demand).collect();
    let discovery = Discovery::kubernetes();
    let inputs = Inputs { demands: &demands, settings, config, ca_bundle: b"pem", token, discovery: &discovery };
    super::plan(&inputs).configurations.into_iter().map(|c| (c.name.to_string(), c.document)).collect()
}

/// The webhooks of the resource configuration that `what` names, under upstream's defaults.
fn webhooks(documents: &[Value], what: &str) -> Vec<Value> {
    let planned = planned(documents, &WebhookSettings::default(), &Config::default_for("kyverno"));
    let name = format!("kyverno-resource-{what}-webhook-cfg");
    let (_, document) = planned.iter().find(|(n, _)| *n == name).unwrap();
    document.get("webhooks").and_then(Value::as_array).unwrap().to_vec()
}

/// Rules as `group version scope: resources: operations`, one a line.
fn rules(webhook: &Value) -> Vec<String> {
    let list = |rule: &Value, key: &str| -> String {
        let items = rule.get(key).and_then(Value::as_array).unwrap();
        items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(",")
    };
    let rules = webhook.get("rules").and_then(Value::as_array).unwrap();
    rules
        .iter()
        .map(|rule| {
            format!(
                "{}/{} {}: {}: {}",
                list(rule, "apiGroups"),
                list(rule, "apiVersions"),
                rule.str_at(&["scope"]).unwrap(),
                list(rule, "resources"),
                list(rule, "operations")
            )
        })
        .collect()
}
