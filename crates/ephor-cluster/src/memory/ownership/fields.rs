//! Sets of fields, as `metadata.managedFields` writes them.
//!
//! A field is a path of elements: `f:NAME` for a member, `k:{…}` for the item of a list with these keys, `v:…` for the
//! item with this value. Elements are kept as they are written.

use std::collections::BTreeMap;

use ephor_expr::{Map, Str, Value};

/// A set of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::memory) struct FieldSet {
    entries: BTreeMap<Str, Entry>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    /// Whether the field itself is in the set.
    owned: bool,
    /// The fields below it.
    below: FieldSet,
}

/// Sets nested deeper than this are not read.
const MAX_DEPTH: usize = 128;

/// The element of a member.
pub(super) fn member(name: &str) -> Str {
    ["f:", name].into_iter().collect()
}

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Puts the field of that one element into the set.
    pub(super) fn own(&mut self, element: Str) {
        self.entries.entry(element).or_default().owned = true;
    }

    /// Puts fields below an element into the set.
    pub(super) fn put_below(&mut self, element: Str, below: &FieldSet) {
        if !below.is_empty() {
            self.entries.entry(element).or_default().below.add(below);
        }
    }

    /// Whether the field of that one element is in the set.
    pub(super) fn owns(&self, element: &str) -> bool {
        self.entries.get(element).is_some_and(|entry| entry.owned)
    }

    /// The fields below an element.
    pub(super) fn below(&self, element: &str) -> Option<&FieldSet> {
        self.entries.get(element).map(|entry| &entry.below).filter(|below| !below.is_empty())
    }

    /// Adds the fields of another set.
    pub(super) fn add(&mut self, other: &FieldSet) {
        for (element, theirs) in &other.entries {
            let entry = self.entries.entry(element.clone()).or_default();
            entry.owned |= theirs.owned;
            entry.below.add(&theirs.below);
        }
    }

    /// Takes the fields of another set out.
    pub(super) fn subtract(&mut self, other: &FieldSet) {
        for (element, theirs) in &other.entries {
            if let Some(entry) = self.entries.get_mut(element) {
                entry.owned &= !theirs.owned;
                entry.below.subtract(&theirs.below);
                if !entry.owned && entry.below.is_empty() {
                    self.entries.remove(element);
                }
            }
        }
    }

    /// The fields of both sets.
    pub(super) fn common(&self, other: &FieldSet) -> FieldSet {
        let mut common = FieldSet::default();
        for (element, entry) in &self.entries {
            if let Some(theirs) = other.entries.get(element) {
                let both = Entry { owned: entry.owned && theirs.owned, below: entry.below.common(&theirs.below) };
                if both.owned || !both.below.is_empty() {
                    common.entries.insert(element.clone(), both);
                }
            }
        }
        common
    }

    /// The set with every member on the way to one of its fields.
    pub(super) fn with_parents(&self) -> FieldSet {
        let entries = self.entries.iter().map(|(element, entry)| {
            let owned = entry.owned || element.starts_with("f:");
            (element.clone(), Entry { owned, below: entry.below.with_parents() })
        });
        FieldSet { entries: entries.collect() }
    }

    /// The fields one by one: `.spec.containers[name="web"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        for (element, entry) in &self.entries {
            let path = format!("{prefix}{}", shown(element));
            entry.below.collect_paths(&path, paths);
            if entry.owned {
                paths.push(path);
            }
        }
    }

    /// The set as `fieldsV1` writes it.
    pub(super) fn to_value(&self) -> Value {
        let members = self.entries.iter().map(|(element, entry)| {
            let mut below = entry.below.to_value();
            if entry.owned
                && !entry.below.is_empty()
                && let Some(members) = below.as_object_mut()
            {
                members.insert(".", Value::object(Map::new()));
            }
            (element.clone(), below)
        });
        Value::object(members.collect())
    }

    /// Reads `fieldsV1`.
    pub(super) fn from_value(value: &Value) -> Option<FieldSet> {
        Self::read(value, MAX_DEPTH)
    }

    fn read(value: &Value, depth: usize) -> Option<FieldSet> {
        let depth = depth.checked_sub(1)?;
        let mut set = FieldSet::default();
        for (element, below) in value.as_object()?.iter().filter(|(element, _)| *element != ".") {
            if !["f:", "k:", "v:", "i:"].iter().any(|prefix| element.starts_with(prefix)) {
                return None;
            }
            let members = below.as_object()?;
            let entry =
                Entry { owned: members.is_empty() || members.contains_key("."), below: Self::read(below, depth)? };
            set.entries.insert(element.clone(), entry);
        }
        Some(set)
    }
}

fn shown(element: &str) -> String {
    match element.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let keys = Value::from_json(keys).unwrap_or_default();
            let keys: Vec<String> =
                keys.as_object().into_iter().flat_map(Map::iter).map(|(k, v)| format!("{k}={}", v.to_json())).collect();
            format!("[{}]", keys.join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        Some((_, index)) => format!("[{index}]"),
        None => element.to_owned(),
    }
}
