//! Types from schemas: what a rule of a `CustomResourceDefinition` sees as `self` and `oldSelf`.
//!
//! Objects become types with fields, named by their path; values become what their formats say. Names that the
//! language cannot write are escaped: `a-b` is `a__dash__b`.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::environment::{Environment, ObjectType};
use super::types::Type;
use super::value::{Associative, Key, List, Val};
use crate::Str;
use crate::scalar::duration::Duration;
use crate::scalar::go_time;
use crate::value::Value;

/// The name of the type of the whole object.
const ROOT: &str = "selfType";
/// How deep schemas are followed; below, values are `dyn`.
const MAX_DEPTH: usize = 64;

/// Words that fields cannot be called without escaping.
const KEYWORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Declares the types of `schema` and gives that of the whole value, which is an object of Kubernetes or not.
pub fn declare(environment: &mut Environment, schema: &Value, is_resource: bool) -> Type {
    let declared =
        if is_resource { kind(environment, &with_meta(schema), ROOT, 0) } else { kind(environment, schema, ROOT, 0) };
    declared.unwrap_or(Type::Dyn)
}

/// The schema of an object with those parts that every object of Kubernetes has.
pub(super) fn with_meta(schema: &Value) -> Value {
    const META: &str = r#"{"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{
        "type":"object","properties":{"name":{"type":"string"},"generateName":{"type":"string"}}}}}"#;
    Value::from_json(META).map_or_else(|_| schema.clone(), |meta| schema.overlaid(&meta))
}

pub(super) fn is_set(schema: &Value, mark: &str) -> bool {
    schema.get(mark).and_then(Value::as_bool).unwrap_or(false)
}

/// The type of values with `schema`; none if the schema does not say what they are: rules do not see such values.
fn kind(environment: &mut Environment, schema: &Value, path: &str, depth: usize) -> Option<Type> {
    if is_set(schema, "x-kubernetes-int-or-string") || depth > MAX_DEPTH {
        return Some(Type::Dyn);
    }
    let schema = &if is_set(schema, "x-kubernetes-embedded-resource") { with_meta(schema) } else { schema.clone() };
    Some(match (schema.str_at(&["type"]), schema.str_at(&["format"])) {
        (Some("object"), _) if matches!(schema.get("additionalProperties"), Some(Value::Object(_))) => {
            let values = schema.get("additionalProperties").unwrap_or(&Value::Null);
            Type::map(Type::String, kind(environment, values, &format!("{path}.@elem"), depth + 1)?)
        }
        (Some("object"), _) => object(environment, schema, path, depth),
        (Some("array"), _) => Type::list(kind(environment, schema.get("items")?, &format!("{path}.@idx"), depth + 1)?),
        (Some("string"), Some("byte")) => Type::Bytes,
        (Some("string"), Some("duration")) => Type::Duration,
        (Some("string"), Some("date" | "date-time")) => Type::Timestamp,
        (Some("string"), _) => Type::String,
        (Some("integer"), _) => Type::Int,
        (Some("number"), _) => Type::Double,
        (Some("boolean"), _) => Type::Bool,
        _ => return None,
    })
}

/// A type with the fields of `schema`, called `path`.
fn object(environment: &mut Environment, schema: &Value, path: &str, depth: usize) -> Type {
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut fields = BTreeMap::new();
    for (name, property) in properties.iter() {
        let Some(field) = kind(environment, property, &format!("{path}.{name}"), depth + 1) else { continue };
        // What is a keyword only by reservation has both names.
        if name == "namespace" {
            fields.insert(name.clone(), field.clone());
        }
        fields.insert(escaped(name), field);
    }
    environment.declare_object(ObjectType { name: path.into(), fields, constructible: false });
    Type::Object(path.into())
}

/// Whether a text can name a variable: an identifier that no word of the language is.
pub fn is_identifier(text: &str) -> bool {
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(is_part)
        && !KEYWORDS.contains(&text)
}

/// A field's name as the language can write it.
pub(super) fn escaped(name: &str) -> Str {
    if KEYWORDS.contains(&name) {
        return format!("__{name}__").into();
    }
    let dunder = name.replace("__", "__underscores__");
    dunder.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__").into()
}

/// The value of an object of Kubernetes by its schema, with its kind, name and the like.
pub fn typed_resource(value: &Value, schema: &Value) -> Val<'static> {
    by_schema(value, &with_meta(schema), 0)
}

/// The value of an object by its schema. What every object has is left out unless the schema names it.
pub fn typed(value: &Value, schema: &Value) -> Val<'static> {
    let mut value = value.clone();
    if let Some(map) = value.as_object_mut() {
        map.retain(|name, _| {
            !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") || schema.at(&["properties", name]).is_some()
        });
    }
    by_schema(&value, schema, 0)
}

fn by_schema(value: &Value, schema: &Value, depth: usize) -> Val<'static> {
    if depth > MAX_DEPTH {
        return Val::owned_json(value);
    }
    let schema = &if is_set(schema, "x-kubernetes-embedded-resource") { with_meta(schema) } else { schema.clone() };
    match (value, schema.str_at(&["format"])) {
        (Value::Object(map), _) => {
            let properties = schema.get("properties");
            let values = schema.get("additionalProperties");
            let mut entries = BTreeMap::new();
            for (name, item) in map.iter() {
                let (key, of) = match (properties.and_then(|p| p.get(name)), values) {
                    (Some(property), _) => (escaped(name), property),
                    (None, Some(values)) => (name.clone(), values),
                    (None, None) => (name.clone(), &Value::Null),
                };
                // Null is nothing unless the schema takes it.
                if item.is_null() {
                    continue;
                }
                if name == "namespace" && properties.is_some() {
                    entries.insert(Key::String(name.clone()), by_schema(item, of, depth + 1));
                }
                entries.insert(Key::String(key), by_schema(item, of, depth + 1));
            }
            Val::map(entries)
        }
        (Value::Array(items), _) => {
            let of = schema.get("items").unwrap_or(&Value::Null);
            let items = items.iter().map(|item| by_schema(item, of, depth + 1)).collect();
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).unwrap_or_default();
            match schema.str_at(&["x-kubernetes-list-type"]) {
                Some("set") => Val::List(List::Associative(Arc::new(Associative { items, keys: Vec::new() }))),
                Some("map") => {
                    let keys = keys.iter().filter_map(Value::as_str).map(escaped).collect();
                    Val::List(List::Associative(Arc::new(Associative { items, keys })))
                }
                _ => Val::list(items),
            }
        }
        (Value::String(text), Some("byte")) => STANDARD
            .decode(text.as_bytes())
            .map_or_else(|_| Val::owned_json(value), |bytes| Val::Bytes(Arc::from(bytes))),
        (Value::String(text), Some("duration")) => {
            Duration::parse(text).map_or_else(|_| Val::owned_json(value), |span| Val::Duration(span.0))
        }
        (Value::String(text), Some("date-time")) => {
            go_time::parse_rfc3339(text).map_or_else(|_| Val::owned_json(value), Val::Timestamp)
        }
        (Value::String(text), Some("date")) => {
            go_time::parse_layout("2006-01-02", text).map_or_else(|_| Val::owned_json(value), Val::Timestamp)
        }
        (Value::Int(n), _) if schema.str_at(&["type"]) == Some("number") => Val::Double(*n as f64),
        (other, _) => Val::owned_json(other),
    }
}
