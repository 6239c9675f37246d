//! An index of the cluster: a short summary of each object of the watched kinds.
//!
//! Objects are not kept. Of a trigger there is its identity, of a downstream also whom it belongs to and a fingerprint
//! of what it says. Whole objects of kinds that have triggers, and Namespaces, stay in a small store ([`Recent`]) for
//! as long as there is room, because most of them are looked at right after they come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ephor_expr::{Str, Value};
use ephor_runtime::content::{fingerprint, normalized_content};
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::policies::PolicyId;
use ephor_runtime::watcher::StoreEvent;

use crate::plan::{Claim, ObjectId, Owner};
use crate::queue::WorkKey;

/// What is known of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Which one it is.
    pub id: ObjectId,
    /// The version it was read in.
    pub api_version: Str,
    /// Its UID.
    pub uid: Str,
    /// Its version.
    pub resource_version: Str,
    /// When it was created, RFC 3339.
    pub created: Str,
    /// Whether it is about to go.
    pub terminating: bool,
    /// Whom it belongs to and what it says; downstreams only.
    pub downstream: Option<Box<Downstream>>,
    /// Its labels; namespaces only.
    pub labels: Value,
}

/// What is known of a downstream.
#[derive(Debug, Clone, PartialEq)]
pub struct Downstream {
    /// Whom it belongs to.
    pub claim: Claim,
    /// Fingerprint of what it says.
    pub normalized_content: String,
}

impl Seen {
    /// What is to be known of an object.
    pub fn of(object: &Value) -> Self {
        let text = |key: &str| Str::new(object.str_at(&["metadata", key]).unwrap_or_default());
        let id = ObjectId::of(object);
        let labels = if is_namespace(&id) {
            object.at(&["metadata", "labels"]).cloned().unwrap_or_default()
        } else {
            Value::Null
        };
        let downstream = Claim::of(object)
            .map(|claim| Box::new(Downstream { claim, normalized_content: fingerprint(&normalized_content(object)) }));
        Self {
            id,
            api_version: Str::new(object.str_at(&["apiVersion"]).unwrap_or_default()),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            created: text("creationTimestamp"),
            terminating: !text("deletionTimestamp").is_empty(),
            downstream,
            labels,
        }
    }

    /// Whom it belongs to.
    pub fn owner(&self) -> Option<&Owner> {
        self.downstream.as_ref().map(|downstream| &downstream.claim.owner)
    }

    /// Versions of one API server grow; texts that are no numbers are only compared for equality.
    fn is_newer_than(&self, other: &Seen) -> bool {
        match (self.resource_version.parse::<u64>(), other.resource_version.parse::<u64>()) {
            (Ok(own), Ok(other)) => own > other,
            _ => self.resource_version != other.resource_version,
        }
    }
}

/// What happened to one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Touched {
    /// What was known of it.
    pub before: Option<Seen>,
    /// What is known of it now.
    pub after: Option<Seen>,
}

impl Touched {
    /// The object.
    pub fn seen(&self) -> Option<&Seen> {
        self.after.as_ref().or(self.before.as_ref())
    }

    /// The labels that a namespace had before, if it has others now.
    pub fn relabelled(&self) -> Option<&Value> {
        let (before, after) = (self.before.as_ref()?, self.after.as_ref()?);
        (before.labels != after.labels).then_some(&before.labels)
    }

    /// Whether what it says as a downstream is another.
    pub fn content_changed(&self) -> bool {
        let words = |seen: &Option<Seen>| seen.as_ref().map(|s| (s.uid.clone(), s.terminating, s.downstream.clone()));
        words(&self.before) != words(&self.after)
    }
}

/// Objects of one kind.
#[derive(Debug, Default)]
struct Table {
    by_uid: BTreeMap<Str, Seen>,
    by_name: BTreeMap<(Str, Str), Str>,
    synced: bool,
    wide: bool,
}

/// What is known.
#[derive(Debug, Default)]
pub struct Index {
    tables: BTreeMap<GroupKind, Table>,
    /// Downstreams by policy and trigger.
    owned: BTreeMap<WorkKey, BTreeSet<ObjectId>>,
    /// Objects that came lately.
    pub recent: Recent,
}

