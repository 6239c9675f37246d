//! Lists that are merged item by item.
//!
//! What a patch adds comes before what the resource has. In a list with one key, items that the patch names come to
//! the front as well, in the order of the patch; in a list with two keys they stay where they are. Items of the
//! resource that the patch does not name stay, whatever the patch holds: only `$patch: delete` and `$patch: replace`
//! remove any.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, btree_map};

use ephor_expr::{Map, Value};

use super::error::{MergeError, NodeKind};
use super::merge::{DIRECTIVE, Directive, Merged, fresh_map, merge_map};
use super::schema::{ListKey, Shape};

/// The text of a scalar; `80` and `"80"` are one key. `None` for null and for what cannot be a key.
fn scalar_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => Some(Cow::Owned(value.to_json())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The key values of an item. In a list with two keys one of them may be missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ItemKey<'v> {
    primary: Option<Cow<'v, str>>,
    secondary: Option<Cow<'v, str>>,
}

impl ListKey {
    /// The key of `item`, `None` if it has neither key.
    fn of(self, item: &Map) -> Option<ItemKey<'_>> {
        let text = |name| item.get(name).and_then(scalar_text);
        let key = ItemKey { primary: text(self.primary), secondary: self.secondary.and_then(text) };
        (key.primary.is_some() || key.secondary.is_some()).then_some(key)
    }

    /// Whether `item` has no key because it says `null` for it. Such an item has no effect.
    fn is_null_in(self, item: &Map) -> bool {
        self.of(item).is_none() && item.get(self.primary).is_some_and(Value::is_null)
    }
}

/// Keys seen so far, and where. Ordered maps: requests choose the keys, and could choose colliding hashes.
#[derive(Default)]
struct Seen<'v> {
    places: BTreeMap<ItemKey<'v>, usize>,
    /// Of items with both keys, each of the keys as if the other were missing.
    halves: BTreeSet<ItemKey<'v>>,
}

impl<'v> Seen<'v> {
    /// Notes `key`; gives back where it was seen first, if it was.
    fn note(&mut self, key: ItemKey<'v>, place: usize) -> Option<usize> {
        if key.primary.is_some() && key.secondary.is_some() {
            self.halves.insert(ItemKey { primary: None, ..key.clone() });
            self.halves.insert(ItemKey { secondary: None, ..key.clone() });
        }
        match self.places.entry(key) {
            btree_map::Entry::Occupied(entry) => Some(*entry.get()),
            btree_map::Entry::Vacant(entry) => {
                entry.insert(place);
                None
            }
        }
    }

    fn place(&self, key: &ItemKey<'v>) -> Option<usize> {
        self.places.get(key).copied()
    }

    /// Whether some item has one key in common with `key`, and only one of the two has the other key.
    ///
    /// Upstream: such an item of a patch is neither merged nor added.
    fn is_ambiguous(&self, key: &ItemKey<'v>) -> bool {
        if key.primary.is_none() || key.secondary.is_none() {
            return self.halves.contains(key);
        }
        self.places.contains_key(&ItemKey { primary: None, ..key.clone() })
            || self.places.contains_key(&ItemKey { secondary: None, ..key.clone() })
    }
}

/// A list's own directive: that of the last item which has a `$patch` and nothing else.
fn list_directive(patch: &[Value]) -> Result<Directive, MergeError> {
    let mut directive = Directive::Merge;
    for item in patch.iter().filter_map(Value::as_object).filter(|item| is_directive(item)) {
        match Directive::of(item)? {
            Directive::Merge => {}
            other => directive = other,
        }
    }
    Ok(directive)
}

fn is_directive(item: &Map) -> bool {
    item.len() == 1 && item.contains_key(DIRECTIVE)
}

/// What stands at a place of the resource's list.
enum Slot {
    /// The old item of this place, not named by the patch so far.
    Untouched(usize),
    /// An item that the patch named; with its old place if that changed nothing.
    Merged(Option<usize>, Value),
    Gone,
}

/// Merges the items of `patch` into those of `old`.
pub(super) fn merge_list(
    patch: &[Value],
    old: &[Value],
    key: ListKey,
    items: Shape,
    depth: usize,
) -> Result<Merged, MergeError> {
    match list_directive(patch)? {
        Directive::Delete => return Ok(Merged::Gone),
        Directive::Replace => return fresh_list(patch, key, items, depth),
        Directive::Merge => {}
    }
    let has_secondary = key.secondary.is_some_and(|name| {
        let has = |item: &Value| item.get(name).and_then(scalar_text).is_some();
        old.iter().any(has) || patch.iter().any(has)
    });
    let mut list = KeyedList::new(old, key, items, depth);
    list.moves = !has_secondary;
    for item in patch {
        match item {
            Value::Null => {}
            Value::Object(item) if is_directive(item) || key.is_null_in(item) => {}
            Value::Object(item) => match key.of(item) {
                Some(item_key) => list.apply(item, item_key)?,
                None => list.add(item)?,
            },
            other => return Err(MergeError::wrong_kind(NodeKind::Mapping, other)),
        }
    }
    let (items, same) = list.finish();
    if same && items.len() == old.len() { Ok(Merged::Same) } else { Ok(Merged::New(Value::array(items))) }
}

struct KeyedList<'v> {
    old: &'v [Value],
    /// The shape of the items.
    items: Shape,
    depth: usize,
    /// Whether items that the patch names come to the front.
    moves: bool,
    /// What comes before the old items; with the place of those that are old and unchanged.
    front: Vec<(Option<usize>, Value)>,
    slots: Vec<Slot>,
    seen_old: Seen<'v>,
    seen_new: Seen<'v>,
}

