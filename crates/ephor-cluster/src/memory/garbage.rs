//! What goes when its owner is gone.
//!
//! The rules of Kubernetes' garbage collector: an object lives as long as one of its owners; owners are identified by
//! UID; an owner deleted in the foreground goes after the dependents that block it; orphans are cut loose.

use std::collections::BTreeMap;

use ephor_expr::{Str, Value};

use super::delete::{FOREGROUND, ORPHAN};
use super::state::{Key, State, table_id};
use crate::object;
use crate::resource::{Resource, split_api_version};
use crate::write::{DeleteOptions, Propagation};

/// The state of an owner.
#[derive(PartialEq, Eq)]
enum Owner {
    /// It exists, or cannot be looked up: better not to touch what it may own.
    Solid,
    /// It waits for its dependents to go.
    Waiting,
    /// It is gone.
    Gone,
}

/// What garbage collection does with an object.
enum Fate {
    /// No owner is left.
    Delete(DeleteOptions),
    /// These owners are left.
    Keep(Vec<Value>),
}

/// An object by its place.
pub(super) type Place = (Resource, Key);

impl State {
    /// Deletes, cuts loose and releases until there is nothing left to do. How many objects were touched.
    pub(super) fn collect_garbage(&mut self) -> usize {
        let mut touched = 0;
        loop {
            // Every step takes away an object, a reference or a finalizer, or marks an object as deleted for good;
            // so this ends.
            let before = touched;
            let dependents = self.dependents();
            for place in self.owned() {
                touched += usize::from(self.collect_dependent(&place, &dependents));
            }
            for place in self.finalizing() {
                touched += usize::from(self.finalize(&place, &dependents));
            }
            if touched == before {
                return touched;
            }
        }
    }

    fn places(&self, wanted: impl Fn(&Value) -> bool) -> Vec<Place> {
        let of_table = |table: &super::state::Table| {
            let objects = table.objects.iter().filter(|(_, object)| wanted(object));
            objects.map(|(key, _)| (table.resource.clone(), key.clone())).collect::<Vec<_>>()
        };
        self.tables.values().flat_map(of_table).collect()
    }

    fn owned(&self) -> Vec<Place> {
        self.places(|object| references(object).next().is_some())
    }

    fn finalizing(&self) -> Vec<Place> {
        self.places(|object| object::is_deleting(object) && (has(object, FOREGROUND) || has(object, ORPHAN)))
    }

    /// The objects that name an owner, by the owner's UID.
    fn dependents(&self) -> BTreeMap<Str, Vec<Place>> {
        let mut dependents: BTreeMap<Str, Vec<Place>> = BTreeMap::new();
        for table in self.tables.values() {
            for (key, object) in &table.objects {
                for uid in references(object).filter_map(|r| r.str_at(&["uid"])) {
                    dependents.entry(uid.into()).or_default().push((table.resource.clone(), key.clone()));
                }
            }
        }
        dependents
    }

    fn owner(&self, dependent: &Place, reference: &Value) -> Owner {
        let (resource, key) = dependent;
        let text = |k: &str| reference.str_at(&[k]).unwrap_or_default();
        let (group, _) = split_api_version(text("apiVersion"));
        let Some(kind) = self.discovery.with_kind(text("kind")).find(|r| r.group == group) else {
            return Owner::Solid;
        };
        if kind.namespaced && !resource.namespaced {
            return Owner::Solid;
        }
        let namespace = if kind.namespaced { key.namespace.clone() } else { Str::default() };
        match self.find(kind, &Key { namespace, name: text("name").into() }) {
            Some(owner) if object::text(owner, "uid") != text("uid") => Owner::Gone,
            Some(owner) if object::is_deleting(owner) && has(owner, FOREGROUND) => Owner::Waiting,
            Some(_) => Owner::Solid,
            None => Owner::Gone,
        }
    }

