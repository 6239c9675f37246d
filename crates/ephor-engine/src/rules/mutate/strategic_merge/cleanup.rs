//! What is left of a patch once its anchors are decided.

use ephor_expr::{Map, Value};

use super::preprocess::{anchor_of, condition_key};
use crate::rules::anchor::Anchor;
use crate::rules::mutate::limits::MAX_DEPTH;

/// The patch without conditions, anchored list items and empty maps. Conditions on maps and lists at the root keep
/// their parentheses: there the reference leaves them as they are.
pub(super) fn clean_root(patch: &Value) -> Value {
    match patch {
        Value::Object(map) => Value::object(clean_map(map, true, MAX_DEPTH)),
        other => other.clone(),
    }
}

/// The same for an item of a list.
pub(super) fn clean_copy(item: &Value) -> Value {
    match item {
        Value::Object(map) => Value::object(clean_map(map, false, MAX_DEPTH)),
        other => other.clone(),
    }
}

/// The cleaned value; `None` if nothing is left of it. Lists that were empty stay.
fn clean(value: &Value, depth: usize) -> Option<Value> {
    // The walk before this one refuses what is nested deeper.
    let depth = depth.checked_sub(1)?;
    match value {
        Value::Object(map) => {
            let cleaned = clean_map(map, false, depth);
            (!cleaned.is_empty()).then(|| Value::object(cleaned))
        }
        Value::Array(items) if items.is_empty() => Some(value.clone()),
        Value::Array(items) => {
            let kept: Vec<Value> =
                items.iter().filter(|item| !is_anchored_item(item)).filter_map(|item| clean(item, depth)).collect();
            (!kept.is_empty()).then(|| Value::array(kept))
        }
        scalar => Some(scalar.clone()),
    }
}

fn clean_map(map: &Map, keep_anchors: bool, depth: usize) -> Map {
    let mut cleaned = Map::with_capacity(map.len());
    for (key, value) in map.iter() {
        let condition = condition_key(key);
        if condition.is_some() && !matches!(value, Value::Object(_) | Value::Array(_)) {
            continue;
        }
        let Some(value) = clean(value, depth) else { continue };
        match condition {
            Some(name) if !keep_anchors => cleaned.insert(name, value),
            _ => cleaned.insert(key.clone(), value),
        };
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
