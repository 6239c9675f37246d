//! Results of requests that stay in the cluster as `EphemeralReport`s, while reports are in memory.
//!
//! Every replica reads the same `EphemeralReport`s and has to show the same results, in whatever order it reads them.
//! Their names are random, so the time at which the API server created them is their order: of two results of one rule
//! about one object, that of the newer one counts.

use std::collections::{BTreeMap, HashMap};

use ephor_cluster::object;
use ephor_expr::{Str, Value};
use ephor_reports::Scope;
use ephor_reports::entry::ResultRule;
use ephor_reports::report::results;
use jiff::Timestamp;

/// The place of an `EphemeralReport` in time. The API server tells seconds; the version tells apart what is equally
/// old.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    created: Timestamp,
    version: u64,
    key: Str,
}

impl Order {
    fn of(key: &Str, ephemeral: &Value) -> Self {
        let version = object::text(ephemeral, "resourceVersion").parse().unwrap_or_default();
        Self { created: created(ephemeral).unwrap_or_default(), version, key: key.clone() }
    }
}

/// When the API server created an object.
pub fn created(object: &Value) -> Option<Timestamp> {
    object::text(object, "creationTimestamp").parse().ok()
}

#[derive(Debug)]
struct About {
    scope: Scope,
    reports: BTreeMap<Order, Vec<Value>>,
}

/// The results of requests, by object.
#[derive(Debug, Default)]
pub struct RequestResults {
    about: HashMap<Str, About>,
    /// The UID of the object that each `EphemeralReport` is about.
    known: HashMap<Str, (Str, Order)>,
}

impl RequestResults {
    /// Takes in an `EphemeralReport` about `scope`.
    pub fn insert(&mut self, key: &Str, ephemeral: &Value, scope: Scope) {
        self.remove(key);
        let (uid, order) = (scope.uid.clone(), Order::of(key, ephemeral));
        self.known.insert(key.clone(), (uid.clone(), order.clone()));
        let about = self.about.entry(uid).or_insert_with(|| About { scope, reports: BTreeMap::new() });
        about.reports.insert(order, ephemeral.get("spec").map(results).unwrap_or_default().to_vec());
    }

    /// Whether an `EphemeralReport` is taken in as it is now.
    pub fn has(&self, key: &Str, ephemeral: &Value) -> bool {
        self.known.get(key).is_some_and(|(_, order)| *order == Order::of(key, ephemeral))
    }

    /// Takes out an `EphemeralReport`; the UID of the object that it is about, if it was known.
    pub fn remove(&mut self, key: &Str) -> Option<Str> {
        let (uid, order) = self.known.remove(key)?;
        if let Some(about) = self.about.get_mut(&uid) {
            about.reports.remove(&order);
        }
        Some(uid)
    }

    /// The keys of all `EphemeralReport`s.
    pub fn keys(&self) -> impl Iterator<Item = &Str> {
        self.known.keys()
    }

    /// The object of that UID and the newest results of each rule about it.
    pub fn of(&self, uid: &str) -> Option<(Scope, Vec<Value>)> {
        let about = self.about.get(uid)?;
        let mut newest: BTreeMap<ResultRule, Vec<Value>> = BTreeMap::new();
        for report in about.reports.values() {
            let mut rules: BTreeMap<ResultRule, Vec<Value>> = BTreeMap::new();
            for result in report {
                rules.entry(ResultRule::of(result)).or_default().push(result.clone());
            }
            newest.append(&mut rules);
        }
        Some((about.scope.clone(), newest.into_values().flatten().collect()))
    }

    /// Forgets the object of that UID if no `EphemeralReport` is about it any more.
    pub fn forget_empty(&mut self, uid: &str) {
        if self.about.get(uid).is_some_and(|about| about.reports.is_empty()) {
            self.about.remove(uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    fn ephemeral(created: &str, version: u64, results: &[(&str, &str)]) -> Value {
        let results = results.iter().map(|(rule, result)| format!("{{policy: p, rule: {rule}, result: {result}}}"));
        let results = results.collect::<Vec<_>>().join(", ");
        let text = format!(
            "{{metadata: {{creationTimestamp: '2026-01-01T00:00:{created}Z', resourceVersion: '{version}'}}, spec: \
             {{results: [{results}]}}}}"
        );
        parse_value(&text).unwrap()
    }

    fn shown(requests: &RequestResults) -> String {
        let (_, results) = requests.of("u").unwrap();
        let word = |result: &Value| format!("{}={}", ResultRule::of(result).rule, result.str_at(&["result"]).unwrap());
        results.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_newest_result_of_a_rule_counts_in_whatever_order_reports_are_read() {
        let scope = || Scope {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: "a".into(),
            name: "m".into(),
            uid: "u".into(),
        };
        let reports = [
            ("a/z", ephemeral("01", 1, &[("r", "fail"), ("s", "pass")])),
            ("a/m", ephemeral("02", 2, &[("r", "pass")])),
            ("a/a", ephemeral("02", 3, &[("r", "warn")])),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut requests = RequestResults::default();
            for (key, report) in order.map(|index| &reports[index]) {
                requests.insert(&Str::new(*key), report, scope());
                requests.insert(&Str::new(*key), report, scope());
            }
            assert_eq!(shown(&requests), "r=warn s=pass");
            assert_eq!(requests.remove(&"a/a".into()).as_deref(), Some("u"));
            assert_eq!(shown(&requests), "r=pass s=pass");
            requests.remove(&"a/m".into());
            requests.remove(&"a/z".into());
            assert_eq!(shown(&requests), "");
            requests.forget_empty("u");
            assert!(requests.of("u").is_none());
        }
    }
}
