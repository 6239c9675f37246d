//! What the document of a policy says of its generate rules, beside what they compile to.
//!
//! A `ClusterPolicy` or `Policy` has a list of rules. A policy of `policies.kyverno.io` is one rule by itself, which is
//! called as the policy is.

use std::collections::BTreeSet;

use ephor_engine::compile::CompiledRule;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::content::fingerprint;
use ephor_runtime::policies::StoredPolicy;
use ephor_runtime::traits::rule_document;

/// What the document says of one generate rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleText {
    /// Fingerprint of its targets and sources. What a rule made under another one stays when it is not rendered any
    /// more. Empty where expressions give them: then what is not rendered any more goes.
    pub references: Str,
    /// Fingerprint of what it selects, and of whether it stays with that.
    pub selection: Str,
    /// Whether a request about a trigger makes its objects anew although they do not follow it: upstream has it so for
    /// policies of `policies.kyverno.io`.
    pub renewed: bool,
}

impl RuleText {
    /// What a policy says of a compiled rule.
    pub fn of(policy: &Value, rule: &CompiledRule) -> Self {
        if rule.body.constraints().is_some() {
            return Self { references: Str::default(), selection: selection_of_policy(policy), renewed: true };
        }
        let document = rule_document(policy, &rule.declared);
        Self { references: references(document).into(), selection: selection_of_rule(document), renewed: false }
    }
}

/// The names of all rules in the document of a policy, also of faulty ones.
pub fn declared(policy: &StoredPolicy) -> BTreeSet<Str> {
    if policy.key.kind.is_of_cel() {
        return BTreeSet::from([policy.key.name.clone()]);
    }
    rules(policy).iter().filter_map(|rule| rule.str_at(&["name"]).map(Str::new)).collect()
}

/// Whether the document of a policy has generate rules, whatever they compile to.
pub fn generates(policy: &StoredPolicy) -> bool {
    if policy.key.kind.is_of_cel() {
        return policy.document.at(&["spec", "generate"]).is_some();
    }
    rules(policy).iter().any(|rule| rule.get("generate").is_some())
}

fn rules(policy: &StoredPolicy) -> &[Value] {
    policy.document.at(&["spec", "rules"]).and_then(Value::as_array).unwrap_or_default()
}

fn selection_of_rule(rule: &Value) -> Str {
    let mut parts: Vec<Value> = ["match", "exclude", "preconditions", "celPreconditions", "context"]
        .iter()
        .map(|part| rule.get(part).cloned().unwrap_or_default())
        .collect();
    parts.push(rule.at(&["generate", "synchronize"]).cloned().unwrap_or_default());
    fingerprint(&Value::array(parts)).into()
}

fn selection_of_policy(policy: &Value) -> Str {
    let spec = |keys: &[&str]| policy.get("spec").and_then(|spec| spec.at(keys)).cloned().unwrap_or_default();
    let conditions = spec(&["matchConditions"]);
    let mut parts = vec![spec(&["matchConstraints"]), spec(&["evaluation", "synchronize", "enabled"])];
    if conditions.as_array().is_some_and(|conditions| !conditions.is_empty()) {
        // Conditions may read variables.
        parts.extend([conditions, spec(&["variables"])]);
    }
    fingerprint(&Value::array(parts)).into()
}

const TARGET: [&str; 6] = ["apiVersion", "kind", "namespace", "name", "clone", "cloneList"];

/// Fingerprint of what a rule says about targets and sources.
fn references(rule: &Value) -> String {
    let part = |block: &Value| -> Value {
        let members = TARGET.iter().filter_map(|key| Some((Str::new_static(key), block.get(key)?.clone())));
        Value::object(members.collect::<Map>())
    };
    let generate = rule.get("generate").cloned().unwrap_or_default();
    let loops = generate.get("foreach").and_then(Value::as_array).unwrap_or_default();
    let mut parts = vec![part(&generate)];
    parts.extend(loops.iter().map(part));
    fingerprint(&Value::array(parts))
}
