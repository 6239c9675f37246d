//! The policy as a whole, and the rules one by one.

use std::collections::BTreeSet;

use ephor_expr::scalar::wildcard;
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::{autogen, bodies, deprecated, generate, match_conditions, selection, subresources, variables};
use crate::diagnostic::Diagnostic;
use crate::policy::{FailureAction, FailureActionOverride, Policy, PolicyKind, Rule};
use crate::rules::references;

/// Names of policies and rules have at most this many bytes: they become label values.
const MAX_NAME: usize = 63;

/// Everything wrong with a policy that can be told without a cluster. `document` is what it was decoded from.
pub fn check_policy(policy: &Policy, document: &Value) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    metadata(policy, &mut found);
    settings(policy, &mut found);
    deprecated::check(policy, document, &mut found);
    autogen::check(policy, &mut found);
    let rules = Path::root().keys(&["spec", "rules"]);
    if policy.spec.rules.is_empty() {
        found.push(Diagnostic::error("no-rules", rules.clone(), "a policy needs at least one rule"));
    }
    let bans_user = variables::bans_user(policy);
    let mut names = BTreeSet::new();
    for (i, rule) in policy.spec.rules.iter().enumerate() {
        let path = rules.index(i);
        if !names.insert(&rule.name) {
            let message = format!("Duplicate rule name: '{}'", rule.name);
            found.push(Diagnostic::error("duplicate-rule", path.key("name"), message));
        }
        let document = path.lookup(document).unwrap_or(&Value::Null);
        check_rule(policy, rule, document, &path, &mut found);
        variables::check(rule, document, bans_user, &path, &mut found);
    }
    found
}

fn metadata(policy: &Policy, found: &mut Vec<Diagnostic>) {
    let path = Path::root().key("metadata");
    let group = policy.api_version.as_str();
    if !matches!(group, "kyverno.io/v1" | "kyverno.io/v2beta1") {
        let message = format!("`{group}` is no version of this kind: use `kyverno.io/v1`");
        found.push(Diagnostic::error("api-version", Path::root().key("apiVersion"), message));
    }
    let name = &policy.metadata.name;
    if name.is_empty() {
        found.push(Diagnostic::error("no-name", path.clone(), "a policy needs a name"));
    } else if name.len() > MAX_NAME {
        let message = format!("policy name `{name}` is longer than {MAX_NAME} characters");
        found.push(Diagnostic::error("long-name", path.key("name"), message));
    }
    if policy.kind == PolicyKind::ClusterPolicy && policy.metadata.namespace.as_ref().is_some_and(|ns| !ns.is_empty()) {
        let message = "a ClusterPolicy has no namespace";
        let finding = Diagnostic::error("namespaced-cluster-policy", path.key("namespace"), message);
        found.push(finding.with_help("remove it, or make this a `Policy`"));
    }
}

fn settings(policy: &Policy, found: &mut Vec<Diagnostic>) {
    let spec = &policy.spec;
    let path = Path::root().key("spec");
    let background = spec.background.unwrap_or(true);
    if spec.generate_existing_on_policy_update.is_some() {
        let message = "`generateExistingOnPolicyUpdate` is no longer supported";
        let finding = Diagnostic::error("removed-field", path.key("generateExistingOnPolicyUpdate"), message).at_key();
        found.push(finding.with_help("use `generate.generateExisting` in the rule"));
    }
    if spec.admission == Some(false) {
        if !background {
            let message = "disabling both admission and background leaves nothing to do";
            found.push(Diagnostic::error("never-runs", path.key("admission"), message));
        }
        if spec.rules.iter().any(|r| r.mutate.is_some() || r.generate.is_some() || r.verify_images.is_some()) {
            let message = "admission can only be disabled for policies that only validate";
            found.push(Diagnostic::error("admission-needed", path.key("admission"), message));
        }
    }
    if let Some(webhook) = &spec.webhook_configuration {
        let at = path.key("webhookConfiguration");
        if webhook.timeout_seconds.is_some() && spec.webhook_timeout_seconds.is_some() {
            let message = "`webhookTimeoutSeconds` and `webhookConfiguration.timeoutSeconds` are both set";
            found.push(Diagnostic::error("set-twice", path.key("webhookTimeoutSeconds"), message).at_key());
        }
        if webhook.failure_policy.is_some() && spec.failure_policy.is_some() {
            let message = "`failurePolicy` and `webhookConfiguration.failurePolicy` are both set";
            found.push(Diagnostic::error("set-twice", path.key("failurePolicy"), message).at_key());
        }
        timeout(webhook.timeout_seconds, &at.key("timeoutSeconds"), found);
        if let Some(conditions) = webhook.match_conditions.as_ref().filter(|c| !c.is_empty()) {
            match_conditions::check(conditions, &at.key("matchConditions"), found);
        }
    }
    timeout(spec.webhook_timeout_seconds, &path.key("webhookTimeoutSeconds"), found);
    if let Some(overrides) = &spec.validation_failure_action_overrides {
        let at = path.key("validationFailureActionOverrides");
        if policy.kind == PolicyKind::Policy {
            let message = "a Policy applies to its own namespace, so it has no overrides for others";
            found.push(Diagnostic::error("namespaced-overrides", at, message));
        } else {
            conflicting_overrides(overrides, &at, found);
        }
    }
}

