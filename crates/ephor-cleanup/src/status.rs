//! What is written about a run into the status of a policy.
//!
//! `lastExecutionTime` is upstream's, and all there is as long as everything goes well. The condition [`CONDITION`] is
//! Ephor's: it appears when a run deleted nothing for a reason, or not everything, and stays up to date from then on.

use ephor_expr::{Map, Str, Value};
use jiff::Timestamp;

/// The condition by which the role says how the last run ended.
pub const CONDITION: &str = "CleanupSucceeded";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Everything that was to go is gone.
    Succeeded,
    /// The policy only tells what it would delete.
    Audited,
    /// More would have been deleted than may be.
    LimitExceeded,
    /// Something could not be judged or deleted.
    Failed,
}

impl Reason {
    /// The word in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Audited => "Audited",
            Self::LimitExceeded => "LimitExceeded",
            Self::Failed => "Failed",
        }
    }

    fn status(self) -> &'static str {
        match self {
            Self::Succeeded | Self::Audited => "True",
            Self::LimitExceeded | Self::Failed => "False",
        }
    }
}

/// What there is to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStatus {
    /// When the run began; `None` if it does not count as one.
    pub ran: Option<Timestamp>,
    /// How it ended.
    pub reason: Reason,
    /// The same for people.
    pub message: Str,
    /// The generation of the policy that ran.
    pub generation: i64,
}

impl RunStatus {
    /// The status after `before`. `of_cel` says whether conditions are where policies of `policies.kyverno.io` have
    /// them.
    pub fn after(&self, before: &Value, of_cel: bool, now: Timestamp) -> Value {
        let mut status = before.as_object().cloned().unwrap_or_default();
        if let Some(ran) = self.ran {
            status.insert("lastExecutionTime", time(ran));
        }
        if of_cel {
            let is_ready = self.reason.status() == "True";
            let mut block = block_of(&status);
            if let Some(conditions) = self.conditions(block.get("conditions"), now) {
                block.insert("conditions", conditions);
            }
            block.insert("ready", is_ready);
            block.insert("message", if is_ready { Str::default() } else { self.message.clone() });
            status.insert("conditionStatus", block);
        } else if let Some(conditions) = self.conditions(status.get("conditions"), now) {
            status.insert("conditions", conditions);
        }
        Value::object(status)
    }

    /// The status after `before` of a policy of `policies.kyverno.io` that is carried out: it is ready before its first
    /// run. What the last run of this `generation` said stays.
    pub fn ready(before: &Value, generation: i64) -> Value {
        let mut status = before.as_object().cloned().unwrap_or_default();
        let mut block = block_of(&status);
        let conditions = block.get("conditions").and_then(Value::as_array).unwrap_or_default();
        let is_said = conditions.iter().any(|condition| {
            is_ours(condition) && condition.get("observedGeneration").and_then(Value::as_i64) == Some(generation)
        });
        if is_said && block.contains_key("ready") {
            return before.clone();
        }
        block.insert("ready", true);
        block.insert("message", "");
        status.insert("conditionStatus", block);
        Value::object(status)
    }

    /// The conditions with ours; `None` if nothing is to be said.
    fn conditions(&self, before: Option<&Value>, now: Timestamp) -> Option<Vec<Value>> {
        let mut conditions = before.and_then(Value::as_array).unwrap_or_default().to_vec();
        let old = conditions.iter().find(|condition| is_ours(condition)).cloned();
        if old.is_none() && self.reason == Reason::Succeeded {
            return None;
        }
        let same = old.as_ref().is_some_and(|old| old.str_at(&["status"]) == Some(self.reason.status()));
        let since = old.as_ref().filter(|_| same).and_then(|old| old.str_at(&["lastTransitionTime"]));
        let condition = Map::from_iter([
            (Str::new_static("type"), Value::from(CONDITION)),
            (Str::new_static("status"), Value::from(self.reason.status())),
            (Str::new_static("reason"), Value::from(self.reason.as_str())),
            (Str::new_static("message"), Value::from(self.message.clone())),
            (Str::new_static("lastTransitionTime"), since.map_or_else(|| time(now), Value::from)),
            (Str::new_static("observedGeneration"), Value::from(self.generation)),
        ]);
        conditions.retain(|condition| !is_ours(condition));
        conditions.push(Value::object(condition));
        Some(conditions)
    }
}

/// Where the status of a policy of `policies.kyverno.io` says whether it is ready.
fn block_of(status: &Map) -> Map {
    status.get("conditionStatus").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn is_ours(condition: &Value) -> bool {
    condition.str_at(&["type"]) == Some(CONDITION)
}

fn time(at: Timestamp) -> Value {
    Value::from(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_condition_appears_when_there_is_something_to_say_and_stays() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let run = |reason, seconds| RunStatus { ran: Some(at(seconds)), reason, message: "m".into(), generation: 1 };
        let first = run(Reason::Succeeded, 60).after(&Value::Null, false, at(61));
        assert_eq!(first.to_json(), r#"{"lastExecutionTime":"1970-01-01T00:01:00Z"}"#);
        let failed = run(Reason::Failed, 120).after(&first, false, at(121));
        let again = run(Reason::LimitExceeded, 180).after(&failed, false, at(181));
        let condition = |status: &Value| status.at(&["conditions"]).and_then(Value::as_array).unwrap()[0].clone();
        assert_eq!(condition(&again).str_at(&["reason"]), Some("LimitExceeded"));
        assert_eq!(condition(&again).str_at(&["lastTransitionTime"]), Some("1970-01-01T00:02:01Z"));
        let well = run(Reason::Succeeded, 240).after(&again, false, at(241));
        assert_eq!(condition(&well).str_at(&["status"]), Some("True"));
        assert_eq!(condition(&well).str_at(&["lastTransitionTime"]), Some("1970-01-01T00:04:01Z"));
        let of_cel = run(Reason::Audited, 60).after(&Value::Null, true, at(61));
        assert!(of_cel.at(&["conditionStatus", "conditions"]).is_some() && of_cel.get("conditions").is_none());
    }

    #[test]
    fn a_policy_of_cel_says_whether_it_is_ready() {
        let shown = |status: &Value| {
            let block = status.get("conditionStatus").unwrap();
            (block.get("ready").and_then(Value::as_bool).unwrap(), block.str_at(&["message"]).unwrap().to_owned())
        };
        let ready = RunStatus::ready(&Value::Null, 1);
        assert_eq!(shown(&ready), (true, String::new()));
        let now = Timestamp::UNIX_EPOCH;
        let run = |reason| RunStatus { ran: Some(now), reason, message: "m".into(), generation: 1 };
        let failed = run(Reason::Failed).after(&ready, true, now);
        assert_eq!(shown(&failed), (false, "m".to_owned()));
        // Another leader looks at it; then its author changes it.
        assert_eq!(RunStatus::ready(&failed, 1), failed);
        assert_eq!(shown(&RunStatus::ready(&failed, 2)), (true, String::new()));
        assert_eq!(shown(&run(Reason::Succeeded).after(&failed, true, now)), (true, String::new()));
    }
}