impl Index {
    /// Takes in what a watcher says of a kind; `wide` if it tells of all objects, not only of downstreams.
    pub fn apply(&mut self, kind: &GroupKind, wide: bool, change: StoreEvent) -> Vec<Touched> {
        match change {
            StoreEvent::Reset(objects) => {
                let table = self.tables.entry(kind.clone()).or_default();
                (table.synced, table.wide) = (true, wide);
                let mut gone: BTreeSet<Str> = table.by_uid.keys().cloned().collect();
                let mut touched: Vec<Touched> = Vec::new();
                for object in objects {
                    let seen = Seen::of(&object);
                    gone.remove(&seen.uid);
                    touched.extend(self.note(seen, &object));
                }
                touched.extend(gone.into_iter().filter_map(|uid| self.lose(kind, &uid)));
                touched
            }
            StoreEvent::Apply(object) => self.note(Seen::of(&object), &object),
            StoreEvent::Delete(object) => self.lose(kind, &Seen::of(&object).uid).into_iter().collect(),
        }
    }

    /// Takes in an object that was read or written; nothing if something newer is known.
    pub fn note(&mut self, seen: Seen, object: &Value) -> Vec<Touched> {
        let kind = seen.id.group_kind();
        let table = self.tables.entry(kind.clone()).or_default();
        if table.by_uid.get(&seen.uid).is_some_and(|known| !seen.is_newer_than(known)) {
            return Vec::new();
        }
        let name = (seen.id.namespace.clone(), seen.id.name.clone());
        let replaced = table.by_name.get(&name).filter(|uid| **uid != seen.uid).cloned();
        // An object of the same name under another UID: the old one is gone, whether anybody said so or not.
        let mut touched: Vec<Touched> = replaced.and_then(|uid| self.lose(&kind, &uid)).into_iter().collect();
        let table = self.tables.entry(kind).or_default();
        let is_looked_at = table.wide || is_namespace(&seen.id);
        table.by_name.insert(name, seen.uid.clone());
        let before = table.by_uid.insert(seen.uid.clone(), seen.clone());
        self.disown(before.as_ref());
        if let Some(owner) = seen.owner() {
            self.owned.entry(owner.key()).or_default().insert(seen.id.clone());
        }
        if is_looked_at {
            self.recent.put(&seen, object);
        }
        touched.push(Touched { before, after: Some(seen) });
        touched
    }

    /// Takes in that an object is gone.
    pub fn lose(&mut self, kind: &GroupKind, uid: &str) -> Option<Touched> {
        let table = self.tables.get_mut(kind)?;
        let before = table.by_uid.remove(uid)?;
        let name = (before.id.namespace.clone(), before.id.name.clone());
        if table.by_name.get(&name).is_some_and(|known| known == uid) {
            table.by_name.remove(&name);
        }
        self.recent.remove(uid);
        self.disown(Some(&before));
        Some(Touched { before: Some(before), after: None })
    }

    fn disown(&mut self, seen: Option<&Seen>) {
        let Some(seen) = seen else { return };
        let Some(owner) = seen.owner() else { return };
        let key = owner.key();
        if let Some(ids) = self.owned.get_mut(&key) {
            ids.remove(&seen.id);
            if ids.is_empty() {
                self.owned.remove(&key);
            }
        }
    }

    /// Forgets a kind that is not watched any more.
    pub fn forget(&mut self, kind: &GroupKind) {
        let table = self.tables.remove(kind).unwrap_or_default();
        for (uid, seen) in &table.by_uid {
            self.recent.remove(uid);
            self.disown(Some(seen));
        }
    }

    /// Whether downstreams of a kind are known.
    pub fn has_downstreams(&self, kind: &GroupKind) -> bool {
        self.of_kind(kind).any(|seen| seen.downstream.is_some())
    }

    /// Whether all downstreams of a kind are known.
    pub fn is_synced(&self, kind: &GroupKind) -> bool {
        self.tables.get(kind).is_some_and(|table| table.synced)
    }

    /// Whether all objects of a kind are known.
    pub fn is_wide(&self, kind: &GroupKind) -> bool {
        self.tables.get(kind).is_some_and(|table| table.synced && table.wide)
    }

