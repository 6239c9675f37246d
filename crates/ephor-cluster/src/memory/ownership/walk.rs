//! Fields of objects: which there are, which differ, merging and removing them.
//!
//! Lists and maps are taken apart as far as their schema says; what is atomic is one field.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ephor_expr::{Map, Str, Value};

use super::fields::{FieldSet, member};
use crate::schema::{ListKind, Schema};

/// How a value is taken apart.
enum Parts<'v, 's> {
    /// Not at all.
    Whole,
    /// By member.
    Members(&'v Map),
    /// By item, each with the element that names it.
    Items(Vec<(Str, &'v Value)>, Option<Schema<'s>>),
}

fn parts<'v, 's>(schema: Option<Schema<'s>>, value: &'v Value) -> Parts<'v, 's> {
    match value {
        Value::Object(members) if schema.is_some_and(|s| s.is_atomic_map()) => Parts::Whole,
        Value::Object(members) => Parts::Members(members),
        Value::Array(items) if !items.is_empty() => {
            let Some(schema) = schema else { return Parts::Whole };
            let item = schema.items();
            let named: Option<Vec<(Str, &Value)>> = match schema.list_kind() {
                ListKind::Atomic => None,
                ListKind::Set => Some(items.iter().map(|i| (Str::from(format!("v:{}", i.to_json())), i)).collect()),
                ListKind::Map(keys) => items.iter().map(|i| Some((key_element(&keys, item, i)?, i))).collect(),
            };
            // Items without distinct keys are owned together.
            match named.filter(|named| are_distinct(named)) {
                Some(named) => Parts::Items(named, item),
                None => Parts::Whole,
            }
        }
        _ => Parts::Whole,
    }
}

/// Whether a value is one field.
fn is_leaf(schema: Option<Schema<'_>>, value: &Value) -> bool {
    match parts(schema, value) {
        Parts::Whole => true,
        Parts::Members(members) => members.is_empty(),
        Parts::Items(..) => false,
    }
}

/// Why the items of a list cannot be told apart: the first that has no key, or the name of one that is there twice.
pub(in crate::memory) enum Unkeyed {
    /// This item has no key.
    Without(usize),
    /// Several items have this name.
    Twice(Str),
}

/// The names of the items of a list of this kind; `None` if it is not merged item by item.
pub(in crate::memory) fn names(schema: Schema<'_>, items: &[Value]) -> Option<Result<Vec<Str>, Unkeyed>> {
    let item = schema.items();
    let mut names: Vec<Str> = Vec::with_capacity(items.len());
    let keys = match schema.list_kind() {
        ListKind::Atomic => return None,
        ListKind::Set => None,
        ListKind::Map(keys) => Some(keys),
    };
    let mut seen = BTreeSet::new();
    for (i, value) in items.iter().enumerate() {
        let name = match &keys {
            None => Some(Str::from(format!("v:{}", value.to_json()))),
            Some(keys) => key_element(keys, item, value),
        };
        let Some(name) = name else { return Some(Err(Unkeyed::Without(i))) };
        if !seen.insert(name.clone()) {
            return Some(Err(Unkeyed::Twice(name)));
        }
        names.push(name);
    }
    Some(Ok(names))
}

fn are_distinct(named: &[(Str, &Value)]) -> bool {
    let names: BTreeSet<&Str> = named.iter().map(|(name, _)| name).collect();
    names.len() == named.len()
}

/// The element of a list's item; keys that are left out have their default.
fn key_element(keys: &[&str], item: Option<Schema<'_>>, value: &Value) -> Option<Str> {
    let members = value.as_object()?;
    let mut named = Map::new();
    for key in keys {
        let default = || {
            let declared = item.and_then(|i| i.member(key)).and_then(|m| m.default_value()).cloned();
            // The document does not say that ports are TCP ports where nothing else is said.
            declared.or_else(|| (*key == "protocol").then(|| Value::from("TCP")))
        };
        match members.get(key).cloned().or_else(default) {
            Some(value) => {
                named.insert(*key, value);
            }
            None if keys.len() > 1 => {}
            None => return None,
        }
    }
    Some(Str::from(format!("k:{}", Value::object(named).to_json())))
}

fn below<'s>(schema: Option<Schema<'s>>, key: &str) -> Option<Schema<'s>> {
    schema.and_then(|schema| schema.member(key))
}

