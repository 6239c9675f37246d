//! Files of the command line's own kinds (`cli.kyverno.io`) into types.
//!
//! Decoding is strict, but names of fields count whatever their case, as upstream reads them.

use std::path::Path;
use std::sync::Arc;

use ephor_engine::compile::decode_finding;
use ephor_expr::value::{Path as FieldPath, decode};
use ephor_expr::yaml::{Limits, parse_documents};
use ephor_expr::{Map, Value};
use serde::de::DeserializeOwned;

use super::files::read;
use crate::locate::{Located, Origin};

/// The fields of a type, and the shapes of their values; lists have the shape of their items.
#[derive(Debug)]
pub struct Shape(pub &'static [(&'static str, &'static Shape)]);

/// Data that has no shape of its own: its names stay as they are written.
pub const FREE: Shape = Shape(&[]);

/// One document of a file.
#[derive(Debug, Clone)]
pub struct Typed<T> {
    /// What it says.
    pub value: T,
    /// Where.
    pub origin: Origin,
}

/// Reads a file whose documents are all a `T`.
pub fn read_typed<T: DeserializeOwned>(path: &Path, shape: &Shape) -> Result<Vec<Typed<T>>, Vec<Located>> {
    let file = read(path).map_err(|error| vec![Located::plain("unreadable", error.to_string())])?;
    let documents = parse_documents(&file.text, &Limits::default()).map_err(|e| vec![Located::of_yaml(e, &file)])?;
    let mut typed = Vec::with_capacity(documents.len());
    let mut findings = Vec::new();
    for document in documents {
        let origin = Origin { file: Arc::clone(&file), map: Arc::new(document.source) };
        match decode_typed(document.value, shape, &origin) {
            Ok(value) => typed.push(Typed { value, origin }),
            Err(faults) => findings.extend(faults),
        }
    }
    if findings.is_empty() { Ok(typed) } else { Err(findings) }
}

/// Reads a file that holds one `T`.
pub fn read_one<T: DeserializeOwned>(path: &Path, shape: &Shape) -> Result<Typed<T>, Vec<Located>> {
    let mut all = read_typed(path, shape)?;
    match (all.pop(), all.len()) {
        (Some(one), 0) => Ok(one),
        (last, before) => {
            let count = before + usize::from(last.is_some());
            let message = format!("`{}` holds {count} documents where one is expected", path.display());
            Err(vec![Located::plain("document-count", message)])
        }
    }
}

fn decode_typed<T: DeserializeOwned>(value: Value, shape: &Shape, origin: &Origin) -> Result<T, Vec<Located>> {
    for key in ["apiVersion", "kind"] {
        if value.str_at(&[key]).unwrap_or_default().is_empty() {
            let message = format!("the document has no `{key}`");
            let at = FieldPath::root();
            let finding = ephor_engine::diagnostic::Diagnostic::error("invalid-field", at, message);
            return Err(vec![Located::of_diagnostic(finding, origin)]);
        }
    }
    decode(&canonical(value, shape))
        .map_err(|faults| faults.into_iter().map(|f| Located::of_diagnostic(decode_finding(f), origin)).collect())
}

/// `value` with the names of its fields spelt as `shape` has them. Depth is bounded by the shape, lists apart.
fn canonical(value: Value, shape: &Shape) -> Value {
    if shape.0.is_empty() {
        return value;
    }
    match value {
        Value::Array(items) => Value::array(items.iter().map(|item| member(item, shape)).collect()),
        other => member(&other, shape),
    }
}

fn member(value: &Value, shape: &Shape) -> Value {
    let Some(map) = value.as_object() else { return value.clone() };
    let mut spelt = Map::with_capacity(map.len());
    for (key, value) in map.iter() {
        let known = shape.0.iter().find(|(name, _)| name == key);
        let known = known.or_else(|| shape.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)));
        match known {
            // Of two spellings of one name the exact one counts; the other stays and is refused as unknown.
            Some((name, shape)) if name == key || !map.contains_key(name) => {
                spelt.insert(*name, canonical(value.clone(), shape));
            }
            _ => {
                spelt.insert(key.clone(), value.clone());
            }
        }
    }
    Value::object(spelt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INNER: Shape = Shape(&[("isPolicy", &FREE), ("free", &FREE)]);
    const OUTER: Shape = Shape(&[("items", &INNER)]);

    #[test]
    fn names_count_whatever_their_case_but_not_in_free_data() {
        let value = Value::from_json(r#"{"Items":[{"isPOLICY":1,"free":{"A":1}}]}"#).unwrap();
        let want = Value::from_json(r#"{"items":[{"isPolicy":1,"free":{"A":1}}]}"#).unwrap();
        assert_eq!(canonical(value, &OUTER), want);
    }

    #[test]
    fn two_spellings_of_one_name_stay_two() {
        let value = Value::from_json(r#"{"items":[],"ITEMS":[1]}"#).unwrap();
        assert_eq!(canonical(value.clone(), &OUTER), value);
    }
}
