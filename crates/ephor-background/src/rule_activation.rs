//! The time from which a rule selects its present triggers.
//!
//! A synchronizing rule generates for triggers that are created after it. The policy's status stores when that was for
//! each rule, with a fingerprint of what the rule selects, so that it outlives the process. An edit of what the rule
//! generates keeps the fingerprint and the time; an edit of what it selects makes a new activation.

use std::cmp::Ordering;

use ephor_expr::{Map, Str, Value};
use ephor_runtime::policies::StoredPolicy;

use super::index::Seen;

/// The field of the policy status that stores activations.
pub const RULES_SINCE: &str = "rulesSince";

/// When a rule began to select its present triggers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleActivation {
    /// What the rule looks for, and whether it stays with it: another fingerprint is another rule.
    pub selection: Str,
    /// The time, RFC 3339.
    pub since: Str,
    /// The policy's version then: it tells what came before and after within that second.
    pub version: Str,
}

impl RuleActivation {
    /// The activation of a rule that is looked at for the first time.
    pub fn of(selection: Str) -> Self {
        Self { selection, ..Self::default() }
    }

    /// When it began: as the policy's status says, as was `known` before, when the policy was made, or `now`.
    #[must_use]
    pub fn begun(self, rule: &str, policy: &StoredPolicy, known: Option<&Self>, now: impl FnOnce() -> Str) -> Self {
        // A status can come from a backup, so ignore times before the policy was created.
        let created = policy.document.str_at(&["metadata", "creationTimestamp"]).unwrap_or_default();
        let noted = noted(&policy.document, rule).filter(|noted| noted.since.as_str() >= created);
        if let Some(known) = noted.as_ref().into_iter().chain(known).find(|known| known.selection == self.selection) {
            return known.clone();
        }
        // The time of the last change may be unknown. It was before now.
        let since = if policy.since.is_empty() { now() } else { policy.since.clone() };
        Self { since, version: policy.since_version.clone(), ..self }
    }

    /// Whether an object came after that. Times have whole seconds; within one the versions tell.
    pub fn precedes(&self, seen: &Seen) -> bool {
        match seen.created.cmp(&self.since) {
            _ if self.since.is_empty() => false,
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => match (seen.resource_version.parse::<u64>(), self.version.parse::<u64>()) {
                (Ok(version), Ok(since)) => version > since,
                _ => false,
            },
        }
    }

    fn document(&self, rule: &Str) -> Value {
        Value::from([
            ("rule", Value::from(rule.clone())),
            ("selection", Value::from(self.selection.clone())),
            ("since", Value::from(self.since.clone())),
            ("version", Value::from(self.version.clone())),
        ])
    }
}

/// What a policy's status says of a rule.
fn noted(policy: &Value, rule: &str) -> Option<RuleActivation> {
    let entries = policy.at(&["status", RULES_SINCE])?.as_array()?;
    let entry = entries.iter().find(|entry| entry.str_at(&["rule"]) == Some(rule))?;
    let text = |key: &str| Str::new(entry.str_at(&[key]).unwrap_or_default());
    Some(RuleActivation { selection: text("selection"), since: text("since"), version: text("version") })
}

/// Whether a policy's status says this of its rules.
pub fn are_noted<'t>(policy: &Value, activations: impl Iterator<Item = (&'t Str, &'t RuleActivation)>) -> bool {
    activations.into_iter().all(|(rule, activation)| noted(policy, rule).as_ref() == Some(activation))
}

/// Notes activations in a status; whether that changed it.
pub fn note<'t>(status: &mut Map, activations: impl Iterator<Item = (&'t Str, &'t RuleActivation)>) -> bool {
    let entries: Vec<Value> = activations.map(|(rule, activation)| activation.document(rule)).collect();
    if status.get(RULES_SINCE).and_then(Value::as_array).unwrap_or_default() == entries {
        return false;
    }
    status.insert(RULES_SINCE, Value::array(entries));
    true
}
