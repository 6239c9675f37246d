//! Fields of `spec` that have moved.

use ephor_expr::Value;
use ephor_expr::value::Path;

use super::Fix;
use super::document::{Document, Written};

/// Settings of webhooks, and of what happens when a policy changes.
pub(super) fn moved(document: &Document<'_>) -> Vec<Fix> {
    if !document.is_policy() {
        return Vec::new();
    }
    let fixes = [
        without_effect(document),
        to_webhook(document, "failurePolicy", "failurePolicy"),
        to_webhook(document, "webhookTimeoutSeconds", "timeoutSeconds"),
        to_rules(document, "generateExistingOnPolicyUpdate", "generate", "generateExisting"),
        to_rules(document, "generateExisting", "generate", "generateExisting"),
        to_rules(document, "mutateExistingOnPolicyUpdate", "mutate", "mutateExistingOnPolicyUpdate"),
    ];
    fixes.into_iter().flatten().collect()
}

fn without_effect(document: &Document<'_>) -> Option<Fix> {
    let path = Path::root().keys(&["spec", "schemaValidation"]);
    document.get(&path)?;
    let edit = document.remove(&path)?;
    Some(Fix { message: "`schemaValidation` has no effect".to_owned(), path, edits: vec![edit] })
}

/// Moves a field into `webhookConfiguration`.
fn to_webhook(document: &Document<'_>, old: &str, new: &str) -> Option<Fix> {
    let spec = Path::root().key("spec");
    let path = spec.key(old);
    let text = scalar(document.get(&path)?)?;
    let webhook = spec.key("webhookConfiguration");
    let insert = match document.get(&webhook) {
        None if document.in_braces(&spec) => {
            document.insert(&spec, "webhookConfiguration", &Written::Inline(format!("{{{new}: {text}}}")))
        }
        None => document.insert(&spec, "webhookConfiguration", &Written::Block(vec![format!("{new}: {text}")])),
        Some(config) if config.get(new).is_some() => return None,
        Some(_) => document.insert(&webhook, new, &Written::Inline(text)),
    };
    let message = format!("`{old}` is deprecated: use `webhookConfiguration.{new}`");
    Some(Fix { message, edits: vec![insert?, document.remove(&path)?], path })
}

/// Moves a field into the rules of its type that do not have it.
fn to_rules(document: &Document<'_>, old: &str, block: &str, new: &str) -> Option<Fix> {
    let path = Path::root().keys(&["spec", old]);
    let text = scalar(document.get(&path)?)?;
    let mut edits = vec![document.remove(&path)?];
    for rule in document.rules() {
        let body = rule.key(block);
        if document.get(&body).is_some_and(|body| body.get(new).is_none()) {
            edits.push(document.insert(&body, new, &Written::Inline(text.clone()))?);
        }
    }
    // Without a rule of its type the field is of no use, and may be a mistake that its author should see.
    let message = format!("`spec.{old}` is deprecated: use `{block}.{new}` in the rules");
    (edits.len() > 1).then_some(Fix { message, path, edits })
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Bool(_) | Value::Int(_) => Some(value.to_json()),
        Value::String(text) if text.bytes().all(|b| b.is_ascii_alphabetic()) => Some(text.to_string()),
        _ => None,
    }
}