impl<'v> KeyedList<'v> {
    fn new(old: &'v [Value], key: ListKey, items: Shape, depth: usize) -> Self {
        let mut slots: Vec<Slot> = Vec::with_capacity(old.len());
        let mut seen_old = Seen::default();
        for (place, value) in old.iter().enumerate() {
            let first = value.as_object().and_then(|item| key.of(item)).and_then(|k| seen_old.note(k, place));
            // Of items with one key the last stands in for all, at the place of the first.
            match first.and_then(|first| slots.get_mut(first)) {
                Some(slot) => {
                    *slot = Slot::Untouched(place);
                    slots.push(Slot::Gone);
                }
                None => slots.push(Slot::Untouched(place)),
            }
        }
        Self { old, items, depth, moves: true, front: Vec::new(), slots, seen_old, seen_new: Seen::default() }
    }

    /// Applies an item of the patch; of several with one key, only the first.
    fn apply(&mut self, item: &'v Map, key: ItemKey<'v>) -> Result<(), MergeError> {
        if self.seen_new.place(&key).is_some() {
            return Ok(());
        }
        match self.seen_old.place(&key) {
            Some(place) => self.change(item, place)?,
            None if self.seen_old.is_ambiguous(&key) || self.seen_new.is_ambiguous(&key) => return Ok(()),
            None => self.add(item)?,
        }
        self.seen_new.note(key, 0);
        Ok(())
    }

    /// Adds an item of the patch before the old ones.
    fn add(&mut self, item: &Map) -> Result<(), MergeError> {
        if let Merged::New(value) = fresh_map(item, self.items, self.depth)? {
            self.front.push((None, value));
        }
        Ok(())
    }

    fn change(&mut self, item: &Map, place: usize) -> Result<(), MergeError> {
        let Some(slot) = self.slots.get_mut(place) else { return Ok(()) };
        let Slot::Untouched(source) = *slot else { return Ok(()) };
        let Some(Value::Object(old)) = self.old.get(source) else { return Ok(()) };
        *slot = Slot::Gone;
        let merged = match Directive::of(item)? {
            // The reference does not replace single items; it leaves them alone.
            Directive::Replace => Merged::Same,
            Directive::Merge | Directive::Delete => merge_map(item, old, self.items, self.depth)?,
        };
        let (source, value) = match merged {
            Merged::Gone => return Ok(()),
            Merged::Same => (Some(source), Value::Object(old.clone())),
            Merged::New(value) => (None, value),
        };
        if self.moves {
            self.front.push((source, value));
        } else {
            *slot = Slot::Merged(source, value);
        }
        Ok(())
    }

    /// The new list, and whether each of its items is the old one of the same place.
    fn finish(self) -> (Vec<Value>, bool) {
        let mut items = Vec::with_capacity(self.front.len() + self.old.len());
        let mut same = true;
        let mut push = |source: Option<usize>, value: Value| {
            same &= source == Some(items.len());
            items.push(value);
        };
        for (source, value) in self.front {
            push(source, value);
        }
        for slot in self.slots {
            match slot {
                Slot::Untouched(source) => push(Some(source), self.old.get(source).cloned().unwrap_or_default()),
                Slot::Merged(source, value) => push(source, value),
                Slot::Gone => {}
            }
        }
        (items, same)
    }
}

/// A keyed list where the resource has none: the patch's items, those without key too. Of items with one key the last
/// stands in for all, at the place of the first.
pub(super) fn fresh_list(patch: &[Value], key: ListKey, shape: Shape, depth: usize) -> Result<Merged, MergeError> {
    if list_directive(patch)? == Directive::Delete {
        return Ok(Merged::Gone);
    }
    let mut items: Vec<Value> = Vec::with_capacity(patch.len());
    let mut seen = Seen::default();
    for value in patch {
        let item = match value {
            Value::Null => continue,
            Value::Object(item) if is_directive(item) || key.is_null_in(item) => continue,
            Value::Object(item) => item,
            other => return Err(MergeError::wrong_kind(NodeKind::Mapping, other)),
        };
        let Merged::New(value) = fresh_map(item, shape, depth)? else { continue };
        let first = key.of(item).and_then(|k| seen.note(k, items.len()));
        match first.and_then(|first| items.get_mut(first)) {
            Some(place) => *place = value,
            None => items.push(value),
        }
    }
    Ok(Merged::New(Value::array(items)))
}

/// A set of scalars: those of the patch first, each once.
pub(super) fn merge_set(patch: &[Value], old: &[Value]) -> Result<Merged, MergeError> {
    let kept = match list_directive(patch)? {
        Directive::Delete => return Ok(Merged::Gone),
        Directive::Replace => &[],
        Directive::Merge => old,
    };
    let mut seen = BTreeSet::new();
    let mut items = Vec::with_capacity(patch.len() + old.len());
    for value in patch.iter().chain(kept) {
        match scalar_text(value) {
            Some(text) if seen.insert(text.clone()) => items.push(value.clone()),
            Some(_) => {}
            None if value.is_null() || value.as_object().is_some_and(is_directive) => {}
            None => return Err(MergeError::wrong_kind(NodeKind::Scalar, value)),
        }
    }
    if items == old { Ok(Merged::Same) } else { Ok(Merged::New(Value::array(items))) }
}

/// A set of scalars where the resource has none.
pub(super) fn fresh_set(patch: &[Value]) -> Result<Merged, MergeError> {
    match merge_set(patch, &[])? {
        Merged::Same => Ok(Merged::New(Value::array(Vec::new()))),
        other => Ok(other),
    }
}
