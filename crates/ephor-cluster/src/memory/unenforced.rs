//! Rules in objects that a real API server acts upon, and this cluster only stores. The writer of such an object
//! gets a warning, because an object that is not judged would look as if it had passed.

use ephor_expr::Value;

use crate::resource::Resource;

/// What to warn of when `object` is written.
pub(super) fn warnings(resource: &Resource, object: &Value) -> Vec<String> {
    let kind = resource.kind.as_str();
    match (resource.group.as_str(), kind) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            vec![format!("this {kind} is stored, but nothing here calls its webhooks")]
        }
        _ => Vec::new(),
    }
}

fn definition(object: &Value) -> Vec<String> {
    if object.str_at(&["spec", "conversion", "strategy"]) == Some("Webhook") {
        return vec!["the conversion webhook is stored, but nothing here calls it".to_owned()];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::Discovery;

    #[test]
    fn what_is_stored_only_is_warned_of() {
        for (kind, object, want) in [
            (
                "CustomResourceDefinition",
                r#"{"spec":{"conversion":{"strategy":"Webhook"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"spec":{"x-kubernetes-validations":[{"rule":"false"}]}}}}},{"name":"v2","schema":{"openAPIV3Schema":{"properties":{}}}}]}}"#,
                &["the conversion webhook is stored, but nothing here calls it"][..],
            ),
            ("CustomResourceDefinition", r#"{"spec":{"versions":[{"name":"v1"}]}}"#, &[]),
            ("MutatingAdmissionPolicy", "{}", &[]),
            (
                "MutatingWebhookConfiguration",
                "{}",
                &["this MutatingWebhookConfiguration is stored, but nothing here calls its webhooks"],
            ),
        ] {
            let group = match kind {
                "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
                "MutatingAdmissionPolicy" => "admissionregistration.k8s.io/v1beta1",
                _ => "admissionregistration.k8s.io/v1",
            };
            let discovery = Discovery::kubernetes();
            let resource = discovery.find(group, kind).unwrap();
            assert_eq!(warnings(resource, &Value::from_json(object).unwrap()), want, "{kind}");
        }
    }
}
