//! What a policy says about its work in the background: conditions of its status, beside those of other controllers.

use std::collections::{BTreeMap, BTreeSet};

use ephor_cluster::ErrorKind;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::policies::{ACTED, ACTED_RULES, PolicyKey};
use ephor_runtime::queue::Settled;

use super::reconcile::Pass;
use super::state::GIVEN_UP;
use super::tenure;
use super::writer::WriteError;

/// The condition that says whether everything the policy wants could be made good. It is there once something failed.
pub const CONVERGED: &str = "BackgroundConverged";

/// The generation for which the rules of a policy have acted for existing triggers.
pub fn acted_generation(policy: &Value) -> Option<i64> {
    policy.at(&["status", ACTED]).and_then(Value::as_i64)
}

/// The rules that have acted for existing triggers in this generation, where not all of them are through, each with the
/// UIDs of the triggers that it still has to act for.
pub fn acted_rules(policy: &Value, generation: i64) -> BTreeMap<Str, BTreeSet<Str>> {
    let entries = policy.at(&["status", ACTED_RULES]).and_then(Value::as_array).unwrap_or_default();
    let mut rules: BTreeMap<Str, BTreeSet<Str>> = BTreeMap::new();
    for entry in entries.iter().filter_map(Value::as_str) {
        let mut parts = entry.splitn(3, '/');
        let (of, trigger, rule) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let Some(rule) = rule.filter(|_| of.parse() == Ok(generation)) else { continue };
        rules.entry(rule.into()).or_default().extend(trigger.filter(|uid| !uid.is_empty()).map(Str::new));
    }
    rules
}

fn condition<'p>(policy: &'p Value, kind: &str) -> Option<&'p Value> {
    let conditions = policy.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().find(|condition| condition.str_at(&["type"]) == Some(kind))
}

/// Why a policy says that something could not be made good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failing {
    /// It is tried again.
    Tried,
    /// It was tried in vain, for this generation of the policy; the message.
    GivenUp(String),
}

/// Whether a policy says that something could not be made good.
pub fn failing(policy: &Value) -> Option<Failing> {
    let condition = condition(policy, CONVERGED).filter(|condition| condition.str_at(&["status"]) == Some("False"))?;
    let generation = policy.at(&["metadata", "generation"]);
    let given_up =
        condition.str_at(&["reason"]) == Some(REASON_GIVEN_UP) && condition.get("observedGeneration") == generation;
    let message = || condition.str_at(&["message"]).unwrap_or_default().to_owned();
    Some(if given_up { Failing::GivenUp(message()) } else { Failing::Tried })
}

const REASON_FAILING: &str = "Failing";
const REASON_GIVEN_UP: &str = "GivenUp";

/// The longest message of a condition that the API server takes.
const MAX_MESSAGE: usize = 32_768;

impl Pass<'_> {
    /// Tells a policy what fails.
    pub fn report(&self, key: &PolicyKey) -> Settled {
        let (failures, generation) = {
            let state = self.lock();
            let Some(policy) = state.snapshot.policies.get(key) else { return Settled::Done };
            (state.failures.get(key).cloned().unwrap_or_default(), policy.generation())
        };
        // What is tried again comes first.
        let first = failures.iter().find(|(what, _)| !what.starts_with(GIVEN_UP)).or(failures.first_key_value());
        let (holds, reason, message) = match first {
            None => (true, "Converged", "everything that the policy wants is made good".to_owned()),
            Some((what, failure)) => {
                let reason = if what.starts_with(GIVEN_UP) { REASON_GIVEN_UP } else { REASON_FAILING };
                let more = failures.len() - 1;
                let rest = if more == 0 { String::new() } else { format!(" (and {more} more)") };
                (false, reason, format!("{what}: {failure}{rest}"))
            }
        };
        let status = if holds { "True" } else { "False" };
        let message: String = message.chars().take(MAX_MESSAGE / 4).collect();
        self.change_status(key, |policy, members| {
            let before = condition(policy, CONVERGED);
            // The condition is there once something failed. It is read anew: what was written last may not be known yet.
            if holds && before.is_none() {
                return false;
            }
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
                ("type", Value::from(CONVERGED)),
                ("status", Value::from(status)),
                ("reason", Value::from(reason)),
                ("message", Value::from(message.as_str())),
                ("lastTransitionTime", Value::from(since)),
                ("observedGeneration", Value::from(generation)),
            ]);
            let others = members.get("conditions").and_then(Value::as_array).unwrap_or_default();
            let mut conditions: Vec<Value> =
                others.iter().filter(|c| c.str_at(&["type"]) != Some(CONVERGED)).cloned().collect();
            conditions.push(condition);
            members.insert("conditions", Value::array(conditions));
            true
        })
    }

    /// Notes since when the rules of a policy are what they are.
    pub fn note_tenures(&self, key: &PolicyKey) -> Settled {
        let Some(info) = self.lock().infos.get(key).cloned() else { return Settled::Done };
        self.change_status(key, |policy, members| {
            policy.str_at(&["metadata", "uid"]) == Some(&info.uid) && tenure::note(members, info.tenures())
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

    /// Notes that these rules have acted for existing triggers, but for those with these UIDs.
    pub fn set_acted_rules(&self, key: &PolicyKey, generation: i64, rules: &BTreeMap<Str, BTreeSet<Str>>) -> Settled {
        let entries = rules.iter().flat_map(|(rule, left)| {
            let left = left.iter().map(move |trigger| format!("{generation}/{trigger}/{rule}"));
            std::iter::once(format!("{generation}//{rule}")).chain(left)
        });
        let entries: Vec<Value> = entries.map(Value::from).collect();
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
            let mut policy = self.env.get(&resource, key.namespace.as_deref(), &key.name)?;
            let mut members = policy.at(&["status"]).and_then(Value::as_object).cloned().unwrap_or_default();
            if !change(&policy, &mut members) {
                return Ok(());
            }
            if let Some(policy) = policy.as_object_mut() {
                policy.insert("status", members);
            }
            self.env.records().update_status(&resource, policy)?;
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
