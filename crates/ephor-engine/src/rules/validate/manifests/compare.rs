//! Where an object says something else than its signed manifest.

use std::fmt::Write as _;

use ephor_expr::{Map, Value};

use super::ignore::Ignored;

/// How many places a message names.
const SHOWN: usize = 5;

/// How deep objects are walked; deeper is a difference. Reading YAML and JSON stops well before.
const MAX_DEPTH: usize = 256;

/// Members that the API server adds empty. Elsewhere an empty object has a meaning of its own: a
/// `namespaceSelector: {}` selects all namespaces.
const ADDED_EMPTY: [&str; 5] = ["annotations", "labels", "resources", "securityContext", "strategy"];

/// The places where two objects differ.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// The first of them, as `spec.ports.0.port`.
    pub(super) places: Vec<String>,
    /// Whether there are more.
    pub(super) more: bool,
}

impl Differences {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl std::fmt::Display for Differences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.places.join(", "))?;
        if self.more { f.write_str(" and more") } else { Ok(()) }
    }
}

/// Compares `manifest` with `object` but for the ignored fields.
///
/// A null member is the same as none. Lists are compared item by item.
pub(super) fn differences(manifest: &Value, object: &Value, ignored: &Ignored<'_>) -> Differences {
    let mut walk = Walk { ignored, place: String::new(), found: Differences::default() };
    walk.values(Some(manifest), Some(object), 0);
    walk.found
}

struct Walk<'i> {
    ignored: &'i Ignored<'i>,
    place: String,
    found: Differences,
}

impl Walk<'_> {
    fn values(&mut self, manifest: Option<&Value>, object: Option<&Value>, depth: usize) {
        if self.found.more {
            return;
        }
        if depth >= MAX_DEPTH {
            return self.differ();
        }
        let empty = Map::new();
        match (manifest, object) {
            (None, None) => {}
            (Some(Value::Object(a)), Some(Value::Object(b))) => self.members(a, b, depth),
            (Some(Value::Object(a)), None) if !a.is_empty() => self.members(a, &empty, depth),
            (None, Some(Value::Object(b))) if !b.is_empty() => self.members(&empty, b, depth),
            (None, Some(Value::Object(_))) | (Some(Value::Object(_)), None) if self.is_added_empty() => {}
            (Some(Value::Array(a)), Some(Value::Array(b))) => self.items(a, b, depth),
            (Some(Value::Array(a)), None) if !a.is_empty() => self.items(a, &[], depth),
            (None, Some(Value::Array(b))) if !b.is_empty() => self.items(&[], b, depth),
            (Some(Value::String(a)), Some(Value::String(b))) if self.is_image() && same_image(a, b) => {}
            (a, b) if a == b => {}
            _ => self.differ(),
        }
    }

    fn members(&mut self, manifest: &Map, object: &Map, depth: usize) {
        for (key, theirs) in manifest.iter() {
            self.step(key, said(Some(theirs)), said(object.get(key)), depth);
        }
        for (key, ours) in object.iter().filter(|(key, _)| !manifest.contains_key(key)) {
            self.step(key, None, said(Some(ours)), depth);
        }
    }

    fn items(&mut self, manifest: &[Value], object: &[Value], depth: usize) {
        let mut number = String::new();
        for index in 0..manifest.len().max(object.len()) {
            number.clear();
            let _ = write!(number, "{index}");
            self.step(&number, manifest.get(index), object.get(index), depth);
        }
    }

    fn step(&mut self, name: &str, manifest: Option<&Value>, object: Option<&Value>, depth: usize) {
        let length = self.place.len();
        if !self.place.is_empty() {
            self.place.push('.');
        }
        self.place.push_str(name);
        self.values(manifest, object, depth + 1);
        self.place.truncate(length);
    }

    fn differ(&mut self) {
        if self.ignored.covers(&self.place) {
            return;
        }
        if self.found.places.len() < SHOWN {
            self.found.places.push(self.place.clone());
        } else {
            self.found.more = true;
        }
    }

    fn last_name(&self) -> &str {
        self.place.rsplit('.').next().unwrap_or_default()
    }

    fn is_added_empty(&self) -> bool {
        ADDED_EMPTY.contains(&self.last_name())
    }

    fn is_image(&self) -> bool {
        self.last_name() == "image"
    }
}

fn said(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

/// Whether `actual` is `signed`, perhaps with the registry or the tag that it stands for.
fn same_image(signed: &str, actual: &str) -> bool {
    actual == signed
        || actual.strip_prefix("docker.io/") == Some(signed)
        || actual.strip_suffix(":latest") == Some(signed)
}
