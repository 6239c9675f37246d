//! Metrics of policies and their changes.

use ephor_engine::compile::{Body, CompiledRule, Program};
use ephor_engine::outcome::RuleKind;
use ephor_expr::Value;

use super::families::Families;
use super::{Label, labels};
use crate::policies::{Snapshot, StoredPolicy};

/// Counts what was created, updated and deleted between two snapshots.
pub(super) fn count_changes(families: &Families, before: &Snapshot, after: &Snapshot) {
    let count = |policy: &StoredPolicy, change: &str| {
        let mut labels = of_policy(policy).to_vec();
        labels.push(("policy_change_type", change));
        families.policy_changes.inc(&labels);
    };
    for (key, policy) in &after.policies {
        match before.policies.get(key) {
            None => count(policy, "created"),
            Some(old) if old.document.get("spec") != policy.document.get("spec") => count(policy, "updated"),
            Some(_) => {}
        }
    }
    for (key, policy) in &before.policies {
        if !after.policies.contains_key(key) {
            count(policy, "deleted");
            let namespace = labels::namespace(key.namespace.as_deref().unwrap_or_default());
            families.policy_results.forget(namespace, &key.name);
            families.policy_duration.forget(namespace, &key.name);
        }
    }
}

/// Makes `kyverno_policy_rule_info_total` say which rules there are.
pub(super) fn set_rules(families: &Families, snapshot: &Snapshot) {
    families.rule_info.clear();
    for policy in snapshot.policies.values() {
        let conditions = policy.document.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        let is_ready = |c: &Value| c.str_at(&["type"]) == Some("Ready") && c.str_at(&["status"]) == Some("True");
        let ready = if conditions.iter().any(is_ready) { "true" } else { "false" };
        for rule in policy.program.iter().flat_map(|program| &program.rules) {
            let mut labels = of_policy(policy).to_vec();
            labels.extend([
                ("rule_name", rule.name.as_str()),
                ("rule_type", rule_type(rule.body.kind())),
                ("status_ready", ready),
            ]);
            families.rule_info.set(&labels, 1);
        }
    }
}

/// The labels of a policy that is stored, sound or not.
fn of_policy(policy: &StoredPolicy) -> [Label<'_>; 5] {
    match &policy.program {
        Some(program) => of_program(program),
        None => [
            ("policy_validation_mode", "audit"),
            ("policy_type", if policy.key.namespace.is_some() { "namespaced" } else { "cluster" }),
            ("policy_background_mode", "false"),
            ("policy_namespace", labels::namespace(policy.key.namespace.as_deref().unwrap_or_default())),
            ("policy_name", &policy.key.name),
        ],
    }
}

/// The labels of a policy.
pub(super) fn of_program(program: &Program) -> [Label<'_>; 5] {
    let enforces = |rule: &CompiledRule| match &rule.body {
        Body::Validate(body) => body.actions.enforces(),
        Body::Mutate(_) | Body::Generate(_) | Body::Admission(_) | Body::Policy(_) | Body::Delete(_) => false,
    };
    [
        ("policy_validation_mode", if program.rules.iter().any(enforces) { "enforce" } else { "audit" }),
        ("policy_type", if program.id.namespace.is_some() { "namespaced" } else { "cluster" }),
        ("policy_background_mode", if program.background { "true" } else { "false" }),
        ("policy_namespace", labels::namespace(program.id.namespace.as_deref().unwrap_or_default())),
        ("policy_name", &program.id.name),
    ]
}

/// The word for what a rule does.
pub(super) fn rule_type(kind: RuleKind) -> &'static str {
    match kind {
        RuleKind::Mutate => "mutate",
        RuleKind::Validate => "validate",
        RuleKind::Generate => "generate",
        RuleKind::Delete => "delete",
    }
}
