//! Deletes old `EphemeralReport`s while reports are in memory.
//!
//! Every replica reads `EphemeralReport`s, also one that starts later, so they stay for a day. Those that newer ones
//! replace are of no use to anyone and go earlier, and so do the oldest of very many: the admission role stops writing
//! when too many are there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, ListQuery, Resource, object};
use ephor_expr::{Map, Str, Value};
use ephor_reports::entry::ResultRule;
use ephor_reports::ephemeral::{API_VERSION, kind};
use ephor_reports::report::results;
use ephor_runtime::lease::{LostLease, Term};
use ephor_runtime::watcher::pages;
use jiff::Timestamp;

use crate::requests::created;

/// How often they are looked at.
const INTERVAL: Duration = Duration::from_mins(1);
/// How long they stay.
const LIFETIME: i64 = 24 * 60 * 60;
/// How long one stays that newer ones replace, in seconds: replicas may not have read these yet.
const REPLACED_LIFETIME: i64 = 60;
/// How many stay. The admission role writes none while there are 10,000 by default.
const MOST: usize = 5_000;
/// How many are listed at once.
const PAGE: usize = 250;

/// Why it ended early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Lost(#[from] LostLease),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// What is known of an `EphemeralReport`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    namespace: Str,
    name: Str,
    uid: Str,
    version: Str,
    created: Timestamp,
    /// What it is about, as far as it says.
    subject: Vec<Str>,
    rules: BTreeSet<ResultRule>,
}

impl Seen {
    fn of(ephemeral: &Value) -> Self {
        let text = |key| Str::new(object::text(ephemeral, key));
        let name = ephemeral.str_at(&["metadata", "annotations", "audit.kyverno.io/resource.name"]);
        let mut subject = vec![text("namespace"), Str::new(name.unwrap_or_default())];
        let labels = ephemeral.at(&["metadata", "labels"]).and_then(Value::as_object);
        subject.extend(["group", "kind", "uid"].map(|key| {
            let label = labels.and_then(|labels: &Map| labels.get(&format!("audit.kyverno.io/resource.{key}")));
            Str::new(label.and_then(Value::as_str).unwrap_or_default())
        }));
        Self {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            version: text("resourceVersion"),
            created: created(ephemeral).unwrap_or_default(),
            subject,
            rules: ephemeral.get("spec").map(results).unwrap_or_default().iter().map(ResultRule::of).collect(),
        }
    }
}

/// Deletes until the term ends.
pub fn run(cluster: &dyn Cluster, term: &Term) {
    loop {
        match once(cluster, term, Timestamp::now()) {
            Ok(()) => {}
            Err(Failure::Lost(_)) => return,
            Err(Failure::Cluster(error)) => tracing::warn!(%error, "old EphemeralReports are not deleted"),
        }
        if term.token().wait(INTERVAL) {
            return;
        }
    }
}

fn once(cluster: &dyn Cluster, term: &Term, now: Timestamp) -> Result<(), Failure> {
    for namespaced in [true, false] {
        let resource = cluster.resolve(API_VERSION, kind(namespaced))?;
        let mut seen = Vec::new();
        let query = ListQuery { limit: PAGE, ..ListQuery::default() };
        pages(cluster, &resource, query, term.token(), |page| seen.extend(page.iter().map(Seen::of)))?;
        for due in due(seen, now) {
            term.fence()?;
            delete(cluster, &resource, &due)?;
        }
    }
    Ok(())
}

