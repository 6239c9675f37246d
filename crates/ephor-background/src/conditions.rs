//! What a policy's status says about its work in the background, beside what other controllers say there: the condition
//! [`CONVERGED`], the work that is given up, and for which generation rules have acted for existing triggers.

use std::collections::{BTreeMap, BTreeSet};

use ephor_cluster::ErrorKind;
use ephor_engine::policy::GivenUpWork;
use ephor_expr::value::{decode, encode};
use ephor_expr::{Map, Str, Value};
use ephor_runtime::policies::{ACTED, ACTED_RULES, CONVERGED, PolicyKey, background_failure, condition};
use ephor_runtime::queue::{Moment, Settled};

use super::queue::Task;
use super::reconcile::{Lookup, ReconcileContext};
use super::rule_activation;
use super::state::{GivenUp, Subject};
use super::trigger::TriggerRef;
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

/// The member of the status that lists work that is not tried again. It outlives the process, so that another leader
/// notices when the trigger goes.
const GIVEN_UP: &str = "givenUp";

/// Whether a policy says, of any generation, that something fails.
pub fn says_failing(policy: &Value) -> bool {
    condition(policy, CONVERGED).is_some_and(|condition| condition.str_at(&["status"]) == Some("False"))
}

/// The work that a policy says is not tried again, with what it failed for, in this generation of the policy.
pub fn noted_given_up(policy: &Value) -> Vec<(GivenUp, String)> {
    let entries = policy.at(&["status", GIVEN_UP]).filter(|_| background_failure(policy).is_some());
    let entries = entries.and_then(Value::as_array).unwrap_or_default().iter();
    let work = entries.filter_map(|entry| decode::<GivenUpWork>(entry).ok()).map(|work| {
        let GivenUpWork { rule, api_version, kind, namespace, name, uid, message } = work;
        (GivenUp { rule, trigger: TriggerRef { api_version, kind, namespace, name, uid } }, message.to_string())
    });
    work.collect()
}

fn given_up_entry(work: &GivenUp, message: &str) -> Option<Value> {
    let TriggerRef { api_version, kind, namespace, name, uid } = work.trigger.clone();
    let message = message.chars().take(MAX_GIVEN_UP_MESSAGE).collect::<String>().into();
    encode(&GivenUpWork { rule: work.rule.clone(), api_version, kind, namespace, name, uid, message }).ok()
}

const REASON_FAILING: &str = "Failing";
const REASON_GIVEN_UP: &str = "GivenUp";

/// The longest message of a condition that the API server takes.
const MAX_MESSAGE: usize = 32_768;
/// How many characters of a message are noted with work that is given up.
const MAX_GIVEN_UP_MESSAGE: usize = 1_024;

/// How often, in milliseconds, the triggers of work that is given up are looked for: without them nothing fails.
const LOOK_FOR_TRIGGERS: Moment = 60_000;

impl ReconcileContext<'_> {
    /// Work that is given up for a trigger that is gone fails no more.
    fn forget_gone_triggers(&self, key: &PolicyKey) {
        let mut left = false;
        let given_up = self.lock().given_up(key);
        for work in given_up {
            if matches!(self.find(&work.trigger), Ok(Lookup::Gone)) {
                self.lock().set_failure(key, Subject::GivenUp(work), None, self.now);
            } else {
                left = true;
            }
        }
        if left {
            self.lock().queue.add_at(Task::Report(key.clone()), self.now + LOOK_FOR_TRIGGERS, self.now);
        }
    }

    /// Tells a policy what fails.
    pub fn report(&self, key: &PolicyKey) -> Settled {
        self.forget_gone_triggers(key);
        let (failures, generation) = {
            let state = self.lock();
            let Some(policy) = state.snapshot.policies.get(key) else { return Settled::Done };
            (state.failures.get(key).cloned().unwrap_or_default(), policy.generation())
        };
        let (holds, reason, message) = match failures.first_key_value() {
            None => (true, "Converged", "everything that the policy wants is made good".to_owned()),
            Some((subject, failure)) => {
                let given_up = matches!(subject, Subject::GivenUp(_));
                let (reason, said) = if given_up { (REASON_GIVEN_UP, "given up: ") } else { (REASON_FAILING, "") };
                let more = failures.len() - 1;
                let rest = if more == 0 { String::new() } else { format!(" (and {more} more)") };
                (false, reason, format!("{said}{failure}{rest}"))
            }
        };
        let given_up: Vec<Value> = failures
            .iter()
            .filter_map(|(subject, message)| match subject {
                Subject::GivenUp(work) => given_up_entry(work, message),
                _ => None,
            })
            .collect();
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
            let noted = members.get(GIVEN_UP).and_then(Value::as_array).unwrap_or_default();
            if same && noted == given_up {
                return false;
            }
            if given_up.is_empty() {
                members.remove(GIVEN_UP);
            } else {
                members.insert(GIVEN_UP, Value::array(given_up.clone()));
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
    pub fn record_activations(&self, key: &PolicyKey) -> Settled {
        let Some(info) = self.lock().infos.get(key).cloned() else { return Settled::Done };
        self.change_status(key, |policy, members| {
            policy.str_at(&["metadata", "uid"]) == Some(&info.uid) && rule_activation::note(members, info.activations())
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
