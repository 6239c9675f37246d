//! Counts by policy and namespace.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ephor_expr::Str;

use super::found::{Found, Severity};
use crate::tally::Tally;

/// The results of one policy in one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The policy.
    pub policy: Str,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Str,
    /// The worst severity among the results.
    pub severity: Severity,
    /// How many results of each sort.
    pub tally: Tally,
    /// How many violations and errors there were before, if older reports are given.
    pub before: Option<u64>,
}

impl Group {
    /// Violations and errors.
    pub fn bad(&self) -> u64 {
        self.tally.fail + self.tally.error
    }

    /// First what fails, of these the most severe, of these the most; then warnings.
    fn rank(&self) -> impl Ord + use<> {
        let fails = self.bad() > 0;
        let severity = if fails { self.severity } else { Severity::None };
        let numbers = Reverse((self.bad(), self.tally.warn));
        (!fails, severity, numbers, self.policy.clone(), self.namespace.clone())
    }
}

/// What became of violations and errors since older reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trend {
    /// How many there were.
    pub before: u64,
    /// How many there are.
    pub after: u64,
    /// How many of them are new.
    pub new: u64,
    /// How many are gone.
    pub gone: u64,
}

/// Results with their counts.
#[derive(Debug, Clone)]
pub struct Overview {
    /// The results, the worst first.
    pub results: Vec<Found>,
    /// The counts, the worst first.
    pub groups: Vec<Group>,
    /// The counts of all results.
    pub tally: Tally,
    /// The change since older reports, if they are given.
    pub trend: Option<Trend>,
}

impl Overview {
    /// Counts `results`, and compares them with `older` ones.
    pub fn new(mut results: Vec<Found>, older: Option<&[Found]>) -> Self {
        results.sort_by_cached_key(|found| {
            let subject = &found.subject;
            let place = (subject.namespace.clone(), subject.kind.clone(), subject.name.clone());
            (!found.is_bad(), found.severity, found.policy.clone(), found.rule.clone(), place)
        });
        let mut tally = Tally::default();
        let mut groups = BTreeMap::new();
        for found in &results {
            tally.add(found.result);
            let group = group(&mut groups, found, older.is_some());
            group.tally.add(found.result);
            group.severity = group.severity.min(found.severity);
        }
        for found in older.unwrap_or_default().iter().filter(|found| found.is_bad()) {
            let group = group(&mut groups, found, true);
            group.before = group.before.map(|count| count + 1);
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_cached_key(Group::rank);
        let trend = older.map(|older| trend(older, &results));
        Self { results, groups, tally, trend }
    }

    /// The results that are violations, errors or warnings.
    pub fn findings(&self) -> impl Iterator<Item = &Found> {
        use ephor_engine::outcome::Verdict::{Pass, Skip};
        self.results.iter().filter(|found| !matches!(found.result, Pass | Skip))
    }
}

fn group<'g>(groups: &'g mut BTreeMap<(Str, Str), Group>, found: &Found, compared: bool) -> &'g mut Group {
    let key = (found.policy.clone(), found.subject.namespace.clone());
    groups.entry(key).or_insert_with(|| Group {
        policy: found.policy.clone(),
        namespace: found.subject.namespace.clone(),
        severity: found.severity,
        tally: Tally::default(),
        before: compared.then_some(0),
    })
}

fn trend(older: &[Found], newer: &[Found]) -> Trend {
    let (before, after) = (bad(older), bad(newer));
    Trend {
        before: before.len() as u64,
        after: after.len() as u64,
        new: after.difference(&before).count() as u64,
        gone: before.difference(&after).count() as u64,
    }
}

/// What identifies each violation. The uid is no part of it: an object that was created again is the same to people.
fn bad(results: &[Found]) -> BTreeSet<[&str; 5]> {
    results
        .iter()
        .filter(|found| found.is_bad())
        .map(|Found { policy, rule, subject, .. }| {
            [policy.as_str(), rule.as_str(), subject.kind.as_str(), subject.namespace.as_str(), subject.name.as_str()]
        })
        .collect()
}
