//! The labels that tie a downstream object to its policy, rule, trigger and source.

use ephor_expr::{Map, Str, Value};

use crate::matching::Gvk;

/// Who wants a downstream.
pub(super) struct Origin<'o> {
    pub(super) policy: &'o str,
    pub(super) policy_namespace: &'o str,
    pub(super) rule: &'o str,
    pub(super) trigger: &'o Value,
}

/// Puts the labels on `object`.
pub(super) fn mark(object: &mut Value, origin: &Origin<'_>, source: Option<&Value>) {
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata");
    if metadata.as_object().is_none() {
        *metadata = Value::object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else { return };
    let labels = metadata.entry("labels");
    if labels.as_object().is_none() {
        *labels = Value::object(Map::new());
    }
    let Some(labels) = labels.as_object_mut() else { return };
    labels.insert("app.kubernetes.io/managed-by", "kyverno");
    labels.insert("generate.kyverno.io/policy-name", origin.policy);
    labels.insert("generate.kyverno.io/policy-namespace", origin.policy_namespace);
    labels.insert("generate.kyverno.io/rule-name", origin.rule);
    tie(labels, "trigger", origin.trigger);
    if let Some(source) = source {
        tie(labels, "source", source);
    }
}

fn tie(labels: &mut Map, role: &str, object: &Value) {
    let gvk = Gvk::of_object(object);
    let text = |keys: &[&str]| Str::new(object.str_at(keys).unwrap_or_default());
    for (part, value) in [
        ("group", gvk.group),
        ("version", gvk.version),
        ("kind", gvk.kind),
        ("namespace", text(&["metadata", "namespace"])),
        ("uid", text(&["metadata", "uid"])),
    ] {
        labels.insert(format!("generate.kyverno.io/{role}-{part}"), value);
    }
}
