//! Which objects are due when.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ephor_cluster::{Resource, object};
use ephor_engine::cleanup::ttl;
use ephor_engine::policy::DeletionPropagation;
use ephor_expr::{Str, Value};
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::queue::Moment;
use ephor_runtime::watcher::WatcherEvent;

use crate::env::moment;
use crate::writer::Target;

/// The pause after the first failed deletion of an object, and the longest.
const FIRST_PAUSE: Moment = 1_000;
const LONGEST_PAUSE: Moment = 15 * 60_000;
/// How long a change that the deletion met is waited for.
const CHANGE_PAUSE: Moment = 1_000;

/// An object that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Its kind.
    pub resource: Resource,
    /// The object, as its label was read.
    pub target: Target,
    /// How its dependents are treated.
    pub propagation: Option<DeletionPropagation>,
}

/// What became of an object that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It is gone.
    Gone,
    /// It changed since: what it is now decides.
    Changed,
    /// It could not be deleted.
    Failed,
}

/// What is needed of an object with a label that says when it goes.
#[derive(Debug)]
struct Entry {
    kind: u32,
    target: Target,
    propagation: Option<DeletionPropagation>,
    /// When the label says that it goes.
    due: Moment,
    /// When it is looked at; `None` while it is being deleted.
    timer: Option<Moment>,
    failures: u32,
    /// The list that showed it last.
    list: u32,
}

#[derive(Debug)]
struct Kind {
    resource: Resource,
    number: u32,
    /// The list that runs or ran last.
    list: u32,
}

/// The objects by UID, and one queue of timers.
#[derive(Debug, Default)]
pub struct State {
    kinds: BTreeMap<GroupKind, Kind>,
    numbers: u32,
    entries: HashMap<Str, Entry>,
    timers: BTreeSet<(Moment, Str)>,
}

impl State {
    /// Begins to follow a kind.
    pub fn add_kind(&mut self, kind: GroupKind, resource: Resource) {
        self.remove_kind(&kind);
        self.numbers += 1;
        self.kinds.insert(kind, Kind { resource, number: self.numbers, list: 0 });
    }

    /// Forgets a kind and its objects.
    pub fn remove_kind(&mut self, kind: &GroupKind) {
        if let Some(gone) = self.kinds.remove(kind) {
            self.forget(|entry| entry.kind == gone.number);
        }
    }

    /// Takes in what a watcher of a kind reports.
    pub fn observe(&mut self, kind: &GroupKind, event: WatcherEvent) {
        let Some(known) = self.kinds.get_mut(kind) else { return };
        let number = known.number;
        if event == WatcherEvent::Init {
            known.list += 1;
        }
        let list = known.list;
        match event {
            WatcherEvent::Init | WatcherEvent::InitPartial => {}
            WatcherEvent::InitPage(objects) => {
                for object in objects {
                    self.apply(number, list, &object);
                }
            }
            WatcherEvent::InitDone => self.forget(|entry| entry.kind == number && entry.list != list),
            WatcherEvent::Apply(object) => self.apply(number, list, &object),
            WatcherEvent::Delete(object) => self.remove(object::text(&object, "uid")),
        }
    }

    fn apply(&mut self, kind: u32, list: u32, object: &Value) {
        let Some(target) = Target::of(object) else { return };
        let due = ttl::due(object).filter(|_| !object::is_deleting(object));
        let Some(due) = due.map(moment) else { return self.remove(&target.uid) };
        if let Some(known) = self.entries.get_mut(&target.uid)
            && known.target.version == target.version
        {
            // Told again, as by a list: what failed goes on waiting.
            known.list = list;
            return;
        }
        self.remove(&target.uid);
        let uid = target.uid.clone();
        let propagation = ttl::propagation(object);
        let entry = Entry { kind, target, propagation, due, timer: Some(due), failures: 0, list };
        self.timers.insert((due, uid.clone()));
        self.entries.insert(uid, entry);
    }

    fn remove(&mut self, uid: &str) {
        if let Some((uid, entry)) = self.entries.remove_entry(uid)
            && let Some(timer) = entry.timer
        {
            self.timers.remove(&(timer, uid));
        }
    }

    fn forget(&mut self, gone: impl Fn(&Entry) -> bool) {
        let timers = &mut self.timers;
        self.entries.retain(|uid, entry| {
            let is_gone = gone(entry);
            if let (true, Some(timer)) = (is_gone, entry.timer) {
                timers.remove(&(timer, uid.clone()));
            }
            !is_gone
        });
    }

    /// An object that is due by `now`. It is not given out again before it is settled.
    pub fn take(&mut self, now: Moment) -> Option<Due> {
        while self.timers.first().is_some_and(|(due, _)| *due <= now) {
            let (_, uid) = self.timers.pop_first()?;
            let Some(entry) = self.entries.get_mut(&uid) else { continue };
            entry.timer = None;
            let kind = entry.kind;
            let Some(kind) = self.kinds.values().find(|known| known.number == kind) else { continue };
            let (target, propagation) = (entry.target.clone(), entry.propagation);
            return Some(Due { resource: kind.resource.clone(), target, propagation });
        }
        None
    }

    /// Takes in what became of an object.
    pub fn settle(&mut self, target: &Target, settled: Settled, now: Moment) {
        let Some(entry) = self.entries.get_mut(&target.uid) else { return };
        // A newer version has come meanwhile, with a timer of its own.
        if entry.target.version != target.version {
            return;
        }
        let pause = match settled {
            Settled::Gone => return self.remove(&target.uid),
            Settled::Changed => CHANGE_PAUSE,
            Settled::Failed => {
                entry.failures += 1;
                FIRST_PAUSE.saturating_mul(1 << (entry.failures - 1).min(20)).min(LONGEST_PAUSE)
            }
        };
        let timer = now.saturating_add(pause).max(entry.due);
        entry.timer = Some(timer);
        self.timers.insert((timer, target.uid.clone()));
    }

    /// When the next object is due.
    pub fn next_due(&self) -> Option<Moment> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// The kinds that are followed.
    pub fn kinds(&self) -> impl Iterator<Item = (&GroupKind, &Resource)> {
        self.kinds.iter().map(|(kind, known)| (kind, &known.resource))
    }

    /// How many objects wait for their time.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no object waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