fn timeout(seconds: Option<i64>, path: &Path, found: &mut Vec<Diagnostic>) {
    if let Some(seconds) = seconds.filter(|s| !(1..=30).contains(s)) {
        let message = format!("timeout of {seconds} s is not between 1 and 30");
        found.push(Diagnostic::error("timeout", path.clone(), message));
    }
}

/// One namespace under both actions; patterns conflict when one fits the other. There is one finding for each namespace
/// that is enforced, about the first that contradicts it: a list of pairs could be the square of what was written.
fn conflicting_overrides(overrides: &[FailureActionOverride], path: &Path, found: &mut Vec<Diagnostic>) {
    let of = |action: FailureAction| {
        let own = overrides.iter().filter(move |o| o.action.unwrap_or_default() == action);
        own.flat_map(|o| o.namespaces.iter().flatten()).collect::<BTreeSet<&Str>>()
    };
    let (enforced, audited) = (of(FailureAction::Enforce), of(FailureAction::Audit));
    let patterns: Vec<&Str> = audited.iter().copied().filter(|name| wildcard::has_wildcard(name)).collect();
    for enforced in enforced {
        let contradicts = |audited: &&Str| wildcard::matches(enforced, audited) || wildcard::matches(audited, enforced);
        let contradicting = if wildcard::has_wildcard(enforced) {
            audited.iter().copied().find(contradicts)
        } else {
            audited.get(enforced).copied().or_else(|| patterns.iter().copied().find(contradicts))
        };
        if let Some(audited) = contradicting {
            let message = format!("conflicting namespaces found: `{enforced}` and `{audited}` have both actions");
            found.push(Diagnostic::error("conflicting-overrides", path.clone(), message));
        }
    }
}

/// References in patterns by a path from the root: when a policy is loaded the root is the rule, when it runs it is the
/// pattern, so that they never work. Relative ones are the same from both, and reported where patterns are compiled.
fn absolute_references(rule: &Value, path: &Path, found: &mut Vec<Diagnostic>) {
    for key in ["pattern", "anyPattern"] {
        let at = Path::root().keys(&["validate", key]);
        let patterns = match at.lookup(rule) {
            Some(Value::Array(items)) if key == "anyPattern" => (0..items.len()).map(|i| at.index(i)).collect(),
            Some(_) => vec![at],
            None => continue,
        };
        for at in patterns {
            let from_pattern = at.lookup(rule).map(references::resolve);
            if let (Some(Ok(_)), [error, ..]) = (from_pattern, references::check(rule, &at).as_slice()) {
                let place = Path(path.0.iter().chain(&at.0).cloned().collect());
                found.push(Diagnostic::error("reference", place, error.to_string()));
            }
        }
    }
}

/// The finding for a part of the language that Ephor does not enforce yet.
pub(super) fn not_built(field: &str, path: Path) -> Diagnostic {
    let message = format!("`{field}` is not supported yet");
    Diagnostic::error("not-supported", path, message).at_key()
}

fn check_rule(policy: &Policy, rule: &Rule, document: &Value, path: &Path, found: &mut Vec<Diagnostic>) {
    if rule.name.is_empty() {
        found.push(Diagnostic::error("no-name", path.clone(), "a rule needs a name"));
    } else if rule.name.len() > MAX_NAME {
        let message = format!("rule name `{}` is longer than {MAX_NAME} characters", rule.name);
        found.push(Diagnostic::error("long-name", path.key("name"), message));
    }
    if rule.cel_preconditions.is_some() && rule.validate.as_ref().is_none_or(|validate| validate.cel.is_none()) {
        let message = "celPrecondition can only be used with validate.cel";
        found.push(Diagnostic::error("cel-preconditions", path.key("celPreconditions"), message).at_key());
    }
    for (field, is_set) in
        [("verifyImages", rule.verify_images.is_some()), ("imageExtractors", rule.image_extractors.is_some())]
    {
        if is_set {
            found.push(not_built(field, path.key(field)));
        }
    }
    let bodies: Vec<&str> = [
        ("validate", rule.validate.is_some()),
        ("mutate", rule.mutate.is_some()),
        ("generate", rule.generate.is_some()),
        ("verifyImages", rule.verify_images.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, is_set)| is_set.then_some(name))
    .collect();
    match bodies.as_slice() {
        [] => {
            let message = format!("No operation defined in the rule '{}'", rule.name);
            let finding = Diagnostic::error("no-operation", path.clone(), message);
            found.push(finding.with_help("add one of `validate`, `mutate`, `generate`"));
        }
        [_] => {}
        several => {
            let message = format!(
                "Multiple operations defined in the rule '{}', only one operation ({}) is allowed per rule",
                rule.name,
                several.join(", ")
            );
            found.push(Diagnostic::error("several-operations", path.clone(), message));
        }
    }
    selection::check(policy, rule, path, found);
    bodies::check(policy, rule, path, found);
    absolute_references(document, path, found);
    subresources::check(rule, path, found);
    if let Some(generated) = &rule.generate {
        generate::check_name(rule, path, found);
        generate::check(policy, rule, generated, &path.key("generate"), found);
        generate::varying(rule, document, path, found);
    }
}
