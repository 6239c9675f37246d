//! What a policy's status says about its work in the background, beside what other controllers say there: the condition
//! [`CONVERGED`], and for which generation rules have acted for existing triggers.

use std::collections::{BTreeMap, BTreeSet};

use ephor_cluster::ErrorKind;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::policies::{ACTED, ACTED_RULES, CONVERGED, PolicyId, condition};
use ephor_runtime::queue::Settled;

use super::reconcile::ReconcileContext;
use super::rule_activation;
use super::state::Subject;
use super::writer::WriteError;

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

/// Whether a policy says, of any generation, that something fails.
pub fn says_failing(policy: &Value) -> bool {
    condition(policy, CONVERGED).is_some_and(|condition| condition.str_at(&["status"]) == Some("False"))
}

/// How many characters of a failure a condition quotes.
const MAX_QUOTED: usize = 1_024;

impl ReconcileContext<'_> {
    /// Tells a policy what fails.
    pub fn report(&self, key: &PolicyId) -> Settled {
        let (failures, generation) = {
            let mut state = self.lock();
            let Some(policy) = state.snapshot.policies.get(key) else { return Settled::Done };
            let generation = policy.generation();
            state.told.insert(key.clone(), self.now);
            (state.failing(key), generation)
        };
        let holds = failures.is_empty();
        let (reason, message) = Self::told(key, &failures);
        let status = if holds { "True" } else { "False" };
        self.change_status(key, |policy, members| {
            let before = condition(policy, CONVERGED);
            // The condition is there once something failed. It is read anew: what was written last may not be known
            // yet.
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

    /// Reason and message of the condition. Readers of a Policy may know what happens in its namespace, so that it
    /// quotes a failure. A ClusterPolicy is read by people of many namespaces: it counts failures, and names and texts
    /// of objects stay in Events and `UpdateRequest`s.
    fn told(key: &PolicyId, failures: &BTreeMap<Subject, String>) -> (&'static str, String) {
        let count = failures.len();
        let given_up = failures.keys().filter(|subject| matches!(subject, Subject::GivenUp(_))).count();
        let reason = match (count, given_up) {
            (0, _) => return ("Converged", "nothing is known to fail in the background".to_owned()),
            _ if given_up == count => "GivenUp",
            _ => "Failing",
        };
        let tasks = if count == 1 { "task fails" } else { "tasks fail" };
        let told = format!("{count} background {tasks}, {given_up} given up");
        let message = match failures.values().next().filter(|_| key.namespace.is_some()) {
            Some(first) => format!("{told}: {}", first.chars().take(MAX_QUOTED).collect::<String>()),
            None => format!("{told}: see Events and UpdateRequests"),
        };
        (reason, message)
    }

    /// Notes since when the rules of a policy are what they are.
    pub fn record_activations(&self, key: &PolicyId) -> Settled {
        let Some(info) = self.lock().infos.get(key).cloned() else { return Settled::Done };
        self.change_status(key, |policy, members| {
            policy.str_at(&["metadata", "uid"]) == Some(&info.uid) && rule_activation::note(members, info.activations())
        })
    }

    /// Notes that the rules of a policy have acted for existing triggers.
    pub fn set_acted(&self, key: &PolicyId, generation: i64) -> Settled {
        self.change_status(key, |policy, members| {
            members.insert(ACTED, generation);
            members.remove(ACTED_RULES);
            acted_generation(policy) != Some(generation)
        })
    }

    /// Notes that these rules have acted for existing triggers, but for those with these UIDs.
    pub fn set_acted_rules(&self, key: &PolicyId, generation: i64, rules: &BTreeMap<Str, BTreeSet<Str>>) -> Settled {
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
    fn change_status(&self, key: &PolicyId, change: impl Fn(&Value, &mut Map) -> bool) -> Settled {
        let Some(api_version) = key.kind.api_version() else { return Settled::Done };
        let write = || -> Result<(), WriteError> {
            let resource = self.env.resource(api_version, key.kind.as_str())?;
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
