//! Messages for users. Their wording is that of upstream.

use std::collections::BTreeMap;

use ephor_engine::outcome::Verdict;
use ephor_expr::yaml::PrintStyle;
use ephor_expr::{Map, Str, Value};

/// What one rule has to say: policy, rule, text.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleMessage<'s> {
    pub(super) policy: &'s str,
    /// The key to use when another policy has the same name.
    pub(super) policy_key: &'s str,
    pub(super) rule: &'s str,
    pub(super) message: &'s str,
}

/// The denial of a request about an object by what these rules say.
pub(super) fn denial(kind: &str, namespace: &str, name: &str, said: &[RuleMessage<'_>]) -> String {
    // Upstream lets a Policy overwrite a ClusterPolicy of the same name; both are shown here.
    let mut keys: BTreeMap<&str, &str> = BTreeMap::new();
    for one in said {
        let first = keys.entry(one.policy).or_insert(one.policy_key);
        if one.policy_key < *first {
            *first = one.policy_key;
        }
    }
    let mut policies: BTreeMap<&str, Map> = BTreeMap::new();
    for one in said {
        let alone = keys.get(one.policy) == Some(&one.policy_key);
        let shown = if alone { one.policy } else { one.policy_key };
        policies.entry(shown).or_default().insert(one.rule, one.message);
    }
    let policies: Map = policies.into_iter().map(|(key, rules)| (Str::new(key), Value::object(rules))).collect();
    let text = PrintStyle::KUBERNETES.print(&Value::object(policies));
    format!("\n\nresource {kind}/{namespace}/{name} was blocked due to the following policies \n\n{text}")
}

/// The denial of a request that could not be changed as a policy wants.
pub(super) fn mutation_failed(policy: &str, errors: &[(&str, &str)]) -> String {
    let rules: Vec<String> = errors.iter().map(|(rule, message)| format!("{rule}: {message}")).collect();
    format!("mutation policy {policy} error: failed to apply policy {policy} rules [{}]", rules.join(" "))
}

/// What a policy of `policies.kyverno.io` says of a request that it denies or warns of.
pub(super) fn of_cel(policy: &str, verdict: Verdict, message: &str) -> String {
    match verdict {
        Verdict::Error => format!("Policy {policy} error: {}", message.strip_prefix("error: ").unwrap_or(message)),
        _ => format!("Policy {policy} failed: {message}"),
    }
}

/// The denial of a request that a policy of `policies.kyverno.io` could not change.
pub(super) fn cel_mutation_failed(namespace: &str, name: &str, kind: &str, errors: &[(&str, &str)]) -> String {
    let errors: Vec<String> = errors.iter().map(|(policy, message)| format!("Policy {policy}: {message}")).collect();
    let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    format!("Resource: {place}, Kind: {kind}, Errors: [{}]", errors.join("; "))
}

/// A warning about what a rule says.
pub(super) fn warning(policy: &str, rule: &str, message: &str) -> String {
    format!("policy {policy}.{rule}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said<'s>(policy_key: &'s str, rule: &'s str, message: &'s str) -> RuleMessage<'s> {
        let policy = policy_key.rsplit('/').next().unwrap_or_default();
        RuleMessage { policy, policy_key, rule, message }
    }

    #[test]
    fn a_denial_lists_policies_and_rules_in_order() {
        let text = denial(
            "Pod",
            "default",
            "p",
            &[said("b", "r2", "two: x"), said("b", "r1", "one"), said("a", "r", "first\nsecond")],
        );
        insta::assert_snapshot!(text, @r"

        resource Pod/default/p was blocked due to the following policies 

        a:
          r: |-
            first
            second
        b:
          r1: one
          r2: 'two: x'
        ");
    }

    #[test]
    fn policies_of_one_name_do_not_hide_each_other() {
        let text = denial("Pod", "n", "p", &[said("a", "r", "cluster"), said("n/a", "r", "own")]);
        assert!(text.ends_with("a:\n  r: cluster\nn/a:\n  r: own\n"), "{text}");
        let text = denial("Pod", "n", "p", &[said("n/a", "r", "own")]);
        assert!(text.ends_with("policies \n\na:\n  r: own\n"), "{text}");
    }
}
