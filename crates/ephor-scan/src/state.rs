//! The state of the reports controller: known objects and reports, and queued work.
//!
//! Of an object there is its identity and a digest of what policies said about it last; of a report its version and a
//! digest of its content. An object itself stays only until it is judged, and only while there is room; else it is read
//! again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use ephor_engine::fetch::Fetch;
use ephor_engine::gate::AllowedFetch;
use ephor_expr::{Str, Value};
use ephor_reports::report;
use ephor_runtime::facts::labels_of;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::queue::{Moment, Queue};
use ephor_runtime::watcher::WatcherEvent;

use crate::judge::text;
use crate::reportable::{Reportable, kind_of};
use crate::requests::RequestResults;

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// Judge the object of that UID and make its report say so.
    Settle(Str),
    /// Take over the results in an `EphemeralReport`, by `namespace/name`.
    Adopt(Str),
    /// Make the report about the object of that UID show the results of requests that are in memory.
    Requests(Str),
    /// Judge the next page of all objects of a kind again, in one namespace (empty: in all).
    Rescan(GroupKind, Str),
    /// Look for stored reports about objects and rules that are gone.
    Sweep,
    /// Ask again what rules asked for.
    Facts,
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its kind.
    pub kind: GroupKind,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
    /// The newest version that was seen.
    version: u64,
    /// The last list of its kind that showed it.
    round: u64,
    /// Digest of the results that its report was last made to show, and the version that was judged for it.
    settled: Option<(u64, u64)>,
    /// Whether it is deleted.
    pub gone: bool,
}

/// What is known of a stored report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReport {
    /// Its namespace; empty for cluster-scoped ones.
    pub namespace: Str,
    /// Its version.
    version: u64,
    /// Digest of its content.
    pub digest: u64,
    /// The last list that showed it.
    round: u64,
}

/// A fact that rules read.
#[derive(Debug)]
struct Read {
    fetch: AllowedFetch,
    answer: u64,
    kinds: BTreeSet<GroupKind>,
}

/// From so many objects that wait to be judged on, no more are listed.
const ENOUGH_PENDING: usize = 500;
/// How many objects wait to be judged at most; of others only the UID waits, and they are read again.
const MAX_PENDING: usize = 1_500;
/// How many facts are asked for again; those beyond are read again by the next whole scan.
const MAX_FACTS: usize = 1_000;
/// How long the report of a deleted object is left to the garbage collector.
const COLLECTOR_PAUSE: Moment = 30_000;

/// How far a rescan has come.
#[derive(Debug, Clone, Default)]
pub struct RescanProgress {
    /// How often it was asked for. It begins anew each time.
    pub asked: u64,
    /// Where the list goes on; `None` at its beginning.
    pub next: Option<Str>,
}

/// The memory of the controller.
#[derive(Debug, Default)]
pub struct State {
    /// What is to be done.
    pub queue: Queue<Task>,
    /// What is scanned.
    pub policies: Arc<Reportable>,
    objects: HashMap<Str, Known>,
    pending: HashMap<Str, Value>,
    stored: HashMap<Str, BTreeMap<Str, StoredReport>>,
    ephemerals: HashMap<Str, Value>,
    /// The `EphemeralReport`s of the list that is being read, by whether they are namespaced.
    listed: HashMap<bool, HashSet<Str>>,
    /// The results of `EphemeralReport`s that stay in the cluster.
    pub requests: RequestResults,
    namespaces: HashMap<Str, Value>,
    read: HashMap<Fetch, Read>,
    rescans: HashMap<(GroupKind, Str), RescanProgress>,
    rounds: HashMap<GroupKind, u64>,
    report_rounds: HashMap<bool, u64>,
    /// The random key of digests, so that users cannot craft two contents with one digest.
    hasher: RandomState,
}

impl State {
    /// The next task that is due. Namespaces of objects take turns.
    pub fn take(&mut self, now: Moment) -> Option<Task> {
        let Self { queue, objects, .. } = self;
        let of_object = |uid: &Str| objects.get(uid).map(|known| known.namespace.clone()).unwrap_or_default();
        queue.take(now, |task| match task {
            Task::Settle(uid) | Task::Requests(uid) => of_object(uid),
            Task::Adopt(key) => Str::new(key.split_once('/').map_or("", |(namespace, _)| namespace)),
            Task::Rescan(_, namespace) => namespace.clone(),
            Task::Sweep | Task::Facts => Str::default(),
        })
    }

