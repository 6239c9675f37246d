//! How a policy wants its webhook to be registered: conditions and selectors that the API server evaluates, and whether
//! it needs a webhook of its own for them.

use std::collections::BTreeSet;

use ephor_expr::{Str, Value};

use crate::cel::{self, Listed, Place, Source};
use crate::policy::{MatchCondition, MatchPolicy, MatchResources, Operation};

/// The most conditions that the API server takes for a webhook.
const MAX_CONDITIONS: usize = 64;

/// On which terms requests for a policy are sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebhookTerms {
    /// How many seconds the API server waits, if the policy says so.
    pub timeout: Option<i64>,
    /// CEL conditions on requests, each with `name` and `expression`. The API server evaluates them before it calls
    /// the policy's own webhook.
    pub match_conditions: Vec<Value>,
    /// Labels that the namespace of the object must have, as a selector.
    pub namespace_selector: Option<Value>,
    /// Labels that the object must have, as a selector.
    pub object_selector: Option<Value>,
    /// Whether rules mean the resources that they name, and no other version of them.
    pub exact: bool,
    /// Of a policy of `policies.kyverno.io` that mutates: whether the API server asks again after others changed the
    /// object. Patches that append would be there twice, so a policy has to ask for it.
    pub reinvoked: bool,
    /// Whether the policy has a webhook of its own.
    pub own: bool,
}

/// What auto-gen made of the conditions of a policy of `policies.kyverno.io`.
pub(super) struct Form<'p> {
    /// The word in front of the names: empty for the declared form.
    pub(super) config: &'static str,
    /// `apiVersion` and kind of the objects that the form is for; empty for the declared form of a policy that has no
    /// others.
    pub(super) kinds: Vec<(&'static str, &'static str)>,
    pub(super) conditions: &'p [MatchCondition],
}

