//! Webhooks as the API server stores them: with every field it would default, so that what is stored can be compared
//! with what is wanted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_engine::policy::FailurePolicy;
use ephor_expr::{Map, Value};

use super::settings::{Endpoint, WebhookSettings};

/// The label that holds the name of a namespace. The API server sets it, and users cannot change it.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// One webhook.
#[derive(Debug, Clone)]
pub(super) struct Webhook<'s> {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) failure: FailurePolicy,
    pub(super) timeout: i64,
    pub(super) side_effects: &'static str,
    /// Of a mutating one: whether it is called again when a later one changes the object.
    pub(super) reinvocation: Option<&'static str>,
    pub(super) namespace_selector: Value,
    pub(super) object_selector: Value,
    pub(super) match_conditions: &'s [Value],
    /// Whether rules mean the versions of resources that they name, and no others.
    pub(super) exact: bool,
    pub(super) rules: Value,
}

impl Webhook<'_> {
    pub(super) fn render(self, settings: &WebhookSettings, ca_bundle: &[u8]) -> Value {
        let mut members = Map::from_iter([
            ("admissionReviewVersions".into(), Value::from(vec!["v1"])),
            ("clientConfig".into(), client_config(settings, ca_bundle, &self.path)),
            ("failurePolicy".into(), failure_word(self.failure).into()),
            ("matchPolicy".into(), if self.exact { "Exact" } else { "Equivalent" }.into()),
            ("name".into(), self.name.into()),
            ("namespaceSelector".into(), self.namespace_selector),
            ("objectSelector".into(), self.object_selector),
            ("rules".into(), self.rules),
            ("sideEffects".into(), self.side_effects.into()),
            ("timeoutSeconds".into(), self.timeout.clamp(1, 30).into()),
        ]);
        if let Some(policy) = self.reinvocation {
            members.insert("reinvocationPolicy", policy);
        }
        if !self.match_conditions.is_empty() {
            members.insert("matchConditions", self.match_conditions.to_vec());
        }
        Value::object(members)
    }
}

pub(super) fn failure_word(failure: FailurePolicy) -> &'static str {
    match failure {
        FailurePolicy::Fail => "Fail",
        FailurePolicy::Ignore => "Ignore",
    }
}

fn client_config(settings: &WebhookSettings, ca_bundle: &[u8], path: &str) -> Value {
    let bundle = Value::from(STANDARD.encode(ca_bundle));
    match &settings.endpoint {
        Endpoint::Url(base) => {
            Value::from([("caBundle", bundle), ("url", Value::from(format!("{}{path}", base.trim_end_matches('/'))))])
        }
        Endpoint::Service { port } => Value::from([
            ("caBundle", bundle),
            (
                "service",
                Value::from([
                    ("name", Value::from(settings.service.clone())),
                    ("namespace", Value::from(settings.namespace.clone())),
                    ("path", Value::from(path)),
                    ("port", Value::from(*port)),
                ]),
            ),
        ]),
    }
}

/// `selector`, and not the namespace `own`.
pub(crate) fn outside_of(own: &str, selector: Option<&Value>) -> Value {
    let mut members = selector.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut expressions = members.get("matchExpressions").and_then(Value::as_array).unwrap_or_default().to_vec();
    let excludes = |expression: &Value| {
        let values = expression.get("values").and_then(Value::as_array).unwrap_or_default();
        expression.str_at(&["key"]) == Some(NAMESPACE_NAME)
            && expression.str_at(&["operator"]) == Some("NotIn")
            && values.iter().any(|value| value.as_str() == Some(own))
    };
    if !expressions.iter().any(excludes) {
        expressions.push(Value::from([
            ("key", Value::from(NAMESPACE_NAME)),
            ("operator", Value::from("NotIn")),
            ("values", Value::from(vec![own])),
        ]));
    }
    members.insert("matchExpressions", expressions);
    Value::object(members)
}

/// Makes a webhook see some namespaces only. The API server refuses a request when a match condition fails to evaluate,
/// or when a webhook that must not fail is away: a namespaced policy must bring that on no namespace but its own.
pub(super) fn keep_inside(namespaces: &[&str], webhook: &mut Value) {
    let Some(selector) = webhook.as_object_mut().and_then(|webhook| webhook.get_mut("namespaceSelector")) else {
        return;
    };
    let mut expressions = selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default().to_vec();
    expressions.push(Value::from([
        ("key", Value::from(NAMESPACE_NAME)),
        ("operator", Value::from("In")),
        ("values", Value::from(namespaces.to_vec())),
    ]));
    if let Some(selector) = selector.as_object_mut() {
        selector.insert("matchExpressions", expressions);
    }
}

/// A rule about resources of one group.
pub(super) fn rule(group: &str, versions: &[&str], resources: &[&str], operations: &[&str], scope: &str) -> Value {
    Value::from([
        ("apiGroups", Value::from(vec![group])),
        ("apiVersions", Value::from(versions.to_vec())),
        ("operations", Value::from(operations.to_vec())),
        ("resources", Value::from(resources.to_vec())),
        ("scope", Value::from(scope)),
    ])
}