fn delete(cluster: &dyn Cluster, resource: &Resource, seen: &Seen) -> Result<(), ClusterError> {
    let options =
        DeleteOptions { uid: seen.uid.clone(), resource_version: seen.version.clone(), ..DeleteOptions::default() };
    let namespace = Some(&*seen.namespace).filter(|namespace| !namespace.is_empty());
    match cluster.delete(resource, namespace, &seen.name, &options) {
        Ok(_) => Ok(()),
        // It is gone, or the next round looks at what it is now.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Which of them go.
fn due(mut seen: Vec<Seen>, now: Timestamp) -> Vec<Seen> {
    // The newest first; equally old ones in a fixed order.
    let version = |seen: &Seen| seen.version.parse::<u64>().unwrap_or_default();
    seen.sort_by(|a, b| (b.created, version(b), &b.name).cmp(&(a.created, version(a), &a.name)));
    let mut newer: BTreeMap<Vec<Str>, BTreeSet<ResultRule>> = BTreeMap::new();
    let (mut due, stay): (Vec<Seen>, Vec<Seen>) = seen.into_iter().partition(|seen| {
        let age = now.as_second().saturating_sub(seen.created.as_second());
        let rules = newer.entry(seen.subject.clone()).or_default();
        let is_replaced = seen.rules.is_subset(rules);
        rules.extend(seen.rules.iter().cloned());
        age >= LIFETIME || (is_replaced && age >= REPLACED_LIFETIME)
    });
    let mut counts: BTreeMap<Str, usize> = BTreeMap::new();
    for seen in &stay {
        *counts.entry(seen.namespace.clone()).or_default() += 1;
    }
    let share = share(counts.into_values().collect(), MOST);
    let mut kept: BTreeMap<Str, usize> = BTreeMap::new();
    due.extend(stay.into_iter().filter(|seen| {
        let kept = kept.entry(seen.namespace.clone()).or_default();
        *kept += 1;
        *kept > share
    }));
    due
}

/// How many each namespace keeps so that `most` stay: those that have few keep all, the others share the rest.
fn share(mut counts: Vec<usize>, most: usize) -> usize {
    counts.sort_unstable();
    let mut rest = most;
    for (before, count) in counts.iter().enumerate() {
        let each = rest / (counts.len() - before);
        if *count > each {
            return each;
        }
        rest -= count;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use ephor_runtime::policies::PolicyId;

    use super::*;

    const NOW: i64 = 1_000_000;

    fn seen(name: &'static str, age: i64, subject: &'static str, rules: &[&'static str]) -> Seen {
        Seen {
            namespace: "a".into(),
            name: name.into(),
            uid: name.into(),
            version: "1".into(),
            created: Timestamp::from_second(NOW - age).unwrap(),
            subject: vec![subject.into()],
            rules: rules.iter().map(|rule| ResultRule::new(&PolicyId::parse("p"), Str::new(*rule))).collect(),
        }
    }

    fn names(seen: Vec<Seen>) -> Vec<Str> {
        due(seen, Timestamp::from_second(NOW).unwrap()).into_iter().map(|seen| seen.name).collect()
    }

    #[test]
    fn what_is_old_goes_and_what_newer_ones_replace() {
        let all = vec![
            seen("replaced", 200, "x", &["r"]),
            seen("says more", 300, "x", &["r", "s"]),
            seen("newest", 100, "x", &["r"]),
            seen("of another object", 400, "y", &["r"]),
            seen("old", LIFETIME, "z", &["r"]),
        ];
        assert_eq!(names(all), ["replaced", "old"]);
        assert!(names(vec![seen("first", 59, "x", &["r"]), seen("second", 1, "x", &["r"])]).is_empty());
    }

    #[test]
    fn of_too_many_the_oldest_go() {
        let number = i64::try_from(MOST).unwrap();
        let mut all: Vec<Seen> = (0..number).map(|age| seen("n", age, "x", &[])).collect();
        for (index, seen) in all.iter_mut().enumerate() {
            seen.subject = vec![index.to_string().into()];
            seen.rules = [ResultRule::new(&PolicyId::parse("p"), "r".into())].into();
        }
        all.insert(0, seen("oldest", number + 1, "other", &["r"]));
        assert_eq!(names(all.clone()), ["oldest"]);
        // The results of another namespace stay.
        all[0].namespace = "b".into();
        let due = due(all, Timestamp::from_second(NOW).unwrap());
        assert_eq!(due.iter().map(|seen| (&*seen.namespace, &*seen.name)).collect::<Vec<_>>(), [("a", "n")]);
    }

    #[test]
    fn namespaces_that_have_few_keep_all() {
        for (counts, most, want) in [
            (&[][..], 10, usize::MAX),
            (&[10], 10, usize::MAX),
            (&[11], 10, 10),
            (&[1, 20, 30], 11, 5),
            (&[5, 5, 1], 11, usize::MAX),
            (&[7, 7, 7], 20, 6),
        ] {
            assert_eq!(share(counts.to_vec(), most), want, "{counts:?}");
        }
    }
}
