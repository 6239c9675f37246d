//! New results and a stored report in, the results to store out.
//!
//! A scan says everything about the rules that it judges, so its results replace all stored ones of these rules: a
//! result of a rule that no longer matches goes. Other results stand until a request brings newer ones, or their rule
//! is gone. A result that says the same as the stored one keeps its timestamp.

use std::collections::BTreeMap;

use ephor_expr::Value;
use jiff::Timestamp;

use crate::entry::{PROCESS, ResultRule, timestamp};

/// Which rule a stored result is about, and how it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule<'r> {
    /// The rule.
    pub rule: ResultRule,
    /// How the policy was applied ([`crate::entry::process`]); empty if the result does not say.
    pub process: &'r str,
}

impl<'r> Rule<'r> {
    /// The rule that a result is about.
    pub fn of(result: &'r Value) -> Self {
        let process = result.str_at(&["properties", PROCESS]).unwrap_or_default();
        Self { rule: ResultRule::of(result), process }
    }
}

/// What happens to a stored result of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// New results say everything about the rule.
    Replaced,
    /// It stands, unless a new result is about the same rule.
    Stands,
    /// Its policy or rule is gone, or not reported any more.
    Gone,
}

/// The results to store, sorted as reports have them: by policy, then rule. `fresh` are rendered results; those without
/// `timestamp` get `now`, or keep the time of a stored one that says the same. `fate` says what becomes of stored ones.
pub fn merge(
    stored: &[Value],
    fresh: &[Value],
    now: Timestamp,
    mut fate: impl FnMut(Rule<'_>) -> Stored,
) -> Vec<Value> {
    let mut kept: BTreeMap<ResultRule, Vec<&Value>> = BTreeMap::new();
    for result in stored {
        kept.entry(ResultRule::of(result)).or_default().push(result);
    }
    let mut merged: BTreeMap<ResultRule, Vec<Value>> = BTreeMap::new();
    for result in fresh {
        let key = ResultRule::of(result);
        let content = without_timestamp(result);
        let same = kept.get(&key).into_iter().flatten().find(|old| without_timestamp(old) == content);
        let result = same.map_or_else(|| stamped(result.clone(), now), |old| (*old).clone());
        merged.entry(key).or_default().push(result);
    }
    for (key, results) in kept {
        merged.entry(key).or_insert_with(|| {
            results.into_iter().filter(|result| fate(Rule::of(result)) == Stored::Stands).cloned().collect()
        });
    }
    merged.into_values().flatten().collect()
}

fn stamped(mut result: Value, now: Timestamp) -> Value {
    // Reports carry whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    if let Some(members) = result.as_object_mut()
        && !members.contains_key("timestamp")
    {
        members.insert("timestamp", timestamp(now));
    }
    result
}

/// Whether two results say the same, at whatever time.
pub fn is_same(one: &Value, other: &Value) -> bool {
    without_timestamp(one) == without_timestamp(other)
}

/// The result without its timestamp.
pub(crate) fn without_timestamp(result: &Value) -> Value {
    let mut result = result.clone();
    if let Some(members) = result.as_object_mut() {
        members.remove("timestamp");
    }
    result
}

#[cfg(test)]
mod tests {
    use ephor_engine::outcome::Verdict;
    use ephor_expr::{Map, Str};

    use super::*;
    use crate::Entry;

    fn entry(policy: &str, rule: &str, result: Verdict) -> Value {
        let entry = Entry {
            source: crate::entry::SOURCE,
            policy: policy.into(),
            rule: Some(rule.into()),
            result,
            message: Str::default(),
            category: None,
            severity: None,
            scored: true,
            properties: Map::new(),
        };
        Value::object(entry.members())
    }

    /// `policy/rule=result@seconds` of each result.
    fn words(results: &[Value]) -> Vec<String> {
        let word = |result: &Value| {
            let text = |key| result.str_at(&[key]).unwrap_or_default().to_owned();
            let at = result.at(&["timestamp", "seconds"]).map(Value::to_json).unwrap_or_default();
            format!("{}/{}={}@{at}", text("policy"), text("rule"), text("result"))
        };
        results.iter().map(word).collect()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_result_that_says_the_same_keeps_its_time() {
        let first =
            merge(&[], &[entry("a", "r", Verdict::Fail), entry("a", "q", Verdict::Fail)], at(1), |_| Stored::Gone);
        let second = [entry("a", "q", Verdict::Pass), entry("a", "r", Verdict::Fail)];
        let merged = merge(&first, &second, at(2), |_| Stored::Replaced);
        assert_eq!(words(&merged), ["a/q=pass@2", "a/r=fail@1"]);
    }

    #[test]
    fn results_of_rules_that_match_no_more_go_and_those_of_requests_stand() {
        let old = [
            entry("scanned", "r", Verdict::Fail),
            entry("asked", "r", Verdict::Fail),
            entry("gone", "r", Verdict::Pass),
        ];
        let stored = merge(&[], &old, at(1), |_| Stored::Gone);
        let merged =
            merge(&stored, &[entry("new", "r", Verdict::Pass)], at(2), |rule| match rule.rule.policy.as_str() {
                "scanned" => Stored::Replaced,
                "asked" => Stored::Stands,
                _ => Stored::Gone,
            });
        assert_eq!(words(&merged), ["asked/r=fail@1", "new/r=pass@2"]);
    }

    #[test]
    fn results_of_two_kinds_of_policies_with_one_name_stand_side_by_side() {
        let mut other = entry("p", "r", Verdict::Pass);
        other.as_object_mut().unwrap().insert("source", "ValidatingAdmissionPolicy");
        let stored = merge(&[], &[other], at(1), |_| Stored::Gone);
        let merged = merge(&stored, &[entry("p", "r", Verdict::Fail)], at(2), |_| Stored::Stands);
        assert_eq!(words(&merged), ["p/r=pass@1", "p/r=fail@2"]);
    }

    #[test]
    fn results_are_sorted_by_the_bytes_of_policy_and_rule() {
        let fresh = [("rt/np", "b"), ("p-z", "a"), ("rt/np", "a"), ("P", "x")];
        let merged = merge(&[], &fresh.map(|(p, r)| entry(p, r, Verdict::Skip)), at(1), |_| Stored::Gone);
        assert_eq!(words(&merged), ["P/x=skip@1", "p-z/a=skip@1", "rt/np/a=skip@1", "rt/np/b=skip@1"]);
    }
}
