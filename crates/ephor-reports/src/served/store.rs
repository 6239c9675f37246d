//! The reports in memory, and what happened to them last.
//!
//! Of a report there are only its scope and its results, which reports share. Changes are remembered so that watches
//! can go on and the pages of a list show one state; the number of changes is bounded.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use ephor_cluster::query::Filter;
use ephor_cluster::{ClusterError, List, ListQuery, object};
use ephor_expr::{Str, Value};
use jiff::Timestamp;

use super::Kind;
use super::results::{Bodies, SharedResult};
use crate::report::{self, Scope};

const EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start \
    a new list without the continue parameter.";

/// Where a report is found. Reports about cluster-scoped objects have an empty namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) namespace: Str,
    pub(super) name: Str,
}

/// What is kept of a report.
#[derive(Debug)]
pub(super) struct Report {
    scope: Scope,
    results: Vec<SharedResult>,
    created: Timestamp,
    /// The revision of the last change.
    revision: u64,
}

impl Report {
    /// The report as readers see it, in the state of `revision`.
    fn document_at(&self, kind: Kind, revision: u64) -> Value {
        let results = Value::array(self.results.iter().map(SharedResult::to_value).collect());
        let mut document = report::document(kind.dialect, &self.scope, self.scope.uid.clone(), results);
        object::set(&mut document, "creationTimestamp", format!("{:.0}", self.created));
        object::set(&mut document, "resourceVersion", revision.to_string());
        object::set(&mut document, "uid", uid(&self.scope.uid));
        document
    }

    /// The report as readers see it.
    pub(super) fn document(&self, kind: Kind) -> Value {
        self.document_at(kind, self.revision)
    }

    /// Whether readers with that filter see the report.
    pub(super) fn is_selected(&self, kind: Kind, filter: &Filter) -> bool {
        let namespace = self.scope.namespace.as_str();
        let placed =
            namespace.is_empty() != kind.namespaced && filter.namespace().is_none_or(|asked| asked == namespace);
        let everything = filter.labels.is_empty() && filter.fields.is_empty();
        placed && (everything || filter.selects(&self.document(kind)))
    }
}

/// The uid of the report about the object of that uid: the same in all replicas, and not the uid of the object. A uid
/// has a digit that says how it was made; that of the report says 8, which stands for ways of one's own.
fn uid(of: &str) -> String {
    match (of.get(..14), of.get(15..)) {
        (Some(head), Some(tail)) if of.len() == 36 => format!("{head}8{tail}"),
        _ => format!("{of}-report"),
    }
}

/// One change of one report.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) revision: u64,
    key: Key,
    pub(super) before: Option<Arc<Report>>,
    pub(super) after: Option<Arc<Report>>,
}

impl Change {
    /// The last state of a report that was removed, in the version of the removal.
    pub(super) fn removed(&self, before: &Report, kind: Kind) -> Value {
        before.document_at(kind, self.revision)
    }
}

/// All reports.
#[derive(Debug)]
pub(super) struct Store {
    reports: BTreeMap<Key, Arc<Report>>,
    bodies: Bodies,
    history: VecDeque<Change>,
    /// How many changes are remembered.
    capacity: usize,
    pub(super) revision: u64,
    /// The newest revision that nothing is remembered from before.
    forgotten: u64,
}

impl Store {
    /// A store without reports. `start` is its first revision.
    pub(super) fn new(start: u64, capacity: usize) -> Self {
        let (reports, history) = (BTreeMap::new(), VecDeque::new());
        Self { reports, bodies: Bodies::default(), history, capacity, revision: start, forgotten: start }
    }

    /// Makes the report about `scope` show `results`; removes it if there are none. Returns whether it changed.
    pub(super) fn set(&mut self, scope: &Scope, results: Vec<Value>, now: Timestamp) -> bool {
        let key = Key { namespace: scope.namespace.clone(), name: scope.uid.clone() };
        let before = self.reports.get(&key).cloned();
        let results: Vec<SharedResult> = results.into_iter().map(|result| self.bodies.share(result)).collect();
        let is_empty = results.is_empty();
        let same = before.as_ref().map_or(is_empty, |before| before.results == results && before.scope == *scope);
        if same {
            return false;
        }
        self.revision += 1;
        let created = before.as_ref().map_or(now, |before| before.created);
        let after =
            (!is_empty).then(|| Arc::new(Report { scope: scope.clone(), results, created, revision: self.revision }));
        match &after {
            Some(report) => self.reports.insert(key.clone(), Arc::clone(report)),
            None => self.reports.remove(&key),
        };
        self.history.push_back(Change { revision: self.revision, key, before, after });
        while self.history.len() > self.capacity {
            if let Some(dropped) = self.history.pop_front() {
                self.forgotten = dropped.revision;
            }
        }
        true
    }

