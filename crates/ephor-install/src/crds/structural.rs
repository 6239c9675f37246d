//! Derived JSON schemas as structural schemas, which are what the API server takes: one type each, nothing by
//! reference, nothing that types in different branches.

use ephor_expr::{Map, Value};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// What happens to fields that a schema does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownFields {
    /// They are stored, so that the policy webhook can refuse them with their path.
    Kept,
    /// The API server takes them out.
    Pruned,
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The structural schema of `T`.
pub(super) fn schema_of<T: JsonSchema>(unknown: UnknownFields) -> Value {
    let settings = SchemaSettings::default().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    structural(&value_of(schema.as_value()), unknown)
}

fn value_of(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(b) => Value::Bool(*b),
        serde_json::Value::Number(n) => {
            n.as_i64().map(Value::Int).or(n.as_f64().map(Value::Float)).unwrap_or(Value::Null)
        }
        serde_json::Value::String(s) => Value::from(s.as_str()),
        serde_json::Value::Array(items) => Value::array(items.iter().map(value_of).collect()),
        serde_json::Value::Object(map) => {
            Value::object(map.iter().map(|(key, value)| (key.as_str().into(), value_of(value))).collect())
        }
    }
}

/// A schema that anything fits.
fn anything() -> Map {
    [(PRESERVE.into(), Value::Bool(true))].into_iter().collect()
}

fn structural(schema: &Value, unknown: UnknownFields) -> Value {
    let Value::Object(schema) = schema else { return anything().into() };
    let schema = without_null(schema);
    let get = |key: &str| schema.get(key);

    let mut out = Map::new();
    if let Some(Value::String(text)) = get("description") {
        out.insert("description", description(text));
    }
    if let Some(words) = words_of(&schema) {
        out.insert("type", "string");
        out.insert("enum", words);
        return out.into();
    }
    // A type inside itself: the inner one is anything, or there would be no end.
    let kind = if schema.contains_key("$ref") { None } else { kind_of(get("type")) };
    let Some(kind) = kind else {
        out.insert(PRESERVE, true);
        return out.into();
    };
    out.insert("type", kind);
    match kind {
        "array" => {
            out.insert("items", get("items").map_or_else(|| anything().into(), |items| structural(items, unknown)));
        }
        "object" => {
            if let Some(Value::Object(properties)) = get("properties") {
                let properties: Map =
                    properties.iter().map(|(name, inner)| (name.clone(), structural(inner, unknown))).collect();
                out.insert("properties", properties);
                if let Some(Value::Array(required)) =
                    get("required").filter(|r| r.as_array().is_some_and(|r| !r.is_empty()))
                {
                    out.insert("required", Value::Array(required.clone()));
                }
                if unknown == UnknownFields::Kept {
                    out.insert(PRESERVE, true);
                }
            } else if let Some(inner @ Value::Object(_)) = get("additionalProperties") {
                out.insert("additionalProperties", structural(inner, unknown));
            } else {
                out.insert(PRESERVE, true);
            }
        }
        "integer" => {
            out.insert("format", "int64");
        }
        _ => {}
    }
    out.into()
}

/// `anyOf: [schema, null]` is the schema; its description is the field's.
fn without_null(schema: &Map) -> Map {
    let branches = schema.get("anyOf").and_then(Value::as_array).unwrap_or_default();
    let mut real = branches.iter().filter(|branch| branch.str_at(&["type"]) != Some("null"));
    let (Some(only), None) = (real.next(), real.next()) else { return schema.clone() };
    let mut merged = only.as_object().cloned().unwrap_or_else(anything);
    if let Some(description) = schema.get("description") {
        merged.insert("description", description.clone());
    }
    merged
}

/// The words of an enum, whose variants may be written as one branch each.
fn words_of(schema: &Map) -> Option<Value> {
    let words: Vec<Value> = match (schema.get("enum"), schema.get("oneOf")) {
        (Some(Value::Array(words)), _) => words.iter().filter(|word| !word.is_null()).cloned().collect(),
        (None, Some(Value::Array(branches))) => branches
            .iter()
            .flat_map(|branch| match (branch.get("const"), branch.get("enum")) {
                (Some(word), _) => vec![word.clone()],
                (None, Some(Value::Array(words))) => words.to_vec(),
                _ => Vec::new(),
            })
            .collect(),
        _ => return None,
    };
    words.iter().all(|word| word.as_str().is_some()).then(|| Value::array(words))
}

fn kind_of(kind: Option<&Value>) -> Option<&str> {
    match kind? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    }
}

/// Documentation of Rust as text: no links, lines joined within paragraphs.
fn description(text: &str) -> String {
    let paragraphs: Vec<String> =
        text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    paragraphs.join("\n\n").replace("[`", "`").replace("`]", "`")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A tree.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "only described")]
    struct Tree {
        /// Its name,
        /// in [`String`] form.
        full_name: String,
        size: Option<i64>,
        kind: Option<Kind>,
        labels: Option<BTreeMap<String, String>>,
        /// What it holds.
        content: Option<Value>,
        children: Option<Vec<Tree>>,
    }

    /// Kinds.
    #[derive(JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[expect(dead_code, reason = "only described")]
    enum Kind {
        /// First.
        OldOak,
        /// Second.
        Elm,
    }

    #[test]
    fn a_derived_schema_becomes_structural() {
        let got = ephor_expr::yaml::to_yaml(&schema_of::<Tree>(UnknownFields::Kept));
        insta::assert_snapshot!(got);
    }
}
