//! What a policy says about its work in the background: conditions of its status, beside those of other controllers.

use std::collections::BTreeSet;

use ephor_cluster::{ErrorKind, WriteOptions};
use ephor_expr::{Map, Str, Value};

use super::queue::Settled;
use super::reconcile::Pass;
use super::writer::WriteError;
use crate::policies::PolicyKey;

/// The member of the status that says for which generation the rules have acted for existing triggers. It is no
/// condition: what waits for policies expects `Ready` alone where nothing is wrong.
pub const ACTED: &str = "existingTriggersGeneration";
/// The member of the status that names, as `GENERATION/RULE`, the rules that are through where others are not yet.
pub const ACTED_RULES: &str = "existingTriggersRules";
/// The condition that says whether everything the policy wants could be made good. It is there once something failed.
pub const CONVERGED: &str = "BackgroundConverged";

/// The generation for which the rules of a policy have acted for existing triggers.
pub fn acted_generation(policy: &Value) -> Option<i64> {
    policy.at(&["status", ACTED]).and_then(Value::as_i64)
}

/// The rules that have acted for existing triggers in this generation, where not all of them have.
pub fn acted_rules(policy: &Value, generation: i64) -> BTreeSet<Str> {
    let entries = policy.at(&["status", ACTED_RULES]).and_then(Value::as_array).unwrap_or_default();
    let of = |entry: &Value| {
        let (of, rule) = entry.as_str()?.split_once('/')?;
        (of.parse() == Ok(generation)).then(|| Str::new(rule))
    };
    entries.iter().filter_map(of).collect()
}

fn condition<'p>(policy: &'p Value, kind: &str) -> Option<&'p Value> {
    let conditions = policy.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(kind))
}

/// The longest message of a condition that the API server takes.
const MAX_MESSAGE: usize = 32_768;

impl Pass<'_> {
    /// Tells a policy what fails.
    pub fn report(&self, key: &PolicyKey) -> Settled {
        let (failures, generation, known) = {
            let state = self.lock();
            let Some(policy) = state.snapshot.policies.get(key) else { return Settled::Done };
            let known = condition(&policy.document, CONVERGED).is_some();
            (state.failures.get(key).cloned().unwrap_or_default(), policy.generation(), known)
        };
        match failures.first_key_value() {
            None if !known => Settled::Done,
            None => {
                let message = "everything that the policy wants is made good";
                self.set_condition(key, CONVERGED, true, "Converged", message, generation)
            }
            Some((what, failure)) => {
                let more = failures.len() - 1;
                let rest = if more == 0 { String::new() } else { format!(" (and {more} more)") };
                self.set_condition(key, CONVERGED, false, "Failing", &format!("{what}: {failure}{rest}"), generation)
            }
        }
    }

    /// Sets a condition of a policy and leaves the rest of its status alone.
    pub fn set_condition(
        &self,
        key: &PolicyKey,
        kind: &str,
        holds: bool,
        reason: &str,
        message: &str,
        generation: i64,
    ) -> Settled {
        let status = if holds { "True" } else { "False" };
        let message: String = message.chars().take(MAX_MESSAGE / 4).collect();
        self.change_status(key, |policy, members| {
            let before = condition(policy, kind);
            let text = |condition: &Value, key: &str| Str::new(condition.str_at(&[key]).unwrap_or_default());
            let same = before.is_some_and(|c| {
                text(c, "status") == status
                    && text(c, "message") == message
                    && c.get("observedGeneration").and_then(Value::as_i64) == Some(generation)
            });
            if same {
                return false;
            }
            let since = before.filter(|c| text(c, "status") == status).map_or_else(
                || Str::from(self.clock.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
                |c| text(c, "lastTransitionTime"),
            );
            let condition = Value::from([
                ("type", Value::from(kind)),
                ("status", Value::from(status)),
                ("reason", Value::from(reason)),
                ("message", Value::from(message.as_str())),
                ("lastTransitionTime", Value::from(since)),
                ("observedGeneration", Value::from(generation)),
            ]);
            let others = members.get("conditions").and_then(Value::as_array).unwrap_or_default();
            let mut conditions: Vec<Value> =
                others.iter().filter(|c| c.str_at(&["type"]) != Some(kind)).cloned().collect();
            conditions.push(condition);
            members.insert("conditions", Value::array(conditions));
            true
        })
    }

    /// Notes that the rules of a policy have acted for existing triggers.
    pub fn set_acted(&self, key: &PolicyKey, generation: i64) -> Settled {
        self.change_status(key, |policy, members| {
            members.insert(ACTED, generation);
            members.remove(ACTED_RULES);
            acted_generation(policy) != Some(generation)
        })
    }

    /// Notes that some of these rules have acted for existing triggers.
    pub fn set_acted_rules(&self, key: &PolicyKey, generation: i64, rules: &BTreeSet<Str>) -> Settled {
        let entries: Vec<Value> = rules.iter().map(|rule| Value::from(format!("{generation}/{rule}"))).collect();
        self.change_status(key, |policy, members| {
            members.insert(ACTED_RULES, Value::array(entries.clone()));
            acted_rules(policy, generation) != *rules
        })
    }

    /// Writes a policy's status if `change` says that it changed it.
    fn change_status(&self, key: &PolicyKey, change: impl Fn(&Value, &mut Map) -> bool) -> Settled {
        let api_kind = if key.namespace.is_some() { "Policy" } else { "ClusterPolicy" };
        let write = || -> Result<(), WriteError> {
            let resource = self.env.resource("kyverno.io/v1", api_kind)?;
            let mut policy = self.env.cluster.get(&resource, key.namespace.as_deref(), &key.name)?;
            let mut members = policy.at(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
            if !change(&policy, &mut members) {
                return Ok(());
            }
            if let Some(policy) = policy.as_object_mut() {
                policy.insert("status", members);
            }
            (self.env.fence)()?;
            self.env.cluster.update_status(&resource, policy, &WriteOptions::default())?;
            Ok(())
        };
        match write() {
            Ok(()) | Err(WriteError::Lost(_)) => Settled::Done,
            Err(error) if error.is(ErrorKind::NotFound) => Settled::Done,
            Err(error) if error.is(ErrorKind::Conflict) => Settled::Later(200),
            Err(error) => {
                tracing::warn!(policy = %key, %error, "the policy's status cannot be written");
                Settled::Failed
            }
        }
    }
}
