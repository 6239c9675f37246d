//! What a violation does: Enforce or Audit, by rule, policy and namespace.

use ephor_expr::scalar::wildcard::Wildcard;
use ephor_expr::value::Path;
use ephor_expr::{Map, Str};

use crate::matching::{Selector, SelectorError};
use crate::policy::{FailureAction, FailureActionOverride, Spec, Validate};

/// The actions of one rule, most specific first.
#[derive(Debug, Clone, Default)]
pub struct FailureActions {
    rule_overrides: Vec<Override>,
    rule: Option<FailureAction>,
    spec_overrides: Vec<Override>,
    spec: Option<FailureAction>,
}

#[derive(Debug, Clone)]
struct Override {
    action: FailureAction,
    namespaces: Vec<Wildcard>,
    selector: Option<Selector>,
}

impl FailureActions {
    /// Every violation denies.
    pub(super) fn enforcing() -> Self {
        Self { rule: Some(FailureAction::Enforce), ..Self::default() }
    }

    /// The actions of a validate rule under its policy's spec; `rule_path` is where the rule's `validate` stands.
    pub fn compile(spec: &Spec, validate: &Validate, rule_path: &Path) -> Result<Self, SelectorError> {
        let spec_path = Path::root().keys(&["spec", "validationFailureActionOverrides"]);
        Ok(Self {
            rule_overrides: overrides(
                validate.failure_action_overrides.as_ref(),
                &rule_path.key("failureActionOverrides"),
            )?,
            rule: validate.failure_action,
            spec_overrides: overrides(spec.validation_failure_action_overrides.as_ref(), &spec_path)?,
            spec: spec.validation_failure_action,
        })
    }

    /// What a violation in `namespace` does: the rule's overrides, the rule's action, the policy's overrides, the
    /// policy's action, Audit. An override with namespaces and a selector needs both.
    pub fn action(&self, namespace: &str, labels: Option<&Map>) -> FailureAction {
        let first = |list: &[Override]| list.iter().find(|o| o.applies(namespace, labels)).map(|o| o.action);
        first(&self.rule_overrides)
            .or(self.rule)
            .or_else(|| first(&self.spec_overrides))
            .or(self.spec)
            .unwrap_or_default()
    }

    /// Whether an admission request waits for the rule in `namespace` (Enforce), or the rule is judged after the reply
    /// (Audit): here the policy's overrides come before the rule's own action, and an override applies when it asks for
    /// nothing, or its namespaces fit, or its selector does.
    pub fn urgency(&self, namespace: &str, labels: Option<&Map>) -> FailureAction {
        let list = if self.rule_overrides.is_empty() { &self.spec_overrides } else { &self.rule_overrides };
        let first = list.iter().find(|o| o.touches(namespace, labels)).map(|o| o.action);
        first.or(self.rule).or(self.spec).unwrap_or_default()
    }

    /// Whether the rule or the policy says Enforce, overrides aside: what `allowExistingViolations` looks at.
    pub fn enforces(&self) -> bool {
        self.rule.or(self.spec) == Some(FailureAction::Enforce)
    }

    /// Whether any namespace can get Enforce: then the rule is evaluated before the reply.
    pub fn may_enforce(&self) -> bool {
        self.enforces()
            || self.rule_overrides.iter().chain(&self.spec_overrides).any(|o| o.action == FailureAction::Enforce)
    }
}

impl Override {
    fn touches(&self, namespace: &str, labels: Option<&Map>) -> bool {
        let free = self.namespaces.is_empty() && self.selector.is_none();
        let named = || self.namespaces.iter().any(|w| w.matches(namespace));
        free || !namespace.is_empty() && (named() || self.selector.as_ref().is_some_and(|s| s.matches(labels)))
    }

    fn applies(&self, namespace: &str, labels: Option<&Map>) -> bool {
        let named = self.namespaces.is_empty() || self.namespaces.iter().any(|w| w.matches(namespace));
        named && self.selector.as_ref().is_none_or(|s| !namespace.is_empty() && s.matches(labels))
    }
}

fn overrides(list: Option<&Vec<FailureActionOverride>>, path: &Path) -> Result<Vec<Override>, SelectorError> {
    let entries = list.into_iter().flatten().enumerate();
    entries
        .map(|(i, entry)| {
            let at = path.index(i).key("namespaceSelector");
            Ok(Override {
                action: entry.action.unwrap_or_default(),
                namespaces: entry.namespaces.iter().flatten().map(|n: &Str| Wildcard::new(n)).collect(),
                selector: entry.namespace_selector.as_ref().map(|s| Selector::compile(s, &at)).transpose()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use FailureAction::{Audit, Enforce};

    use super::*;

    fn actions(spec: &str, validate: &str) -> FailureActions {
        let value = |json: &str| ephor_expr::Value::from_json(json).unwrap();
        let spec = ephor_expr::value::decode(&value(spec)).unwrap();
        let validate = ephor_expr::value::decode(&value(validate)).unwrap();
        FailureActions::compile(&spec, &validate, &Path::root()).unwrap()
    }

    #[test]
    fn urgency_and_action_read_overrides_in_their_own_ways() {
        let spec = r#"{"validationFailureActionOverrides":[{"action":"Audit","namespaces":["a*"]}]}"#;
        let both = r#"{"failureActionOverrides":[
            {"action":"Enforce","namespaces":["a"],"namespaceSelector":{"matchLabels":{"x":"y"}}}]}"#;
        let labels: Map = [(Str::new("x"), ephor_expr::Value::from("y"))].into_iter().collect();
        let none = Map::new();
        for (spec, validate, namespace, labels, urgency, action) in [
            // The policy's override beats the rule's own action only in urgency.
            (spec, r#"{"failureAction":"Enforce"}"#, "a1", &none, Audit, Enforce),
            (spec, r#"{"failureAction":"Enforce"}"#, "b", &none, Enforce, Enforce),
            // One of namespace and selector is enough for urgency, the action needs both.
            ("{}", both, "a", &none, Enforce, Audit),
            ("{}", both, "b", &labels, Enforce, Audit),
            ("{}", both, "a", &labels, Enforce, Enforce),
            ("{}", both, "", &labels, Audit, Audit),
            // What has no namespace meets a `*` only in the action.
            (
                r#"{"validationFailureActionOverrides":[{"action":"Enforce","namespaces":["*"]}]}"#,
                "{}",
                "",
                &none,
                Audit,
                Enforce,
            ),
            (r#"{"validationFailureActionOverrides":[{"action":"Enforce"}]}"#, "{}", "", &none, Enforce, Enforce),
        ] {
            let actions = actions(spec, validate);
            let got = (actions.urgency(namespace, Some(labels)), actions.action(namespace, Some(labels)));
            assert_eq!(got, (urgency, action), "{spec} {validate} in `{namespace}`");
        }
    }
}
