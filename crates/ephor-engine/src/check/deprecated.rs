//! What upstream still takes and advises against.

use ephor_expr::Value;
use ephor_expr::value::Path;

use crate::diagnostic::Diagnostic;
use crate::policy::Policy;

/// Warns of deprecated fields and words.
pub(super) fn check(policy: &Policy, document: &Value, found: &mut Vec<Diagnostic>) {
    let spec = &policy.spec;
    let path = Path::root().key("spec");
    for (field, is_set, instead) in [
        ("validationFailureAction", spec.validation_failure_action.is_some(), "`validate.failureAction` in the rules"),
        (
            "validationFailureActionOverrides",
            spec.validation_failure_action_overrides.is_some(),
            "`validate.failureActionOverrides` in the rules",
        ),
        ("failurePolicy", spec.failure_policy.is_some(), "`webhookConfiguration.failurePolicy`"),
        ("webhookTimeoutSeconds", spec.webhook_timeout_seconds.is_some(), "`webhookConfiguration.timeoutSeconds`"),
        ("generateExisting", spec.generate_existing.is_some(), "`generate.generateExisting` in the rules"),
        (
            "mutateExistingOnPolicyUpdate",
            spec.mutate_existing_on_policy_update.is_some(),
            "`mutate.mutateExistingOnPolicyUpdate` in the rules",
        ),
    ] {
        if is_set {
            let message = format!("`{field}` is deprecated");
            let finding = Diagnostic::warning("deprecated-field", path.key(field), message).at_key();
            found.push(finding.with_help(format!("use {instead}")));
        }
    }
    let Some(spec) = document.get("spec") else { return };
    action(spec, "validationFailureAction", &path, found);
    overrides(spec, "validationFailureActionOverrides", &path, found);
    for (i, rule) in spec.get("rules").and_then(Value::as_array).unwrap_or_default().iter().enumerate() {
        if let Some(validate) = rule.get("validate") {
            let path = path.key("rules").index(i).key("validate");
            action(validate, "failureAction", &path, found);
            overrides(validate, "failureActionOverrides", &path, found);
        }
    }
}

fn overrides(block: &Value, key: &str, path: &Path, found: &mut Vec<Diagnostic>) {
    for (i, entry) in block.get(key).and_then(Value::as_array).unwrap_or_default().iter().enumerate() {
        action(entry, "action", &path.key(key).index(i), found);
    }
}

/// The old spellings `audit` and `enforce`.
fn action(block: &Value, key: &str, path: &Path, found: &mut Vec<Diagnostic>) {
    let instead = match block.str_at(&[key]) {
        Some("audit") => "Audit",
        Some("enforce") => "Enforce",
        _ => return,
    };
    let message = format!("`{}` is deprecated", instead.to_lowercase());
    let finding = Diagnostic::warning("deprecated-value", path.key(key), message);
    found.push(finding.with_help(format!("write `{instead}`")));
}