/// Whether a member is a field by name; else it is a key of a map, which is owned as such.
fn is_declared(schema: Option<Schema<'_>>, key: &str) -> bool {
    schema.is_some_and(|schema| schema.declares(key))
}

/// All fields of a value.
pub(super) fn fields_of(schema: Option<Schema<'_>>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    match parts(schema, value) {
        Parts::Whole => {}
        Parts::Members(members) => {
            for (key, value) in members.iter() {
                let (element, schema_below) = (member(key), below(schema, key));
                if is_leaf(schema_below, value) || !is_declared(schema, key) {
                    set.own(element.clone());
                }
                set.put_below(element, &fields_of(schema_below, value));
            }
        }
        Parts::Items(items, item) => {
            for (element, value) in items {
                set.own(element.clone());
                set.put_below(element, &fields_of(item, value));
            }
        }
    }
    set
}

/// How two values differ.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Fields that only the new value has, and fields with another value in it.
    pub(super) changed: FieldSet,
    /// Fields that only the old value has.
    pub(super) removed: FieldSet,
}

/// How `new` differs from `old`.
pub(super) fn compare(schema: Option<Schema<'_>>, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    if old == new {
        return comparison;
    }
    match (parts(schema, old), parts(schema, new)) {
        (Parts::Members(old), Parts::Members(new)) => {
            let keys: BTreeSet<&Str> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let place =
                    Place { element: member(key), schema: below(schema, key), alone: !is_declared(schema, key) };
                comparison.look_at(place, old.get(key), new.get(key));
            }
        }
        (Parts::Items(old, item), Parts::Items(new, _)) => {
            let old: BTreeMap<Str, &Value> = old.into_iter().collect();
            let new: BTreeMap<Str, &Value> = new.into_iter().collect();
            let elements: BTreeSet<&Str> = old.keys().chain(new.keys()).collect();
            for element in elements {
                let place = Place { element: element.clone(), schema: item, alone: true };
                comparison.look_at(place, old.get(element).copied(), new.get(element).copied());
            }
        }
        _ => {}
    }
    comparison
}

/// One part of a value.
struct Place<'s> {
    element: Str,
    schema: Option<Schema<'s>>,
    /// Whether it is owned by itself when it comes or goes, not only what is in it.
    alone: bool,
}

impl Comparison {
    fn look_at(&mut self, place: Place<'_>, old: Option<&Value>, new: Option<&Value>) {
        let Place { element, schema, alone } = place;
        match (old, new) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                // A list that becomes another list is one change where it is one field.
                let is_leaf = |value| is_leaf(schema, value);
                if is_leaf(new) {
                    self.changed.own(element.clone());
                }
                if is_leaf(old) ^ is_leaf(new) {
                    self.changed.put_below(element.clone(), &fields_of(schema, new));
                    self.removed.put_below(element, &fields_of(schema, old));
                } else {
                    let within = compare(schema, old, new);
                    self.changed.put_below(element.clone(), &within.changed);
                    self.removed.put_below(element, &within.removed);
                }
            }
            (None, Some(value)) => place_all(&mut self.changed, element, schema, alone, value),
            (Some(value), None) => {
                // Owners of any part of it lose that part.
                self.removed.own(element.clone());
                place_all(&mut self.removed, element, schema, alone, value);
            }
            (None, None) => {}
        }
    }
}

fn place_all(set: &mut FieldSet, element: Str, schema: Option<Schema<'_>>, alone: bool, value: &Value) {
    // Maps with free keys are owned as a whole, so that an empty one has an owner.
    let is_map = value.as_object().is_some() && schema.is_some_and(|s| s.fields().next().is_none());
    if alone || is_map || is_leaf(schema, value) {
        set.own(element.clone());
    }
    set.put_below(element, &fields_of(schema, value));
}

/// `live` with everything that `config` says.
pub(in crate::memory) fn merge(schema: Option<Schema<'_>>, live: &Value, config: &Value) -> Value {
    match (parts(schema, live), parts(schema, config)) {
        (Parts::Members(old), Parts::Members(new)) => {
            let mut merged = old.clone();
            for (key, value) in new.iter() {
                let value = match old.get(key) {
                    Some(old) => merge(below(schema, key), old, value),
                    None => value.clone(),
                };
                merged.insert(key.clone(), value);
            }
            Value::object(merged)
        }
        (Parts::Items(old, item), Parts::Items(new, _)) => Value::array(merge_items(&old, &new, item)),
        _ => config.clone(),
    }
}