    /// Deletes an object without living owner; takes the other owners off an object that has one.
    fn collect_dependent(&mut self, place: &Place, dependents: &BTreeMap<Str, Vec<Place>>) -> bool {
        match self.fate(place, dependents) {
            Some(Fate::Delete(options)) => self.delete(&place.0, &place.1, &options).is_ok(),
            Some(Fate::Keep(owners)) => {
                self.set_references(place, owners);
                true
            }
            None => false,
        }
    }

    /// What garbage collection does with an object that has owners; `None` if it stays as it is.
    fn fate(&self, place: &Place, dependents: &BTreeMap<Str, Vec<Place>>) -> Option<Fate> {
        let object = self.find(&place.0, &place.1)?;
        if object::is_deleting(object) {
            return None;
        }
        let owners: Vec<Owner> = references(object).map(|r| self.owner(place, r)).collect();
        if owners.contains(&Owner::Solid) {
            if owners.iter().all(|owner| *owner == Owner::Solid) {
                return None;
            }
            let kept = references(object).zip(&owners).filter(|(_, o)| **o == Owner::Solid);
            return Some(Fate::Keep(kept.map(|(r, _)| r.clone()).collect()));
        }
        let uid = object::text(object, "uid");
        let foreground = owners.contains(&Owner::Waiting) && dependents.contains_key(uid);
        let propagation = foreground.then_some(Propagation::Foreground);
        Some(Fate::Delete(DeleteOptions { uid: uid.into(), propagation, ..DeleteOptions::default() }))
    }

    /// One round of collection in which objects are not deleted, but named for deletion.
    pub(super) fn garbage(&mut self) -> (usize, Vec<(Place, DeleteOptions)>) {
        let dependents = self.dependents();
        let (mut touched, mut doomed) = (0, Vec::new());
        for place in self.owned() {
            match self.fate(&place, &dependents) {
                Some(Fate::Delete(options)) => doomed.push((place, options)),
                Some(Fate::Keep(owners)) => {
                    self.set_references(&place, owners);
                    touched += 1;
                }
                None => {}
            }
        }
        for place in self.finalizing() {
            touched += usize::from(self.finalize(&place, &dependents));
        }
        (touched, doomed)
    }

    /// Does what the collector's finalizers of a deleted object stand for, and takes them off once it is done.
    fn finalize(&mut self, place: &Place, dependents: &BTreeMap<Str, Vec<Place>>) -> bool {
        let (resource, key) = place;
        let Some(mut object) = self.find(resource, key).cloned() else { return false };
        let uid = object::text(&object, "uid");
        let refers = |r: &&Value| r.str_at(&["uid"]) == Some(uid);
        let owned = dependents.get(uid).map(Vec::as_slice).unwrap_or_default();
        let finished = if has(&object, ORPHAN) {
            for dependent in owned {
                let Some(found) = self.find(&dependent.0, &dependent.1) else { continue };
                let kept = references(found).filter(|r| !refers(r)).cloned().collect();
                self.set_references(dependent, kept);
            }
            ORPHAN
        } else {
            let blocks = |r: &Value| r.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
            let blocked = owned
                .iter()
                .filter_map(|d| self.find(&d.0, &d.1))
                .any(|d| references(d).any(|r| refers(&r) && blocks(r)));
            if blocked {
                return false;
            }
            FOREGROUND
        };
        let rest = object::texts(&object, "finalizers").filter(|f| *f != finished).map(Str::new).collect();
        object::set_texts(&mut object, "finalizers", rest);
        self.store(resource, key, object);
        true
    }

    fn set_references(&mut self, place: &Place, kept: Vec<Value>) {
        let Some(mut object) = self.tables.get(&table_id(&place.0)).and_then(|t| t.objects.get(&place.1)).cloned()
        else {
            return;
        };
        if kept.is_empty() {
            object::unset(&mut object, "ownerReferences");
        } else {
            object::set(&mut object, "ownerReferences", kept);
        }
        self.put(&place.0, &place.1, object);
    }
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    object.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default().iter()
}

fn has(object: &Value, finalizer: &str) -> bool {
    object::texts(object, "finalizers").any(|f| f == finalizer)
}
