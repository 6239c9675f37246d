//! The labels that tie a downstream object to its policy, rule, trigger and source.

use ephor_expr::{Map, Str, Value};

use crate::matching::Gvk;
use crate::policy::PolicyId;

/// Who wants a downstream.
pub(super) struct Origin<'o> {
    pub(super) policy: &'o str,
    pub(super) policy_namespace: &'o str,
    pub(super) rule: &'o str,
    pub(super) trigger: &'o Value,
}

/// The longest value of a label.
const MAX_LABEL: usize = 63;

/// Puts the labels on `object`.
pub(super) fn mark(object: &mut Value, origin: &Origin<'_>, source: Option<&Value>) {
    let Some(labels) = labels_of(object) else { return };
    labels.insert("app.kubernetes.io/managed-by", "kyverno");
    labels.insert("generate.kyverno.io/policy-name", origin.policy);
    labels.insert("generate.kyverno.io/policy-namespace", origin.policy_namespace);
    labels.insert("generate.kyverno.io/rule-name", origin.rule);
    tie(labels, "trigger", origin.trigger);
    if let Some(source) = source {
        tie(labels, "source", source);
    }
}

/// Puts the labels of a `GeneratingPolicy` on `object`; `source` is the UID of what it is a copy of.
pub(super) fn mark_by_policy(object: &mut Value, policy: &PolicyId, trigger: &Value, source: Option<&str>) {
    let Some(labels) = labels_of(object) else { return };
    // A copy of what a rule made is not that rule's.
    for label in ["rule-name", "policy-namespace"] {
        labels.remove(&format!("generate.kyverno.io/{label}"));
    }
    labels.insert("app.kubernetes.io/managed-by", "kyverno");
    labels.insert("generate.kyverno.io/policy-name", policy.name.clone());
    // Of two policies of one name, that of a namespace says where it is.
    if let Some(namespace) = &policy.namespace {
        labels.insert("generate.kyverno.io/policy-namespace", namespace.clone());
    }
    tie(labels, "trigger", trigger);
    let name = trigger.str_at(&["metadata", "name"]).unwrap_or_default();
    if name.len() <= MAX_LABEL {
        labels.insert("generate.kyverno.io/trigger-name", name);
    }
    if let Some(source) = source {
        labels.insert("generate.kyverno.io/source-uid", source);
    }
}

fn labels_of(object: &mut Value) -> Option<&mut Map> {
    let metadata = object.as_object_mut()?.entry("metadata");
    if metadata.as_object().is_none() {
        *metadata = Value::object(Map::new());
    }
    let labels = metadata.as_object_mut()?.entry("labels");
    if labels.as_object().is_none() {
        *labels = Value::object(Map::new());
    }
    labels.as_object_mut()
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
