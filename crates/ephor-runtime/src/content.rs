//! Compares objects by content.
//!
//! A server does not store exactly what it receives: it adds defaults, and mutating webhooks change objects. So a
//! downstream is compared with the object that its rule renders and with the result of the last write ([`Written`]).
//! After a restart there is no last write, and the object is written once more. The API server ignores a write that
//! changes nothing.

use ephor_expr::{Map, Str, Value};
use sha2::{Digest, Sha256};

/// The annotation on generated objects that records how they were made.
pub const OWNERSHIP_ANNOTATION: &str = "ephor.dev/generated";

/// The label on objects that were there before a rule wrote to them. The annotation says so too: an
/// object without one of the two is still not one that a rule created.
pub const ADOPTED_LABEL: &str = "ephor.dev/adopted";

/// Fields of `metadata` that only the server writes.
const SERVER_OWNED: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// An object without its status, the server's fields and empty metadata fields.
pub fn normalized_content(object: &Value) -> Value {
    let Some(members) = object.as_object() else { return object.clone() };
    let mut members = members.clone();
    members.remove("status");
    if let Some(metadata) = members.get("metadata").and_then(Value::as_object) {
        let mut metadata = metadata.clone();
        for key in SERVER_OWNED {
            metadata.remove(key);
        }
        metadata.retain(|_, value| match value {
            Value::Null => false,
            Value::Object(map) => !map.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        });
        members.insert("metadata", metadata);
    }
    Value::object(members)
}

/// An object without the ownership annotation and the label beside it.
pub fn without_ownership(object: &Value) -> Value {
    let mut object = object.clone();
    for (field, key) in [("annotations", OWNERSHIP_ANNOTATION), ("labels", ADOPTED_LABEL)] {
        if object.at(&["metadata", field, key]).is_some() {
            set_entry(&mut object, field, key, None);
        }
    }
    object
}

/// A short fingerprint of a value.
pub fn fingerprint(value: &Value) -> String {
    hex(value.to_json().as_bytes())
}

/// A short fingerprint of bytes: 64 bits in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut first = [0; 8];
    first.iter_mut().zip(Sha256::digest(bytes)).for_each(|(to, byte)| *to = byte);
    format!("{:016x}", u64::from_be_bytes(first))
}

/// The last write of an object and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Fingerprint of the normalized content that was sent.
    pub sent: String,
    /// Fingerprint of the normalized content that was stored.
    pub stored: String,
    /// Whether it was a server-side apply, so that managed fields tell which fields this writer owns.
    pub applied: bool,
    /// Where the object comes from, if this process knows. Users can edit labels and annotations, but not this.
    pub origin: Option<Origin>,
}

/// Where an object comes from that a rule wrote to, with its UID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// This process created it.
    Created(Str),
    /// It was there before.
    Found(Str),
}

impl Written {
    /// Records that a write of `sent` resulted in `stored`.
    pub fn new(sent: &Value, stored: &Value) -> Self {
        Self {
            sent: fingerprint(&normalized_content(sent)),
            stored: fingerprint(&normalized_content(stored)),
            applied: false,
            origin: None,
        }
    }

    /// Whether the object with this UID was there before its rule wrote to it; `None` if this process does not know.
    pub fn is_found(&self, uid: &str) -> Option<bool> {
        match &self.origin {
            Some(Origin::Created(own)) if own == uid => Some(false),
            Some(Origin::Found(own)) if own == uid => Some(true),
            _ => None,
        }
    }
}

/// Whether `whole` contains all of `part`: objects may have more members, lists must have the same length.
pub fn covers(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| value.is_null() || whole.get(key).is_some_and(|w| covers(w, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part.iter()).all(|(w, p)| covers(w, p))
        }
        (whole, part) => whole == part,
    }
}

/// `wanted` with the metadata of `live` that an update must not remove: finalizers, and the annotations of Kubernetes'
/// own controllers.
pub fn preserve_system_metadata(wanted: &Value, live: &Value) -> Value {
    let mut merged = wanted.clone();
    let finalizers = live.at(&["metadata", "finalizers"]).filter(|f| f.as_array().is_some_and(|f| !f.is_empty()));
    let annotations = live.at(&["metadata", "annotations"]).and_then(Value::as_object);
    let kept: Vec<_> = annotations
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(key, _)| is_book(key) && wanted.at(&["metadata", "annotations", key]).is_none())
        .collect();
    if finalizers.is_none() && kept.is_empty() {
        return merged;
    }
    if let Some(metadata) = merged.as_object_mut().map(|o| o.entry("metadata")).and_then(Value::as_object_mut) {
        if let Some(finalizers) = finalizers
            && !metadata.contains_key("finalizers")
        {
            metadata.insert("finalizers", finalizers.clone());
        }
        if !kept.is_empty() {
            let annotations = metadata.entry("annotations");
            if annotations.as_object().is_none() {
                *annotations = Value::object(Map::new());
            }
            if let Some(annotations) = annotations.as_object_mut() {
                for (key, value) in kept {
                    annotations.insert(key.clone(), value.clone());
                }
            }
        }
    }
    merged
}

fn is_book(annotation: &str) -> bool {
    let Some((host, _)) = annotation.split_once('/') else { return false };
    // What `kubectl apply` notes is the work of a user, and so are the words of pod security.
    let system = |zone: &str| host == zone || host.strip_suffix(zone).is_some_and(|rest| rest.ends_with('.'));
    (system("kubernetes.io") || system("k8s.io")) && !matches!(host, "kubectl.kubernetes.io" | "app.kubernetes.io")
}

/// Sets `metadata.FIELD.KEY` to a text; with `None`, takes it away.
pub fn set_entry(object: &mut Value, field: &str, key: &str, text: Option<&str>) {
    let Some(members) = object.as_object_mut() else { return };
    let metadata = members.entry("metadata");
    if metadata.as_object().is_none() {
        *metadata = Value::object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else { return };
    if let Some(text) = text {
        let entries = metadata.entry(field);
        if entries.as_object().is_none() {
            *entries = Value::object(Map::new());
        }
        if let Some(entries) = entries.as_object_mut() {
            entries.insert(key, text);
        }
    } else if let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) {
        entries.remove(key);
        if entries.is_empty() {
            metadata.remove(field);
        }
    }
}

/// Sets or takes away `metadata.KEY`.
pub fn set_meta(object: &mut Value, key: &str, value: Option<Value>) {
    let Some(metadata) = object.as_object_mut().map(|o| o.entry("metadata")).and_then(Value::as_object_mut) else {
        return;
    };
    match value {
        Some(value) => metadata.insert(key, value),
        None => metadata.remove(key),
    };
}

/// Makes texts of numbers and booleans among labels and annotations, which variables leave there: the API server takes
/// nothing else.
pub fn with_texts(object: &mut Value) {
    let Some(metadata) = object.as_object_mut().map(|o| o.entry("metadata")).and_then(Value::as_object_mut) else {
        return;
    };
    for field in ["labels", "annotations"] {
        let Some(entries) = metadata.get(field).and_then(Value::as_object) else { continue };
        if entries.values().any(|value| matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_))) {
            let text = |value: &Value| match value {
                Value::Int(_) | Value::Float(_) | Value::Bool(_) => Value::from(value.to_json()),
                other => other.clone(),
            };
            let entries: Map = entries.iter().map(|(key, value)| (key.clone(), text(value))).collect();
            metadata.insert(field, entries);
        }
    }
}