    /// The object of an identity.
    pub fn find(&self, id: &ObjectId) -> Option<&Seen> {
        let table = self.tables.get(&id.group_kind())?;
        let uid = table.by_name.get(&(id.namespace.clone(), id.name.clone()))?;
        table.by_uid.get(uid)
    }

    /// The object of a UID, looked for in a few kinds.
    pub fn with_uid<'i>(&'i self, kinds: impl IntoIterator<Item = &'i GroupKind>, uid: &str) -> Option<&'i Seen> {
        kinds.into_iter().find_map(|kind| self.tables.get(kind)?.by_uid.get(uid))
    }

    /// All objects of a kind that are known.
    pub fn of_kind(&self, kind: &GroupKind) -> impl Iterator<Item = &Seen> {
        self.tables.get(kind).into_iter().flat_map(|table| table.by_uid.values())
    }

    /// All objects of a kind in a namespace that are known.
    pub fn in_namespace<'i>(&'i self, kind: &GroupKind, namespace: &'i str) -> impl Iterator<Item = &'i Seen> {
        let table = self.tables.get(kind);
        table.into_iter().flat_map(move |table| {
            let from = (Str::new(namespace), Str::default());
            let names = table.by_name.range(from..).take_while(move |((ns, _), _)| ns == namespace);
            names.filter_map(|(_, uid)| table.by_uid.get(uid))
        })
    }

    /// The kinds that are known.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.tables.keys()
    }

    /// The downstreams that say they belong to a policy and a trigger.
    pub fn owned(&self, key: &WorkKey) -> Vec<ObjectId> {
        self.owned.get(key).into_iter().flatten().cloned().collect()
    }

    /// The UIDs of the triggers that a policy has downstreams for.
    pub fn triggers_of(&self, policy: &PolicyId) -> Vec<Str> {
        let from = WorkKey { policy: policy.clone(), trigger: Str::default() };
        let keys = self.owned.range(from..).map(|(key, _)| key);
        keys.take_while(|key| key.policy == *policy).map(|key| key.trigger.clone()).collect()
    }

    /// Policies that have downstreams.
    pub fn policies(&self) -> BTreeSet<PolicyId> {
        self.owned.keys().map(|key| key.policy.clone()).collect()
    }
}

fn is_namespace(id: &ObjectId) -> bool {
    id.kind == "Namespace" && id.group.is_empty()
}

/// Whole objects, the latest ones, as many as there is room for.
#[derive(Debug, Default)]
pub struct Recent {
    objects: BTreeMap<Str, Kept>,
    order: VecDeque<(u64, Str)>,
    count: u64,
    weight: usize,
}

#[derive(Debug)]
struct Kept {
    object: Value,
    version: Str,
    weight: usize,
    number: u64,
}

/// Room for whole objects, in bytes (roughly).
const ROOM: usize = 4 << 20;

impl Recent {
    fn put(&mut self, seen: &Seen, object: &Value) {
        self.remove(&seen.uid);
        let weight = object.memory();
        if weight > ROOM / 16 {
            return;
        }
        self.count += 1;
        let kept = Kept { object: object.clone(), version: seen.resource_version.clone(), weight, number: self.count };
        self.objects.insert(seen.uid.clone(), kept);
        self.order.push_back((self.count, seen.uid.clone()));
        self.weight += weight;
        // An object that came again stands in the order more than once; its last place counts.
        while self.weight > ROOM || self.order.len() > 2 * self.objects.len() + 64 {
            let Some((number, uid)) = self.order.pop_front() else { break };
            match self.objects.get(&uid) {
                Some(kept) if kept.number == number && self.weight > ROOM => self.remove(&uid),
                Some(kept) if kept.number == number => self.order.push_back((number, uid)),
                _ => {}
            }
        }
    }

    fn remove(&mut self, uid: &str) {
        if let Some(kept) = self.objects.remove(uid) {
            self.weight -= kept.weight;
        }
    }

    /// The object of a UID, in the version that is known of it.
    pub fn get(&self, seen: &Seen) -> Option<Value> {
        let kept = self.objects.get(&seen.uid)?;
        (kept.version == seen.resource_version).then(|| kept.object.clone())
    }
}
