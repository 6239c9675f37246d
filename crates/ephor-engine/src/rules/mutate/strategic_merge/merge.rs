//! The merge itself: a patch without anchors over a resource.
//!
//! Maps are merged member by member, null deletes, scalars replace, and lists are replaced unless the kind's
//! [`MergeSchema`] gives them keys (see [`super::keyed`]). What a patch does not touch stays shared with the resource.

use ephor_expr::{Map, Value};

use super::error::{MergeError, NodeKind};
use super::keyed;
use super::schema::{MergeSchema, Shape};
use crate::rules::mutate::limits::MAX_DEPTH;

/// The member of a patch's map that says what to do with the map as a whole.
pub(super) const DIRECTIVE: &str = "$patch";

/// What a patch makes of a value.
pub(super) enum Merged {
    /// What it was.
    Same,
    /// Something else.
    New(Value),
    /// Nothing.
    Gone,
}

/// What a `$patch` member asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    Merge,
    Replace,
    Delete,
}

impl Directive {
    /// The directive in `patch`, [`Directive::Merge`] if there is none.
    pub(super) fn of(patch: &Map) -> Result<Self, MergeError> {
        match patch.get(DIRECTIVE) {
            None => Ok(Directive::Merge),
            Some(value) => match value.as_str() {
                Some("merge") => Ok(Directive::Merge),
                Some("replace") => Ok(Directive::Replace),
                Some("delete") => Ok(Directive::Delete),
                Some(other) => Err(MergeError::UnknownDirective(other.to_owned())),
                None => Err(MergeError::UnknownDirective(value.to_json())),
            },
        }
    }
}

/// Applies `patch`, which has no anchors any more, to `resource`, an object of the kind that `schema` describes.
pub fn merge(patch: &Value, resource: &Value, schema: MergeSchema) -> Result<Value, MergeError> {
    match merge_value(patch, resource, schema.root(), MAX_DEPTH)? {
        Merged::Same => Ok(resource.clone()),
        Merged::New(value) => Ok(value),
        Merged::Gone => Err(MergeError::ObjectDeleted),
    }
}

pub(super) fn merge_value(patch: &Value, old: &Value, shape: Shape, depth: usize) -> Result<Merged, MergeError> {
    let depth = depth.checked_sub(1).ok_or(MergeError::TooDeep)?;
    match (patch, old) {
        (Value::Null, _) => Ok(Merged::Gone),
        (_, Value::Null) => fresh_value(patch, shape, depth),
        (Value::Object(patch), Value::Object(old)) => merge_map(patch, old, shape, depth),
        (Value::Array(new), Value::Array(old_items)) => match shape {
            Shape::Keyed(key, fields) => keyed::merge_list(new, old_items, key, Shape::Map(fields), depth),
            Shape::Set => keyed::merge_set(new, old_items),
            Shape::Plain | Shape::Map(_) | Shape::Unknown if patch == old => Ok(Merged::Same),
            Shape::Plain | Shape::Map(_) | Shape::Unknown => Ok(Merged::New(patch.clone())),
        },
        (Value::Array(_) | Value::Object(_), _) | (_, Value::Array(_) | Value::Object(_)) => {
            Err(MergeError::wrong_kind(NodeKind::of(old), patch))
        }
        _ if patch == old => Ok(Merged::Same),
        // Upstream: what is a string stays one, so that `value: 5` over `"4"` gives `"5"`.
        (Value::Bool(_) | Value::Int(_) | Value::Float(_), Value::String(old)) => {
            let text = patch.to_json();
            if text == old.as_str() { Ok(Merged::Same) } else { Ok(Merged::New(Value::from(text))) }
        }
        _ => Ok(Merged::New(patch.clone())),
    }
}

pub(super) fn merge_map(patch: &Map, old: &Map, shape: Shape, depth: usize) -> Result<Merged, MergeError> {
    match Directive::of(patch)? {
        Directive::Delete => return Ok(Merged::Gone),
        Directive::Replace => return fresh_map(patch, shape, depth),
        Directive::Merge => {}
    }
    let mut changes = Vec::new();
    for (key, value) in patch.iter().filter(|(key, _)| *key != DIRECTIVE) {
        let current = old.get(key);
        let shape = shape.of_member(key, current);
        let merged = match current {
            Some(old) => merge_value(value, old, shape, depth)?,
            None => fresh_value(value, shape, depth)?,
        };
        match merged {
            Merged::New(value) => changes.push((key.clone(), Some(value))),
            Merged::Gone if old.contains_key(key) => changes.push((key.clone(), None)),
            Merged::Same | Merged::Gone => {}
        }
    }
    Ok(if changes.is_empty() { Merged::Same } else { Merged::New(Value::object(old.changed(changes))) })
}

/// What `patch` is where the resource has nothing: itself without nulls and directives. Never [`Merged::Same`].
pub(super) fn fresh_value(patch: &Value, shape: Shape, depth: usize) -> Result<Merged, MergeError> {
    let depth = depth.checked_sub(1).ok_or(MergeError::TooDeep)?;
    match (patch, shape) {
        (Value::Null, _) => Ok(Merged::Gone),
        (Value::Object(map), _) => fresh_map(map, shape, depth),
        (Value::Array(items), Shape::Keyed(key, fields)) => keyed::fresh_list(items, key, Shape::Map(fields), depth),
        (Value::Array(items), Shape::Set) => keyed::fresh_set(items),
        _ => Ok(Merged::New(patch.clone())),
    }
}

pub(super) fn fresh_map(patch: &Map, shape: Shape, depth: usize) -> Result<Merged, MergeError> {
    if Directive::of(patch)? == Directive::Delete {
        return Ok(Merged::Gone);
    }
    let mut new = Map::with_capacity(patch.len());
    for (key, value) in patch.iter().filter(|(key, _)| *key != DIRECTIVE) {
        if let Merged::New(value) = fresh_value(value, shape.of_member(key, None), depth)? {
            new.insert(key.clone(), value);
        }
    }
    Ok(Merged::New(Value::object(new)))
}
