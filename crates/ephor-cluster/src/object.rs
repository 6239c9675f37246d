//! Metadata of objects.

use ephor_expr::{Map, Str, Value};

/// How many levels of nesting a document around one object of an API server has at most. An API server reads objects
/// of 10,000 levels; lists, watch events and admission reviews put two around them.
pub const MAX_LEVELS: usize = 10_002;

/// The text at `metadata.KEY`; empty if there is none.
pub fn text<'o>(object: &'o Value, key: &str) -> &'o str {
    object.str_at(&["metadata", key]).unwrap_or_default()
}

/// The name.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// The namespace; empty if there is none.
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// The texts of the list at `metadata.KEY`.
pub fn texts<'o>(object: &'o Value, key: &str) -> impl Iterator<Item = &'o str> {
    object.at(&["metadata", key]).and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str)
}

/// The object without anything but `apiVersion`, `kind` and `metadata`.
pub fn metadata_of(object: &Value) -> Value {
    let kept = ["apiVersion", "kind", "metadata"].into_iter();
    Value::object(kept.filter_map(|key| Some((Str::new_static(key), object.get(key)?.clone()))).collect())
}

/// Whether `metadata.finalizers` holds the object.
pub fn has_finalizers(object: &Value) -> bool {
    texts(object, "finalizers").next().is_some()
}

/// Whether the object is marked as deleted.
pub fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// `metadata` for change; created, also in place of anything that is no object. `None` if `object` itself is none.
pub fn metadata_mut(object: &mut Value) -> Option<&mut Map> {
    let metadata = object.as_object_mut()?.entry("metadata");
    if metadata.as_object().is_none() {
        *metadata = Value::object(Map::new());
    }
    metadata.as_object_mut()
}

/// Sets `metadata.KEY`.
pub fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(metadata) = metadata_mut(object) {
        metadata.insert(key, value);
    }
}

/// Takes `metadata.KEY` away.
pub fn unset(object: &mut Value, key: &str) {
    if object.at(&["metadata", key]).is_some()
        && let Some(metadata) = metadata_mut(object)
    {
        metadata.remove(key);
    }
}

/// Makes `metadata.KEY` what it is in `from`.
pub fn copy(object: &mut Value, from: &Value, key: &str) {
    match from.at(&["metadata", key]) {
        Some(value) => set(object, key, value.clone()),
        None => unset(object, key),
    }
}

/// Makes the top-level member `key` what it is in `from`.
pub fn copy_member(object: &mut Value, from: &Value, key: &str) {
    if let Some(members) = object.as_object_mut() {
        match from.get(key) {
            Some(value) => members.insert(key, value.clone()),
            None => members.remove(key),
        };
    }
}

/// Sets the list of texts at `metadata.KEY`, or takes it away when it is empty.
pub fn set_texts(object: &mut Value, key: &str, texts: Vec<Str>) {
    if texts.is_empty() {
        unset(object, key);
    } else {
        set(object, key, texts);
    }
}