    /// The digest of a text.
    pub fn digest(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    /// The digest of rendered results.
    pub fn digest_of(&self, results: &[Value]) -> u64 {
        let texts: Vec<String> = results.iter().map(Value::to_json).collect();
        self.hasher.hash_one(texts)
    }

    /// Takes over what is scanned now.
    pub fn set_policies(&mut self, policies: Reportable, now: Moment) {
        let rescans = policies.changes_since(&self.policies);
        for (kind, namespace) in rescans.kinds {
            self.ask_rescan(kind, namespace, now);
        }
        if rescans.stale {
            self.queue.add(Task::Sweep, now);
        }
        let left: Vec<GroupKind> =
            self.policies.kinds.keys().filter(|kind| !policies.kinds.contains_key(*kind)).cloned().collect();
        self.policies = Arc::new(policies);
        for kind in left {
            let uids: Vec<Str> = self.uids_of(|known| known.kind == kind);
            for uid in uids {
                self.queue.add(Task::Settle(uid), now);
            }
        }
    }

    /// Takes note of what happens to objects of a kind.
    pub fn observe_objects(&mut self, kind: &GroupKind, event: WatcherEvent, now: Moment) {
        match event {
            WatcherEvent::Init => *self.rounds.entry(kind.clone()).or_default() += 1,
            WatcherEvent::InitPage(objects) => {
                for object in objects {
                    self.observe_object(object, now);
                }
            }
            WatcherEvent::InitDone => {
                let round = self.round(kind);
                let unseen = self.uids_of(|known| known.kind == *kind && known.round < round);
                for uid in unseen {
                    self.object_gone(&uid, now);
                }
            }
            WatcherEvent::InitPartial => {}
            WatcherEvent::Apply(object) => self.observe_object(object, now),
            WatcherEvent::Delete(object) => {
                let uid = text(&object, "uid");
                let version = version_of(&object);
                if let Some(known) = self.objects.get_mut(&uid) {
                    known.version = known.version.max(version);
                }
                self.object_gone(&uid, now);
            }
        }
    }

    /// Takes note of an object as it is now, to be judged unless it is judged in that version already.
    fn observe_object(&mut self, object: Value, now: Moment) {
        let known = self.objects.get(&text(&object, "uid"));
        let version = version_of(&object);
        let judged = known.is_some_and(|known| known.settled.is_some_and(|(_, judged)| judged == version));
        if let Some(uid) = self.note(&object)
            && !judged
        {
            self.ask(uid, Some(object), now);
        }
    }

    /// Takes note that an object is there; its UID, unless something newer is known of it, or it is not scanned.
    pub fn note(&mut self, object: &Value) -> Option<Str> {
        let (uid, kind) = (text(object, "uid"), kind_of(object));
        if uid.is_empty() || !self.policies.kinds.contains_key(&kind) {
            return None;
        }
        let (version, round) = (version_of(object), self.round(&kind));
        match self.objects.get_mut(&uid) {
            Some(known) if known.version > version => {
                known.round = round;
                return None;
            }
            Some(known) => {
                known.version = version;
                known.round = round;
            }
            None => {
                let (namespace, name) = (text(object, "namespace"), text(object, "name"));
                let known = Known { kind, namespace, name, version, round, settled: None, gone: false };
                self.objects.insert(uid.clone(), known);
            }
        }
        Some(uid)
    }

    /// Asks for an object to be judged.
    pub fn ask(&mut self, uid: Str, object: Option<Value>, now: Moment) {
        match object {
            Some(object) if self.pending.len() < MAX_PENDING || self.pending.contains_key(&uid) => {
                self.pending.insert(uid.clone(), object);
            }
            // What waits is older than what is asked for now.
            _ => {
                self.pending.remove(&uid);
            }
        }
        self.queue.add(Task::Settle(uid), now);
    }

    fn object_gone(&mut self, uid: &Str, now: Moment) {
        self.pending.remove(uid);
        if let Some(known) = self.objects.get_mut(uid) {
            known.gone = true;
            self.queue.add_at(Task::Settle(uid.clone()), now + COLLECTOR_PAUSE, now);
        }
    }

    /// Whether lists should wait: more objects would have to be read again to be judged.
    pub fn is_full(&self) -> bool {
        self.pending.len() >= ENOUGH_PENDING
    }

    /// Asks for all objects of a kind, in a namespace (empty: in all), to be judged again.
    pub fn ask_rescan(&mut self, kind: GroupKind, namespace: Str, now: Moment) {
        let rescan = self.rescans.entry((kind.clone(), namespace.clone())).or_default();
        *rescan = RescanProgress { asked: rescan.asked + 1, next: None };
        self.queue.add(Task::Rescan(kind, namespace), now);
    }

    /// How far a rescan has come.
    pub fn rescan(&self, kind: &GroupKind, namespace: &Str) -> RescanProgress {
        self.rescans.get(&(kind.clone(), namespace.clone())).cloned().unwrap_or_default()
    }

    /// Takes note that a page of a rescan is judged and that it goes on at `next`. Returns whether it does: not if it
    /// is over, or was asked for again meanwhile, which puts it in the queue once more.
    pub fn rescanned(&mut self, kind: &GroupKind, namespace: &Str, asked: u64, next: Option<Str>) -> bool {
        let key = (kind.clone(), namespace.clone());
        match self.rescans.get_mut(&key) {
            Some(rescan) if rescan.asked == asked && next.is_some() => {
                rescan.next = next;
                true
            }
            Some(rescan) if rescan.asked == asked => {
                self.rescans.remove(&key);
                false
            }
            _ => false,
        }
    }

    /// The object that waits to be judged, unless a newer version was seen since.
    pub fn take_pending(&mut self, uid: &str) -> Option<Value> {
        let newest = self.objects.get(uid).map_or(0, |known| known.version);
        self.pending.remove(uid).filter(|object| version_of(object) >= newest)
    }

    /// What is known of an object.
    pub fn known(&self, uid: &str) -> Option<&Known> {
        self.objects.get(uid)
    }

    /// Whether the report of an object shows results with that digest.
    pub fn is_settled(&self, uid: &str, digest: u64) -> bool {
        self.objects.get(uid).is_some_and(|known| known.settled.is_some_and(|(settled, _)| settled == digest))
    }

    /// Takes note that the report of an object shows results with that digest, which is what `object` got.
    pub fn settled(&mut self, object: &Value, digest: u64) {
        if let Some(known) = self.objects.get_mut(&text(object, "uid")) {
            known.settled = Some((digest, version_of(object)));
        }
    }

    /// Forgets that the report of an object shows what it should.
    fn unsettle(&mut self, uid: &Str, now: Moment) {
        if let Some(known) = self.objects.get_mut(uid) {
            known.settled = None;
        }
        self.queue.add(Task::Settle(uid.clone()), now);
    }

    /// Forgets an object that is gone or not scanned any more.
    pub fn forget(&mut self, uid: &str) {
        self.objects.remove(uid);
        self.pending.remove(uid);
    }

    fn uids_of(&self, wanted: impl Fn(&Known) -> bool) -> Vec<Str> {
        self.objects.iter().filter(|(_, known)| wanted(known)).map(|(uid, _)| uid.clone()).collect()
    }

    fn round(&self, kind: &GroupKind) -> u64 {
        self.rounds.get(kind).copied().unwrap_or_default()
    }

    /// The stored reports about an object, by name.
    pub fn stored(&self, uid: &str) -> BTreeMap<Str, StoredReport> {
        self.stored.get(uid).cloned().unwrap_or_default()
    }

    /// Takes note of what happens to reports, of namespaced or of cluster-scoped kind.
    pub fn observe_reports(&mut self, namespaced: bool, event: WatcherEvent, now: Moment) {
        match event {
            WatcherEvent::Init => *self.report_rounds.entry(namespaced).or_default() += 1,
            WatcherEvent::InitPage(reports) => {
                for report in reports {
                    self.observe_report(&report, namespaced, now);
                }
            }
            WatcherEvent::InitDone => {
                let round = self.report_rounds.get(&namespaced).copied().unwrap_or_default();
                let unseen = |report: &StoredReport| report.round < round && report.namespace.is_empty() != namespaced;
                let lost = self.stored.iter_mut().filter_map(|(uid, reports)| {
                    let before = reports.len();
                    reports.retain(|_, report| !unseen(report));
                    (reports.len() < before).then(|| uid.clone())
                });
                let lost: Vec<Str> = lost.collect();
                for uid in lost {
                    self.unsettle(&uid, now);
                }
            }
            WatcherEvent::InitPartial => {}
            WatcherEvent::Apply(report) => self.observe_report(&report, namespaced, now),
            WatcherEvent::Delete(report) => self.report_gone(&report, now),
        }
    }

    fn observe_report(&mut self, report: &Value, namespaced: bool, now: Moment) {
        let uid = scope_uid(report);
        if !report::is_ours(report) {
            return self.report_gone(report, now);
        }
        // A report in another namespace says nothing about this object.
        if self.objects.get(&uid).is_some_and(|known| known.namespace != text(report, "namespace")) {
            return;
        }
        let known = self.stored.get(&uid).and_then(|reports| reports.get(&text(report, "name")));
        let (before, version) = (known.map(|known| known.digest), known.map_or(0, |known| known.version));
        let digest = self.digest(&report::content(report));
        self.record(report, digest);
        let round = self.report_rounds.get(&namespaced).copied().unwrap_or_default();
        if let Some(known) = self.stored.get_mut(&uid).and_then(|reports| reports.get_mut(&text(report, "name"))) {
            known.round = round;
        }
        // What a worker writes at this moment it takes note of itself.
        let edited = before.map_or_else(|| !self.queue.holds(&Task::Settle(uid.clone())), |before| before != digest);
        if edited && version_of(report) > version && self.objects.contains_key(&uid) {
            self.unsettle(&uid, now);
        }
    }

    fn report_gone(&mut self, report: &Value, now: Moment) {
        let uid = scope_uid(report);
        let Some(reports) = self.stored.get_mut(&uid) else { return };
        let name = text(report, "name");
        let newer = reports.get(&name).is_some_and(|known| known.version > version_of(report));
        if newer || reports.remove(&name).is_none() {
            return;
        }
        if reports.is_empty() {
            self.stored.remove(&uid);
        }
        if self.objects.get(&uid).is_some_and(|known| !known.gone) {
            self.unsettle(&uid, now);
        }
    }

    /// Takes note of a report as it is stored, unless a newer version is known.
    pub fn record(&mut self, report: &Value, digest: u64) {
        let (namespace, version) = (text(report, "namespace"), version_of(report));
        let round = self.report_rounds.get(&!namespace.is_empty()).copied().unwrap_or_default();
        let reports = self.stored.entry(scope_uid(report)).or_default();
        let name = text(report, "name");
        if reports.get(&name).is_none_or(|known| known.version <= version) {
            reports.insert(name, StoredReport { namespace, version, digest, round });
        }
    }

    /// Takes note that a report is gone.
    pub fn record_gone(&mut self, uid: &str, name: &str) {
        if let Some(reports) = self.stored.get_mut(uid) {
            reports.remove(name);
            if reports.is_empty() {
                self.stored.remove(uid);
            }
        }
    }

    /// Asks for what a sweep found: reports about objects that are not known, or about rules that are gone.
    pub fn swept(&mut self, report: &Value, stale: bool, now: Moment) {
        let uid = scope_uid(report);
        if stale || !self.objects.contains_key(&uid) {
            self.unsettle(&uid, now);
        }
    }

    /// Takes note of results that another role leaves, of namespaced or of cluster-scoped kind.
    pub fn observe_ephemerals(&mut self, namespaced: bool, event: WatcherEvent, now: Moment) {
        match event {
            WatcherEvent::Init => drop(self.listed.insert(namespaced, HashSet::new())),
            WatcherEvent::InitDone => {
                let listed = self.listed.remove(&namespaced).unwrap_or_default();
                let known = self.ephemerals.keys().chain(self.requests.keys());
                let gone = known.filter(|key| key.starts_with('/') != namespaced && !listed.contains(*key));
                let gone: Vec<Str> = gone.cloned().collect();
                for key in gone {
                    self.ephemeral_gone(&key, now);
                }
            }
            WatcherEvent::InitPartial => {}
            WatcherEvent::InitPage(ephemerals) => {
                for ephemeral in ephemerals {
                    if let Some(listed) = self.listed.get_mut(&namespaced) {
                        listed.insert(ephemeral_key(&ephemeral));
                    }
                    self.observe_ephemeral(ephemeral, now);
                }
            }
            WatcherEvent::Apply(ephemeral) => self.observe_ephemeral(ephemeral, now),
            WatcherEvent::Delete(ephemeral) => self.ephemeral_gone(&ephemeral_key(&ephemeral), now),
        }
    }

    fn ephemeral_gone(&mut self, key: &Str, now: Moment) {
        self.ephemerals.remove(key);
        self.queue.forget(&Task::Adopt(key.clone()));
        if let Some(uid) = self.requests.remove(key) {
            self.queue.add(Task::Requests(uid), now);
        }
    }

    fn observe_ephemeral(&mut self, ephemeral: Value, now: Moment) {
        let key = ephemeral_key(&ephemeral);
        if self.requests.has(&key, &ephemeral) {
            return;
        }
        self.ephemerals.insert(key.clone(), ephemeral);
        self.queue.add(Task::Adopt(key), now);
    }

    /// The `EphemeralReport` of that key.
    pub fn ephemeral(&self, key: &str) -> Option<Value> {
        self.ephemerals.get(key).cloned()
    }

    /// Forgets an `EphemeralReport` that is taken over.
    pub fn adopted(&mut self, key: &str) {
        self.ephemerals.remove(key);
    }

    /// Takes note of what happens to namespaces. Where labels change, the objects in it are judged again.
    pub fn observe_namespaces(&mut self, event: WatcherEvent, now: Moment) {
        match event {
            WatcherEvent::Init | WatcherEvent::InitDone | WatcherEvent::InitPartial => {}
            WatcherEvent::InitPage(namespaces) => {
                for namespace in namespaces {
                    self.observe_namespace(&namespace, now);
                }
            }
            WatcherEvent::Apply(namespace) => self.observe_namespace(&namespace, now),
            WatcherEvent::Delete(namespace) => {
                self.namespaces.remove(&text(&namespace, "name"));
            }
        }
    }

    fn observe_namespace(&mut self, namespace: &Value, now: Moment) {
        let (name, labels) = (text(namespace, "name"), labels_of(namespace));
        let before = self.namespaces.insert(name.clone(), labels.clone());
        if before.is_some_and(|before| before != labels) {
            let kinds: Vec<GroupKind> = self.policies.kinds.keys().cloned().collect();
            for kind in kinds {
                self.ask_rescan(kind, name.clone(), now);
            }
        }
    }

    /// The labels of a namespace, if they are known.
    pub fn labels(&self, namespace: &str) -> Option<Value> {
        self.namespaces.get(namespace).cloned()
    }

    /// Takes note of what rules asked for when they judged an object of a kind, and the digest of the answer.
    pub fn note_read(&mut self, read: BTreeMap<AllowedFetch, u64>, kind: &GroupKind) {
        for (fetch, answer) in read {
            if let Some(known) = self.read.get_mut(fetch.fetch()) {
                known.kinds.insert(kind.clone());
            } else if self.read.len() < MAX_FACTS {
                let kinds = BTreeSet::from([kind.clone()]);
                self.read.insert(fetch.fetch().clone(), Read { fetch, answer, kinds });
            }
        }
    }

    /// What rules have asked for.
    pub fn questions(&self) -> Vec<AllowedFetch> {
        self.read.values().map(|read| read.fetch.clone()).collect()
    }

    /// Takes note of the answer to a question as it is now. Where it changed, the kinds are judged again; the question
    /// is forgotten then, and noted again by the rules that still ask it.
    pub fn answered(&mut self, fetch: &Fetch, answer: u64, now: Moment) {
        if self.read.get(fetch).is_some_and(|read| read.answer != answer)
            && let Some(read) = self.read.remove(fetch)
        {
            for kind in read.kinds {
                self.ask_rescan(kind, Str::default(), now);
            }
        }
    }
}

fn version_of(object: &Value) -> u64 {
    text(object, "resourceVersion").parse().unwrap_or_default()
}

fn scope_uid(report: &Value) -> Str {
    Str::new(report.str_at(&["scope", "uid"]).unwrap_or_default())
}

/// `namespace/name` of an `EphemeralReport`; of a cluster-scoped one `/name`.
pub fn ephemeral_key(ephemeral: &Value) -> Str {
    format!("{}/{}", text(ephemeral, "namespace"), text(ephemeral, "name")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rescan_goes_on_page_by_page_and_begins_anew_when_it_is_asked_for_again() {
        let (kind, all) = (GroupKind::new("v1", "Pod"), Str::default());
        let mut state = State::default();
        state.ask_rescan(kind.clone(), all.clone(), 0);
        let first = state.rescan(&kind, &all);
        assert!(state.rescanned(&kind, &all, first.asked, Some("2".into())));
        assert_eq!(state.rescan(&kind, &all).next.as_deref(), Some("2"));
        // A page that was read before the second request does not count.
        state.ask_rescan(kind.clone(), all.clone(), 0);
        assert!(!state.rescanned(&kind, &all, first.asked, Some("3".into())));
        let second = state.rescan(&kind, &all);
        assert_eq!(second.next, None);
        assert!(!state.rescanned(&kind, &all, second.asked, None));
        assert!(state.rescans.is_empty());
    }
}