impl WebhookTerms {
    /// The terms of a policy of `policies.kyverno.io` whose constraints stand in `document`.
    ///
    /// The API server evaluates the conditions if it knows all that they mention; then, and if the policy says how long
    /// to wait or which versions count, the policy has a webhook of its own, as upstream's. The conditions come back
    /// compiled, too.
    pub(super) fn of_cel(
        document: &Value,
        timeout: Option<i64>,
        constraints: Option<&MatchResources>,
        forms: &[Form<'_>],
    ) -> (Self, cel::Body) {
        let selector = |key| {
            let selector = document.at(&["spec", "matchConstraints", key])?;
            let is_empty = selector.as_object().is_none_or(|members| members.iter().all(|(_, value)| is_empty(value)));
            (!is_empty).then(|| selector.clone())
        };
        let exact = constraints.and_then(|constraints| constraints.match_policy) == Some(MatchPolicy::Exact);
        let (match_conditions, requests) = offloaded(forms, constraints).unwrap_or_default();
        let terms = Self {
            own: exact || timeout.is_some() || !match_conditions.is_empty(),
            timeout,
            match_conditions,
            namespace_selector: selector("namespaceSelector"),
            object_selector: selector("objectSelector"),
            exact,
            reinvoked: document.str_at(&["spec", "reinvocationPolicy"]) == Some("IfNeeded"),
        };
        (terms, requests)
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_object().is_some_and(ephor_expr::Map::is_empty)
        || value.as_array().is_some_and(<[_]>::is_empty)
}

/// The conditions for the API server; `None` if it could not evaluate all of them.
fn offloaded(forms: &[Form<'_>], constraints: Option<&MatchResources>) -> Option<(Vec<Value>, cel::Body)> {
    let guarded = forms.len() > 1;
    // A guard reads the object, which requests without one have not: the API server would refuse them.
    let has_object = |operation| {
        let rules = constraints.map(|constraints| constraints.resource_rules.as_slice()).unwrap_or_default();
        rules.iter().all(|rule| !rule.means(operation))
    };
    if guarded && ![Operation::Delete, Operation::Connect].into_iter().all(has_object) {
        return None;
    }
    let mut conditions: Vec<MatchCondition> = forms.iter().flat_map(|form| form.conditions(guarded)).collect();
    // The conditions of a webhook cannot read the namespace.
    conditions.retain(|condition| !condition.expression.contains("namespaceObject"));
    let mut names = BTreeSet::new();
    let named = conditions.iter().all(|condition| is_name(&condition.name) && names.insert(&condition.name));
    if conditions.is_empty() || conditions.len() > MAX_CONDITIONS || !named {
        return None;
    }
    let path = ephor_expr::value::Path::root().keys(&["spec", "matchConditions"]);
    let source = Source { conditions: Listed { items: &conditions, path }, ..Source::at(Place::Webhook) };
    let body = cel::Body::compile(&source).ok()?;
    let member = |condition: MatchCondition| {
        Value::from([("expression", Value::from(condition.expression)), ("name", Value::from(condition.name))])
    };
    Some((conditions.iter().cloned().map(member).collect(), body))
}

/// Whether the API server takes a name for a condition.
fn is_name(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(inside) && ends(bytes.first()) && ends(bytes.last())
}

impl Form<'_> {
    /// The conditions, each true for objects that the form is not for.
    fn conditions(&self, guarded: bool) -> Vec<MatchCondition> {
        if !guarded {
            return self.conditions.to_vec();
        }
        let is =
            |(version, kind): &(&str, &str)| format!("(object.apiVersion == '{version}' && object.kind =='{kind}')");
        let kinds = self.kinds.iter().map(is).collect::<Vec<_>>().join(" || ");
        let prefix = if self.config.is_empty() { "autogen".to_owned() } else { format!("autogen-{}", self.config) };
        let guard = |condition: &MatchCondition| MatchCondition {
            name: Str::from(format!("{prefix}-{}", condition.name)),
            expression: Str::from(format!("!({kinds}) || ({})", condition.expression)),
        };
        self.conditions.iter().map(guard).collect()
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use crate::compile::compile;

    /// Whether a policy has a webhook of its own, and the conditions in it.
    fn webhook(spec: &str) -> (bool, Vec<String>) {
        let text = format!(
            "{{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {{name: p}}, spec: {{validations: \
             [{{expression: 'true'}}], {spec}}}}}"
        );
        let compiled = compile(&parse_value(&text).unwrap());
        let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.findings));
        let text = |condition: &ephor_expr::Value, key| condition.str_at(&[key]).unwrap().to_owned();
        let conditions = program.webhook.match_conditions.iter();
        (program.webhook.own, conditions.map(|c| format!("{}: {}", text(c, "name"), text(c, "expression"))).collect())
    }

    #[test]
    fn an_api_server_gets_the_conditions_that_it_can_evaluate() {
        let on = |resource: &str, operations: &str, more: &str| {
            format!(
                "matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [{operations}], \
                 resources: [{resource}]}}]{more}}}"
            )
        };
        let configmaps = |more: &str| on("configmaps", "'*'", more);
        let condition = |expression: &str| format!("matchConditions: [{{name: c, expression: \"{expression}\"}}]");
        for (spec, own, conditions) in [
            (configmaps(""), false, &[][..]),
            (format!("{}, {}", configmaps(""), condition("object.x == 1")), true, &["c: object.x == 1"]),
            // An API server has no such function, and no variable of that name.
            (
                format!("{}, {}", configmaps(""), condition("size(resource.Get('v1', 'pods', 'n', 'p')) == 0")),
                false,
                &[],
            ),
            (format!("{}, {}", configmaps(""), condition("namespaceObject != null")), false, &[]),
            (format!("{}, {}", configmaps(""), "matchConditions: [{name: a b, expression: 'true'}]"), false, &[]),
            (configmaps(", matchPolicy: Exact"), true, &[]),
            (format!("{}, webhookConfiguration: {{timeoutSeconds: 3}}", configmaps("")), true, &[]),
            (
                format!(
                    "{}, {}, autogen: {{podControllers: {{controllers: [jobs, deployments, cronjobs]}}}}",
                    on("pods", "CREATE", ""),
                    condition("has(object.metadata.labels)")
                ),
                true,
                &[
                    "autogen-c: !((object.apiVersion == 'v1' && object.kind =='Pod')) || (has(object.metadata.labels))",
                    "autogen-cronjobs-c: !((object.apiVersion == 'batch/v1' && object.kind =='CronJob')) || \
                     (has(object.spec.jobTemplate.spec.template.metadata.labels))",
                    "autogen-defaults-c: !((object.apiVersion == 'apps/v1' && object.kind =='Deployment') || \
                     (object.apiVersion == 'batch/v1' && object.kind =='Job')) || \
                     (has(object.spec.template.metadata.labels))",
                ],
            ),
            // What is deleted has no object that a guard could read.
            (format!("{}, {}", on("pods", "CREATE, DELETE", ""), condition("request.name != 'x'")), false, &[]),
        ] {
            let (is_own, found) = webhook(&spec);
            assert_eq!(
                (is_own, found.iter().map(String::as_str).collect::<Vec<_>>()),
                (own, conditions.to_vec()),
                "{spec}"
            );
        }
    }
}
