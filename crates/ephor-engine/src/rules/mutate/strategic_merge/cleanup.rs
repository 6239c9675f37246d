//! What is left of a patch once its anchors are decided.

use ephor_expr::{Map, Value};

use super::merge::Merged;
use super::preprocess::{anchor_of, condition_key};
use crate::rules::anchor::Anchor;
use crate::rules::mutate::limits::MAX_DEPTH;

/// The patch without conditions, anchored list items and empty maps. Conditions on maps and lists at the root keep
/// their parentheses: there the reference leaves them as they are.
pub(super) fn clean_root(patch: &Value) -> Value {
    clean_whole(patch, true)
}

/// The same for an item of a list.
pub(super) fn clean_copy(item: &Value) -> Value {
    clean_whole(item, false)
}

fn clean_whole(value: &Value, keep_anchors: bool) -> Value {
    match value.as_object().and_then(|map| clean_map(map, keep_anchors, MAX_DEPTH)) {
        Some(cleaned) => Value::object(cleaned),
        None => value.clone(),
    }
}

/// What is left of `value`. Lists that were empty stay, maps do not.
fn clean(value: &Value, depth: usize) -> Merged {
    // The walk before this one refuses what is nested deeper.
    let Some(depth) = depth.checked_sub(1) else { return Merged::Gone };
    match value {
        Value::Object(map) => match clean_map(map, false, depth) {
            None if map.is_empty() => Merged::Gone,
            None => Merged::Same,
            Some(cleaned) if cleaned.is_empty() => Merged::Gone,
            Some(cleaned) => Merged::New(Value::object(cleaned)),
        },
        Value::Array(items) => clean_list(items, depth),
        _ => Merged::Same,
    }
}

fn clean_list(items: &[Value], depth: usize) -> Merged {
    let mut same = true;
    let mut cleaned = Vec::with_capacity(items.len());
    for item in items {
        match if is_anchored_item(item) { Merged::Gone } else { clean(item, depth) } {
            Merged::Same => cleaned.push(item.clone()),
            Merged::New(item) => {
                same = false;
                cleaned.push(item);
            }
            Merged::Gone => same = false,
        }
    }
    match same {
        true => Merged::Same,
        false if cleaned.is_empty() => Merged::Gone,
        false => Merged::New(Value::array(cleaned)),
    }
}

/// The members that are left; `None` if that is all of them as they are.
fn clean_map(map: &Map, keep_anchors: bool, depth: usize) -> Option<Map> {
    let mut cleaned: Option<Map> = None;
    for (key, value) in map.iter() {
        let condition = condition_key(key);
        let is_scalar = !matches!(value, Value::Object(_) | Value::Array(_));
        let outcome = if condition.is_some() && is_scalar { Merged::Gone } else { clean(value, depth) };
        let value = match outcome {
            Merged::Same if condition.is_none() || keep_anchors => continue,
            Merged::Same => Some(value.clone()),
            Merged::New(value) => Some(value),
            Merged::Gone => None,
        };
        let cleaned = cleaned.get_or_insert_with(|| map.clone());
        cleaned.remove(key);
        if let Some(value) = value {
            cleaned.insert(condition.filter(|_| !keep_anchors).unwrap_or(key), value);
        }
    }
    cleaned
}

/// Whether a list item only served as a condition, or has been expanded.
fn is_anchored_item(item: &Value) -> bool {
    match item {
        Value::String(text) => condition_key(text).is_some(),
        Value::Object(_) => strongest_anchor(item, MAX_DEPTH).is_some(),
        _ => false,
    }
}

/// The anchor anywhere in `value` that decides how a list item is treated: a global one before all others.
pub(super) fn strongest_anchor(value: &Value, depth: usize) -> Option<Anchor> {
    let depth = depth.checked_sub(1)?;
    let mut strongest = None;
    let mut note = |found: Option<Anchor>| {
        if strongest != Some(Anchor::Global) {
            strongest = found.or(strongest);
        }
    };
    match value {
        Value::Object(map) => {
            for (key, member) in map.iter() {
                note(anchor_of(key).map(|(anchor, _)| anchor));
                note(strongest_anchor(member, depth));
            }
        }
        Value::Array(items) => {
            for item in items.iter() {
                note(strongest_anchor(item, depth));
            }
        }
        _ => {}
    }
    strongest
}
