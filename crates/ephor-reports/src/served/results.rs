//! Results as they are kept in memory: what many reports say is there once.
//!
//! Results of a policy differ from object to object in their timestamps, and only some in their messages. So a result
//! is kept as its timestamp and the rest of it, which equal results share.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use ephor_expr::{Map, Value};

/// A result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SharedResult {
    /// All of it but the timestamp.
    body: Value,
    timestamp: Option<Timestamp>,
}

/// Seconds and nanoseconds, as results have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timestamp {
    seconds: i64,
    nanos: i64,
}

impl SharedResult {
    /// The result as it was given.
    pub(super) fn to_value(&self) -> Value {
        let mut result = self.body.clone();
        if let (Some(at), Some(map)) = (self.timestamp, result.as_object_mut()) {
            map.insert(
                "timestamp",
                Value::from([("nanos", Value::Int(at.nanos)), ("seconds", Value::Int(at.seconds))]),
            );
        }
        result
    }
}

/// The bodies of results that there are, by digest.
#[derive(Debug)]
pub(super) struct Bodies {
    known: HashMap<u64, Vec<Value>>,
    hasher: RandomState,
    /// With more digests than this, bodies that no report has any more are dropped.
    limit: usize,
}

/// The limit is never less.
const LEAST_LIMIT: usize = 1_000;

impl Default for Bodies {
    fn default() -> Self {
        Self { known: HashMap::new(), hasher: RandomState::new(), limit: LEAST_LIMIT }
    }
}

impl Bodies {
    /// The result with a body that equal ones share.
    pub(super) fn share(&mut self, mut result: Value) -> SharedResult {
        let timestamp = take_timestamp(&mut result);
        let bodies = self.known.entry(self.hasher.hash_one(result.to_json())).or_default();
        let body = if let Some(known) = bodies.iter().find(|known| **known == result) {
            known.clone()
        } else {
            bodies.push(result.clone());
            result
        };
        if self.known.len() > self.limit {
            self.known.retain(|_, bodies| {
                bodies.retain(is_used);
                !bodies.is_empty()
            });
            self.limit = LEAST_LIMIT.max(2 * self.known.len());
        }
        SharedResult { body, timestamp }
    }
}

fn is_used(body: &Value) -> bool {
    match body {
        Value::Object(map) => Arc::strong_count(map) > 1,
        _ => false,
    }
}

/// Takes the timestamp out of a result, if it has the usual form.
fn take_timestamp(result: &mut Value) -> Option<Timestamp> {
    let part = |key| result.at(&["timestamp", key]).and_then(Value::as_i64);
    let timestamp = Timestamp { seconds: part("seconds")?, nanos: part("nanos")? };
    if result.get("timestamp").and_then(Value::as_object).map(Map::len) != Some(2) {
        return None;
    }
    result.as_object_mut()?.remove("timestamp");
    Some(timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(message: &str, timestamp: &str) -> Value {
        Value::from_json(&format!(r#"{{"message":"{message}","policy":"p"{timestamp}}}"#)).unwrap()
    }

    #[test]
    fn equal_results_are_there_once_whatever_their_timestamps() {
        let mut bodies = Bodies::default();
        let times = [1, 2].map(|seconds| format!(r#","timestamp":{{"nanos":5,"seconds":{seconds}}}"#));
        let [first, second] = times.map(|time| {
            let given = result("m", &time);
            let shared = bodies.share(given.clone());
            assert_eq!(shared.to_value(), given);
            shared
        });
        assert_ne!(first, second);
        let (Value::Object(a), Value::Object(b)) = (&first.body, &second.body) else { panic!("results are objects") };
        assert!(Arc::ptr_eq(a, b));
    }

    #[test]
    fn results_of_any_form_come_back_as_they_were() {
        let mut bodies = Bodies::default();
        for given in [
            result("m", ""),
            result("m", r#","timestamp":"now""#),
            result("m", r#","timestamp":{"seconds":1}"#),
            result("m", r#","timestamp":{"nanos":1,"seconds":1,"zone":"x"}"#),
            Value::from("text"),
        ] {
            assert_eq!(bodies.share(given.clone()).to_value(), given);
        }
    }

    #[test]
    fn bodies_that_no_report_has_are_dropped() {
        let mut bodies = Bodies::default();
        let kept: Vec<SharedResult> = (0..10).map(|i| bodies.share(result(&format!("kept {i}"), ""))).collect();
        for i in 0..5 * LEAST_LIMIT {
            bodies.share(result(&format!("gone {i}"), ""));
        }
        assert!(bodies.known.len() <= LEAST_LIMIT + 1, "{}", bodies.known.len());
        let Value::Object(first) = &kept[0].body else { panic!("results are objects") };
        let Value::Object(again) = bodies.share(result("kept 0", "")).body else { panic!("results are objects") };
        assert!(Arc::ptr_eq(first, &again));
    }
}