    /// The report of that name.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Report>> {
        self.reports.get(key).cloned()
    }

    /// The changes after a revision; `None` if some of them are forgotten, or if the revision is of another store.
    pub(super) fn since(&self, revision: u64) -> Option<impl DoubleEndedIterator<Item = &Change>> {
        let known = (self.forgotten..=self.revision).contains(&revision);
        known.then(|| {
            let start = self.history.partition_point(|change| change.revision <= revision);
            self.history.range(start..)
        })
    }

    /// All reports that a filter selects.
    pub(super) fn selected(&self, kind: Kind, filter: &Filter) -> VecDeque<Arc<Report>> {
        self.reports.values().filter(|report| report.is_selected(kind, filter)).cloned().collect()
    }

    /// A page of the list of a kind.
    pub(super) fn list(&self, kind: Kind, query: &ListQuery) -> Result<List, ClusterError> {
        let (revision, start) = match &query.continue_token {
            None => (self.revision, Bound::Included(first(kind, &query.filter))),
            Some(token) => {
                let (revision, last) = parse_token(token)
                    .ok_or_else(|| ClusterError::bad_request(format!("continue key is not valid: {token:?}")))?;
                (revision, Bound::Excluded(last))
            }
        };
        let changes = self.since(revision).ok_or_else(|| ClusterError::expired(EXPIRED))?;
        // What has changed since then, as it was then. Of several changes of a report the first one counts.
        let past: BTreeMap<&Key, Option<&Arc<Report>>> =
            changes.rev().map(|change| (&change.key, change.before.as_ref())).collect();
        let mut unchanged =
            self.reports.range((start.clone(), Bound::Unbounded)).filter(|(key, _)| !past.contains_key(key)).peekable();
        let mut changed = past
            .range::<Key, _>((start.as_ref(), Bound::Unbounded))
            .filter_map(|(key, report)| Some((*key, (*report)?)))
            .peekable();
        let in_order = std::iter::from_fn(|| match (unchanged.peek(), changed.peek()) {
            (Some((a, _)), Some((b, _))) if b < a => changed.next(),
            (None, Some(_)) => changed.next(),
            _ => unchanged.next(),
        });
        let mut found = in_order
            .take_while(|(key, _)| is_within(key, kind, &query.filter))
            .filter(|(_, report)| report.is_selected(kind, &query.filter))
            .peekable();
        let mut list = List { resource_version: revision.to_string().into(), ..List::default() };
        let mut last = None;
        let limit = if query.limit == 0 { usize::MAX } else { query.limit };
        for (key, report) in found.by_ref().take(limit) {
            let document = report.document(kind);
            list.items.push(if query.metadata_only { object::metadata_of(&document) } else { document });
            last = Some(key);
        }
        if let Some(last) = last.filter(|_| found.peek().is_some()) {
            list.continue_token = Some(format!("{revision}/{}/{}", last.namespace, last.name).into());
            if query.filter.labels.is_empty() && query.filter.fields.is_empty() {
                list.remaining = Some(found.count());
            }
        }
        Ok(list)
    }
}

/// The least key that a report of the kind may have. No namespace has a name before `-`.
fn first(kind: Kind, filter: &Filter) -> Key {
    let namespace = if kind.namespaced { filter.namespace().unwrap_or("-") } else { "" };
    Key { namespace: namespace.into(), name: Str::default() }
}

/// Whether reports of the kind that a filter may select have such keys.
fn is_within(key: &Key, kind: Kind, filter: &Filter) -> bool {
    key.namespace.is_empty() != kind.namespaced && filter.namespace().is_none_or(|asked| asked == key.namespace)
}

fn parse_token(token: &str) -> Option<(u64, Key)> {
    let mut parts = token.splitn(3, '/');
    let revision = parts.next()?.parse().ok()?;
    Some((revision, Key { namespace: parts.next()?.into(), name: parts.next()?.into() }))
}
