//! The failure action, once the policy's, now each rule's.

use ephor_expr::Value;
use ephor_expr::value::Path;

use super::Fix;
use super::document::{Document, Written};

const ACTION: &str = "validationFailureAction";
const OVERRIDES: &str = "validationFailureActionOverrides";

/// Moves the policy's action and overrides into its validate rules.
///
/// A rule's own action comes before the policy's overrides and these before the policy's action, so that a rule with
/// an action of its own gets neither. A rule with overrides alone cannot take the policy's without mixing the lists:
/// then the policy is left as it is, as is one that verifies images, whose rules read the policy's action too.
pub(super) fn failure_action(document: &Document<'_>) -> Vec<Fix> {
    moved(document).into_iter().collect()
}

fn moved(document: &Document<'_>) -> Option<Fix> {
    let spec = Path::root().key("spec");
    if !document.is_policy() {
        return None;
    }
    let action = document.get(&spec.key(ACTION));
    let overrides = document.get(&spec.key(OVERRIDES));
    let path = spec.key(if action.is_some() { ACTION } else { OVERRIDES });
    // Comments move along, unless a rule is in braces, which hold none: then they stay where they are.
    let bodies: Vec<Path> = document.rules().iter().map(|rule| rule.key("validate")).collect();
    let carried = bodies.iter().any(|body| document.get(body).is_some_and(|v| v.get("failureAction").is_none()))
        && !bodies.iter().any(|body| document.in_braces(body));
    let comment = |old: &str| if carried { document.comment(&spec.key(old)) } else { "" };
    let mut edits = Vec::new();
    for (old, value) in [(ACTION, action), (OVERRIDES, overrides)] {
        if value.is_some() {
            let old = spec.key(old);
            edits.push(if carried { document.take(&old)? } else { document.remove(&old)? });
        }
    }
    let removals = edits.len();
    if removals == 0 {
        return None;
    }
    let word = match action {
        None => None,
        Some(Value::String(word)) if matches!(word.as_str(), "Audit" | "Enforce") => Some(word),
        Some(_) => return None,
    };
    let mut validates = 0;
    for rule in document.rules() {
        if document.get(&rule.key("verifyImages")).is_some() {
            return None;
        }
        let body = rule.key("validate");
        let Some(validate) = document.get(&body) else { continue };
        validates += 1;
        let own_overrides = validate.get("failureActionOverrides").is_some();
        if validate.get("failureAction").is_some() {
            continue;
        }
        if overrides.is_some() {
            if own_overrides {
                return None;
            }
            let copy = document.copy(&spec.key(OVERRIDES), document.in_braces(&body))?;
            edits.push(document.insert_with(&body, "failureActionOverrides", &copy, comment(OVERRIDES))?);
        }
        if let Some(word) = word {
            let written = Written::Inline(word.to_string());
            edits.push(document.insert_with(&body, "failureAction", &written, comment(ACTION))?);
        }
    }
    let old = if action.is_some() { ACTION } else { OVERRIDES };
    let message = format!("`spec.{old}` is deprecated: use `validate.failureAction` in the rules");
    (validates > 0).then_some(Fix { message, path, edits })
}
