//! Builds the status document of a policy.

use std::borrow::Cow;

use ephor_engine::compile::PolicyDescription;
use ephor_expr::{Map, Value};
use ephor_runtime::policies::StoredPolicy;
use jiff::Timestamp;

use super::readiness::Readiness;
use crate::generated::Generated;

/// The longest message of a condition, in bytes.
const MAX_MESSAGE: usize = 8 * 1024;

/// The longest policy with its auto-generated rules, in bytes of JSON: an API server stores 1.5 MiB. Of a longer one
/// the status does not show them, or it could not be written at all.
const MAX_POLICY: usize = 1 << 20;

/// What a status says of the policy alone, made once for each spec.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    autogen: Value,
    counts: Value,
}

impl Description {
    /// Describes a stored policy.
    pub fn of(policy: &StoredPolicy) -> Self {
        let PolicyDescription { counts, generated, .. } = &*policy.description;
        let rules: Vec<Value> = generated.iter().cloned().map(defaulted).collect();
        let shown = Value::from([("rules", Value::array(rules))]);
        let is_empty = shown.get("rules").and_then(Value::as_array).unwrap_or_default().is_empty();
        Self {
            autogen: if is_empty || !fits(&shown, &policy.document) { Value::object(Map::new()) } else { shown },
            counts: Value::from([
                ("generate", i64::from(counts.generate).into()),
                ("mutate", i64::from(counts.mutate).into()),
                ("validate", i64::from(counts.validate).into()),
                ("verifyimages", i64::from(counts.verifyimages).into()),
            ]),
        }
    }
}

/// Whether a policy can be stored with what auto-gen made of it.
pub(super) fn fits(shown: &Value, policy: &Value) -> bool {
    shown.to_json().len().saturating_add(policy.to_json().len()) <= MAX_POLICY
}

/// A generated rule with the fields that upstream's schema gives every rule.
fn defaulted(mut rule: Value) -> Value {
    let Some(members) = rule.as_object_mut() else { return rule };
    let default = |map: &mut Map, key: &str, value: Value| {
        if !map.contains_key(key) {
            map.insert(key, value);
        }
    };
    default(members, "skipBackgroundRequests", Value::Bool(true));
    if let Some(validate) = members.get_mut("validate").and_then(Value::as_object_mut) {
        default(validate, "allowExistingViolations", Value::Bool(true));
    }
    if let Some(matches) = members.get_mut("match").and_then(Value::as_object_mut) {
        default(matches, "resources", Value::object(Map::new()));
    }
    rule
}

/// The status that follows from a readiness; `None` if nothing is to be said. `before` is the stored one: the time of
/// the last change of readiness is kept. `generated` tells what became of the admission policy that it asks for.
pub fn describe(
    description: &Description,
    readiness: &Readiness,
    generated: Option<&Generated>,
    before: Option<&Value>,
    now: Timestamp,
) -> Option<Value> {
    let (status, reason, message) = match readiness {
        Readiness::Unknown => return None,
        Readiness::Ready { failing: None } => ("True", "Succeeded", Cow::Borrowed("Ready")),
        Readiness::Ready { failing: Some(failing) } => {
            ("True", "Succeeded", format!("Ready, but {}", cut(failing)).into())
        }
        Readiness::Failed(why) => ("False", "Failed", Cow::Borrowed(cut(why))),
    };
    let earlier = before.and_then(|before| before.get("conditions")).and_then(Value::as_array).unwrap_or_default();
    let same = earlier.iter().find(|condition| {
        condition.str_at(&["type"]) == Some("Ready") && condition.str_at(&["status"]) == Some(status)
    });
    let since = same.and_then(|condition| condition.str_at(&["lastTransitionTime"])).filter(|time| !time.is_empty());
    let since = since.map_or_else(|| now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), str::to_owned);
    let condition = Value::from([
        ("lastTransitionTime", Value::from(since)),
        ("message", message.as_ref().into()),
        ("reason", reason.into()),
        ("status", status.into()),
        ("type", "Ready".into()),
    ]);
    // What other controllers say of the policy is theirs.
    let others = earlier.iter().filter(|condition| condition.str_at(&["type"]) != Some("Ready")).cloned();
    let conditions = std::iter::once(condition).chain(others).collect();
    // What other controllers note is theirs.
    let mut status = before.and_then(Value::as_object).cloned().unwrap_or_default();
    status.insert("autogen", description.autogen.clone());
    status.insert("conditions", Value::array(conditions));
    status.insert("rulecount", description.counts.clone());
    let (is_stored, why) = match generated {
        None => (false, ""),
        Some(Generated::Stored) => (true, ""),
        Some(Generated::Skipped(why)) => (false, cut(why)),
    };
    let generated = Value::from([("generated", Value::Bool(is_stored)), ("message", Value::from(why))]);
    status.insert("validatingadmissionpolicy", generated);
    Some(status.into())
}

pub(super) fn cut(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or(message)
}
