//! `--generate-exceptions`: an exception for each failure.

use std::collections::BTreeSet;

use ephor_engine::outcome::Verdict;
use ephor_expr::yaml::to_yaml;
use ephor_expr::{Map, Str, Value};

use crate::apply::{Results, Row};

/// A `PolicyException` for each failing rule of a policy without namespace and each resource, as YAML documents; `ttl`
/// is a Go duration after which the cleanup controller removes them. Failures that the same exception covers give one.
pub fn render(results: &Results, ttl: &str) -> String {
    let mut names = BTreeSet::new();
    let mut out = String::new();
    for row in results.rows.iter().filter(|row| matches!(row.verdict, Verdict::Fail | Verdict::Warn)) {
        let Some(policy) = results.policy(row).filter(|policy| policy.namespace.is_none()) else { continue };
        let exception = exception(row, &policy.name, ttl);
        let name = exception.str_at(&["metadata", "name"]).unwrap_or_default().to_owned();
        if names.insert(name) {
            out.push_str(&to_yaml(&exception));
            out.push_str("---\n");
        }
    }
    out
}

fn exception(row: &Row, policy: &str, ttl: &str) -> Value {
    let subject = &row.subject;
    let (rule, made_for) = declared(&row.rule);
    let mut kinds = vec![subject.kind.clone()];
    let mut name = subject.name.clone();
    if let Some(made_for) = made_for {
        // The Pods of a controller are named after it, and its Jobs.
        kinds.extend(made_for.iter().map(|kind| Str::new_static(kind)));
        name = format!("{name}-*").into();
    }
    let mut names = vec![subject.name.clone()];
    if made_for.is_some() {
        names.push(name);
    }
    let mut resources = Map::new();
    resources.insert("kinds", kinds);
    resources.insert("names", names);
    let mut parts = vec![policy, rule];
    if !subject.namespace.is_empty() {
        resources.insert("namespaces", vec![subject.namespace.clone()]);
        parts.push(&subject.namespace);
    }
    parts.push(&subject.name);
    let filter = Value::from([("resources", resources.into())]);
    let mut rules = vec![Str::new(rule)];
    if made_for.is_some() {
        // Exceptions name auto-generated rules by their own names.
        rules.push(format!("autogen-{rule}").into());
        rules.push(format!("autogen-cronjob-{rule}").into());
    }
    let excepted = Value::from([("policyName", policy.into()), ("ruleNames", rules.into())]);
    let mut spec = Map::new();
    spec.insert("exceptions", Value::array(vec![excepted]));
    spec.insert("match", Value::from([("all", Value::array(vec![filter]))]));
    if let Some(failure) = row.detail.as_ref().and_then(|detail| detail.pod_security.as_ref()) {
        let controls = failure.checks.iter().filter(|check| !check.control.is_empty());
        let controls = controls.map(|check| {
            let mut control = Map::new();
            control.insert("controlName", check.control);
            if !check.images.is_empty() {
                control.insert("images", check.images.iter().map(|image| any_tag(image)).collect::<Vec<_>>());
            }
            Value::object(control)
        });
        spec.insert("podSecurity", Value::array(controls.collect()));
    }
    let label = Value::from([("cleanup.kyverno.io/ttl", Value::from(ttl))]);
    let metadata = Value::from([("labels", label), ("name", parts.join("-").to_lowercase().into())]);
    Value::from([
        ("apiVersion", "kyverno.io/v2".into()),
        ("kind", "PolicyException".into()),
        ("metadata", metadata),
        ("spec", spec.into()),
    ])
}

/// The declared rule of an auto-generated one, and the kinds below the controllers that it is for.
fn declared(rule: &str) -> (&str, Option<&'static [&'static str]>) {
    if let Some(rule) = rule.strip_prefix("autogen-cronjob-") {
        return (rule, Some(&["Job", "Pod"]));
    }
    match rule.strip_prefix("autogen-") {
        Some(rule) => (rule, Some(&["Pod"])),
        None => (rule, None),
    }
}

/// The image with any tag or digest.
fn any_tag(image: &str) -> Str {
    let name = image.split('@').next().unwrap_or(image);
    let path = name.rfind('/').map_or(0, |at| at + 1);
    let name = match name.get(path..).and_then(|last| last.find(':')) {
        Some(at) => name.get(..path + at).unwrap_or(name),
        None => name,
    };
    format!("{name}*").into()
}
