//! Metadata of objects.

use ephor_expr::{Map, Str, Value};

/// The text at `metadata.KEY`; empty if there is none.
pub(crate) fn text<'o>(object: &'o Value, key: &str) -> &'o str {
    object.str_at(&["metadata", key]).unwrap_or_default()
}

/// The name.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

/// The namespace; empty if there is none.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// The texts of the list at `metadata.KEY`.
pub(crate) fn texts<'o>(object: &'o Value, key: &str) -> impl Iterator<Item = &'o str> {
    object.at(&["metadata", key]).and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str)
}

/// Whether `metadata.finalizers` holds the object.
pub(crate) fn has_finalizers(object: &Value) -> bool {
    texts(object, "finalizers").next().is_some()
}

/// Whether the object is marked as deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// `metadata` for change; created, also in place of anything that is no object. `None` if `object` itself is none.
pub(crate) fn metadata_mut(object: &mut Value) -> Option<&mut Map> {
    let metadata = object.as_object_mut()?.entry("metadata");
    if metadata.as_object().is_none() {
        *metadata = Value::object(Map::new());
    }
    metadata.as_object_mut()
}

/// Sets `metadata.KEY`.
pub(crate) fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(metadata) = metadata_mut(object) {
        metadata.insert(key, value);
    }
}

/// Takes `metadata.KEY` away.
pub(crate) fn unset(object: &mut Value, key: &str) {
    if object.at(&["metadata", key]).is_some()
        && let Some(metadata) = metadata_mut(object)
    {
        metadata.remove(key);
    }
}

/// Makes `metadata.KEY` what it is in `from`.
pub(crate) fn copy(object: &mut Value, from: &Value, key: &str) {
    match from.at(&["metadata", key]) {
        Some(value) => set(object, key, value.clone()),
        None => unset(object, key),
    }
}

/// Makes the top-level member `key` what it is in `from`.
pub(crate) fn copy_member(object: &mut Value, from: &Value, key: &str) {
    if let Some(members) = object.as_object_mut() {
        match from.get(key) {
            Some(value) => members.insert(key, value.clone()),
            None => members.remove(key),
        };
    }
}

/// Sets the list of texts at `metadata.KEY`, or takes it away when it is empty.
pub(crate) fn set_texts(object: &mut Value, key: &str, texts: Vec<Str>) {
    if texts.is_empty() {
        unset(object, key);
    } else {
        set(object, key, texts);
    }
}