/// Items of both lists in the order in which an API server merges them: common items as the new list has them, others
/// about where they stand, those of the old list first.
fn merge_items(old: &[(Str, &Value)], new: &[(Str, &Value)], item: Option<Schema<'_>>) -> Vec<Value> {
    let known: BTreeMap<&Str, &Value> = old.iter().map(|(element, value)| (element, *value)).collect();
    let wanted: BTreeSet<&Str> = new.iter().map(|(element, _)| element).collect();
    let both = |element: &Str, value: &Value| match known.get(element) {
        Some(old) => merge(item, old, value),
        None => value.clone(),
    };
    // The common items in the order of the new list; the first is the one that comes next.
    let mut common = new.iter().map(|(element, _)| element).filter(|element| known.contains_key(element)).peekable();
    let mut done = BTreeSet::new();
    let mut merged = Vec::with_capacity(old.len().max(new.len()));
    let (mut o, mut n) = (0, 0);
    loop {
        match (old.get(o), new.get(n)) {
            (None, None) => return merged,
            (Some((element, _)), Some((same, value))) if element == same => {
                done.insert(element);
                merged.push(both(element, value));
                common.next();
                (o, n) = (o + 1, n + 1);
                continue;
            }
            // It has its turn in the order of the new list.
            (Some((element, _)), Some(_))
                if wanted.contains(element) && common.peek().is_some_and(|next| *next != element) =>
            {
                o += 1;
                continue;
            }
            (Some((element, value)), _) if !wanted.contains(element) => {
                merged.push((*value).clone());
                o += 1;
                continue;
            }
            _ => {}
        }
        if old.get(o).is_some_and(|(element, _)| done.contains(element)) {
            o += 1;
        }
        if let Some((element, value)) = new.get(n) {
            done.insert(element);
            merged.push(both(element, value));
            common.next_if(|next| *next == element);
            n += 1;
        }
    }
}

/// The value without the fields of a set; `None` if nothing is left of what was there.
pub(super) fn without<'v>(schema: Option<Schema<'_>>, value: &'v Value, gone: &FieldSet) -> Cow<'v, Value> {
    match parts(schema, value) {
        Parts::Whole => Cow::Borrowed(value),
        Parts::Members(members) => {
            let mut kept = members.clone();
            for (key, value) in members.iter() {
                let element = member(key);
                if gone.owns(&element) {
                    kept.remove(key);
                } else if let Some(gone) = gone.below(&element) {
                    kept.insert(key.clone(), without(below(schema, key), value, gone).into_owned());
                }
            }
            Cow::Owned(Value::object(kept))
        }
        Parts::Items(items, item) => {
            let kept = items.into_iter().filter(|(element, _)| !gone.owns(element));
            let cut = kept.map(|(element, value)| match gone.below(&element) {
                Some(gone) => without(item, value, gone).into_owned(),
                None => value.clone(),
            });
            Cow::Owned(Value::array(cut.collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(values: &[Value]) -> Vec<(Str, &Value)> {
        values.iter().map(|value| (Str::new(value.as_str().unwrap()), value)).collect()
    }

    #[test]
    fn merged_lists_have_the_order_of_an_api_server() {
        // As the library for server-side apply merges them.
        let table = [
            ("a b c", "c a", "b c a"),
            ("a b c", "d b", "a d b c"),
            ("a b c d", "d x b", "a c d x b"),
            ("a b", "c d", "a b c d"),
            ("a b c", "c b a", "c b a"),
            ("p a q b r", "b a", "p q b r a"),
            ("a b c", "b", "a b c"),
            ("", "a", "a"),
        ];
        let values = |text: &str| text.split_whitespace().map(Value::from).collect::<Vec<_>>();
        for (old, new, want) in table {
            let (old_values, new_values) = (values(old), values(new));
            let merged = merge_items(&named(&old_values), &named(&new_values), None);
            let merged: Vec<&str> = merged.iter().filter_map(Value::as_str).collect();
            assert_eq!(merged.join(" "), want, "{old} and {new}");
        }
    }
}
