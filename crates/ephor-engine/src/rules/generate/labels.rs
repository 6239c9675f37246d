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

/// The labels of an object, without those that tie it to a rule. A copy of what a rule made is not that rule's, and
/// users cannot say where an object comes from.
fn labels_of(object: &mut Value) -> Option<&mut Map> {
    let metadata = object.as_object_mut()?.entry("metadata");
    if metadata.as_object().is_none() {
        *metadata = Value::object(Map::new());
    }
    let labels = metadata.as_object_mut()?.entry("labels");
    if labels.as_object().is_none() {
        *labels = Value::object(Map::new());
    }
    let labels = labels.as_object_mut()?;
    labels.retain(|label, _| !label.starts_with("generate.kyverno.io/"));
    Some(labels)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_other_rules_do_not_come_along() {
        let forged = r#"{"kind":"Secret","metadata":{"labels":{"a":"b","generate.kyverno.io/source-uid":"forged",
            "generate.kyverno.io/rule-name":"other","generate.kyverno.io/trigger-name":"other"}}}"#;
        let trigger = Value::from_json(r#"{"kind":"ConfigMap","metadata":{"name":"t","uid":"u"}}"#).unwrap();
        let label = |object: &Value, name: &str| object.at(&["metadata", "labels", name]).cloned();
        for by_policy in [false, true] {
            let mut object = Value::from_json(forged).unwrap();
            if by_policy {
                mark_by_policy(&mut object, &PolicyId::kyverno("", "p"), &trigger, None);
            } else {
                let origin = Origin { policy: "p", policy_namespace: "", rule: "r", trigger: &trigger };
                mark(&mut object, &origin, None);
            }
            assert_eq!(label(&object, "a"), Some("b".into()));
            assert_eq!(label(&object, "generate.kyverno.io/source-uid"), None);
            assert_ne!(label(&object, "generate.kyverno.io/rule-name"), Some("other".into()));
            assert_eq!(label(&object, "generate.kyverno.io/trigger-uid"), Some("u".into()));
        }
    }
}
