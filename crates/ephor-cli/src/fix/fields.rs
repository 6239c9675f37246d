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
    let carried = !document.in_braces(if document.get(&webhook).is_some() { &webhook } else { &spec });
    let comment = if carried { document.comment(&path) } else { "" };
    let insert = match document.get(&webhook) {
        None if !carried => {
            document.insert(&spec, "webhookConfiguration", &Written::Inline(format!("{{{new}: {text}}}")))
        }
        None => {
            let line = format!("{new}: {text} {comment}").trim_end().to_owned();
            document.insert(&spec, "webhookConfiguration", &Written::Block(vec![line]))
        }
        Some(config) if config.get(new).is_some() => return None,
        Some(_) => document.insert_with(&webhook, new, &Written::Inline(text), comment),
    };
    let removal = if carried { document.take(&path)? } else { document.remove(&path)? };
    let message = format!("`{old}` is deprecated: use `webhookConfiguration.{new}`");
    Some(Fix { message, edits: vec![insert?, removal], path })
}

/// Moves a field into the rules of its type that do not have it.
fn to_rules(document: &Document<'_>, old: &str, block: &str, new: &str) -> Option<Fix> {
    let path = Path::root().keys(&["spec", old]);
    let text = scalar(document.get(&path)?)?;
    let bodies = document.rules().into_iter().map(|rule| rule.key(block));
    let bodies: Vec<Path> =
        bodies.filter(|body| document.get(body).is_some_and(|body| body.get(new).is_none())).collect();
    let carried = !bodies.iter().any(|body| document.in_braces(body));
    let comment = if carried { document.comment(&path) } else { "" };
    let mut edits = vec![if carried { document.take(&path)? } else { document.remove(&path)? }];
    for body in &bodies {
        edits.push(document.insert_with(body, new, &Written::Inline(text.clone()), comment)?);
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
