//! Formats changes as the diff that `ephor plan` prints.
//!
//! Values of Secrets are never shown, only that they differ.

use std::borrow::Cow;

use ephor_engine::redact::Redactor;
use ephor_expr::{Map, Str, Value, yaml};
use ephor_runtime::content::{normalized_content, set_entry, without_ownership};
use similar::{ChangeTag, TextDiff};

use super::change::{Action, Change};
use super::claim::{EXISTING, MANAGED_BY};

/// Where `kubectl apply` notes what it was given.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A change as a headline and a unified diff of what the object says.
pub fn render(change: &Change) -> String {
    rendered(change, Clone::clone, &Redactor::default())
}

/// The same without the notes by which Ephor knows the objects that it makes: they are many lines, and no news.
/// What comes from `secrets` is not shown, only that it differs.
pub fn readable(change: &Change, secrets: &Redactor) -> String {
    secrets.text(&rendered(change, without_notes, secrets)).into_owned()
}

fn rendered(change: &Change, seen: impl Fn(&Value) -> Value, secrets: &Redactor) -> String {
    let nothing = Value::Null;
    let (before, after) = match &change.action {
        Action::Create(object) => (&nothing, object),
        Action::Replace { before, after } => (before, after),
        Action::Apply { before, after } => (before.as_ref().unwrap_or(&nothing), after),
        Action::Delete { before, .. } => (before, &nothing),
    };
    let mut out = format!("{} {} ({})\n", change.verb(), change.id, change.reason.as_str());
    let (before, after) = (seen(before), seen(after));
    let (old, new) = (shown(&before, &after, "before", secrets), shown(&after, &before, "after", secrets));
    let diff = TextDiff::from_lines(&old, &new);
    for group in diff.grouped_ops(2) {
        for operation in group {
            for line in diff.iter_changes(&operation) {
                let sign = match line.tag() {
                    ChangeTag::Delete => "- ",
                    ChangeTag::Insert => "+ ",
                    ChangeTag::Equal => "  ",
                };
                out.push_str(sign);
                out.push_str(line.value().trim_end_matches('\n'));
                out.push('\n');
            }
        }
    }
    out
}

/// An object without labels and annotations about where it comes from.
fn without_notes(object: &Value) -> Value {
    let mut object = without_ownership(object);
    let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
    let notes: Vec<Str> = labels.into_iter().flat_map(Map::keys).filter(|key| is_note(key)).cloned().collect();
    if !notes.is_empty() {
        set_entry(&mut object, "labels", MANAGED_BY, None);
    }
    for note in notes {
        set_entry(&mut object, "labels", &note, None);
    }
    object
}

fn is_note(label: &str) -> bool {
    label.starts_with("generate.kyverno.io/") || label == EXISTING
}

fn shown(object: &Value, other: &Value, side: &str, secrets: &Redactor) -> String {
    if object.is_null() {
        return String::new();
    }
    yaml::to_yaml(&veiled(&hidden(&normalized_content(object), other, side), Some(other), side, secrets))
}

/// The texts of an object without what comes from `secrets`: in YAML a value is not written as it is. A text that
/// differs from `other`'s says which side it is on.
fn veiled(value: &Value, other: Option<&Value>, side: &str, secrets: &Redactor) -> Value {
    match value {
        Value::String(text) => match secrets.text(text) {
            Cow::Borrowed(_) => value.clone(),
            Cow::Owned(told) if other.is_none_or(|other| other.is_null() || other == value) => told.into(),
            Cow::Owned(told) => format!("{told} ({side})").into(),
        },
        Value::Array(items) => {
            let other = |i: usize| other.and_then(Value::as_array).and_then(|other| other.get(i));
            Value::array(items.iter().enumerate().map(|(i, item)| veiled(item, other(i), side, secrets)).collect())
        }
        Value::Object(members) => {
            let other = |key: &str| other.and_then(|other| other.get(key));
            members
                .iter()
                .map(|(key, value)| (key.clone(), veiled(value, other(key), side, secrets)))
                .collect::<Map>()
                .into()
        }
        _ => value.clone(),
    }
}

/// A Secret without its values; of those that differ from `other`'s it only says which side they are on.
pub fn hidden(object: &Value, other: &Value, side: &str) -> Value {
    let is_secret = object.str_at(&["kind"]) == Some("Secret") && object.str_at(&["apiVersion"]) == Some("v1");
    let Some(members) = object.as_object().filter(|_| is_secret) else { return object.clone() };
    let mut members = members.clone();
    for field in ["data", "stringData"] {
        if let Some(values) = members.get(field).and_then(Value::as_object) {
            let mark = |key: &str, value: &Value| {
                let alone = other.is_null() || other.at(&[field, key]) == Some(value);
                if alone { "(hidden)".to_owned() } else { format!("(hidden, {side})") }
            };
            let marks: Map = values.iter().map(|(k, v)| (k.clone(), Value::from(mark(k, v)))).collect();
            members.insert(field, marks);
        }
    }
    // The note of `kubectl apply` holds all values once more.
    if let Some(metadata) = members.get("metadata").and_then(Value::as_object) {
        let mut metadata = metadata.clone();
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
            && annotations.contains_key(APPLIED)
        {
            annotations.insert(APPLIED, "(hidden)");
        }
        members.insert("metadata", metadata);
    }
    Value::object(members)
}
