//! Which values the chart takes: `values.schema.json`, as Helm reads it.
//!
//! Helm refuses what the schema does not allow; this does too, and names the nearest value there is. Settings of
//! Kyverno's chart that have no effect here are part of the schema with the reason, so that values files written for
//! Kyverno are taken and every setting without effect is told of.
//!
//! Keywords that this module does not know are refused when the schema is read: one that only Helm obeys cannot be
//! committed unnoticed.

use std::collections::BTreeMap;
use std::fmt;

use ephor_expr::scalar::nearest::nearest;
use ephor_expr::{Map, Str, Value};
use regex::Regex;
use serde::Deserialize;

/// The schema of a value.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Schema {
    #[serde(rename = "$schema")]
    _dialect: String,
    #[serde(rename = "description")]
    _description: String,
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "type")]
    types: Types,
    #[serde(rename = "enum")]
    values: Option<Vec<Value>>,
    properties: BTreeMap<Str, Schema>,
    additional_properties: Additional,
    required: Vec<Str>,
    items: Option<Box<Schema>>,
    minimum: Option<i64>,
    maximum: Option<i64>,
    min_length: Option<usize>,
    max_items: Option<usize>,
    max_properties: Option<usize>,
    pattern: Option<Pattern>,
    definitions: BTreeMap<Str, Schema>,
    /// Why a setting has no effect.
    #[serde(rename = "x-ephor-ignored")]
    ignored: Option<Str>,
    /// Which texts have no effect, and why.
    #[serde(rename = "x-ephor-ignored-if")]
    ignored_if: Option<IgnoredIf>,
    /// Why other values are refused.
    #[serde(rename = "x-ephor-missing")]
    missing: Option<Str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum Types {
    #[default]
    Any,
    One(Type),
    Several(Vec<Type>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    Array,
    Boolean,
    Integer,
    Null,
    Number,
    Object,
    String,
}

/// Members that are not among the properties.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Additional {
    Allowed(bool),
    Like(Box<Schema>),
}

impl Default for Additional {
    fn default() -> Self {
        Self::Allowed(true)
    }
}

/// Texts that have no effect.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IgnoredIf {
    pattern: Pattern,
    why: Str,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Regex::new(&text).map(Self)
    }
}

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueFault {
    /// The chart does not have it.
    #[error("the chart has no value `{path}`{}", near.as_ref().map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default())]
    Unknown {
        /// Where it is.
        path: String,
        /// The nearest name beside it that exists.
        near: Option<Str>,
    },
    /// A null took a default away that there has to be.
    #[error("`{path}` cannot be null")]
    Absent {
        /// Where it is.
        path: String,
    },
    /// It is not what is expected.
    #[error("`{path}` is {found}: expected {expected}")]
    Misfit {
        /// Where it is.
        path: String,
        /// The value.
        found: String,
        /// What would be right.
        expected: String,
    },
    /// Kyverno's chart knows it, and Ephor cannot do it.
    #[error("`{path}` is {found}: {why}; only {expected} is accepted")]
    Missing {
        /// Where it is.
        path: String,
        /// The value.
        found: String,
        /// What is accepted.
        expected: String,
        /// What is missing.
        why: Str,
    },
}

/// A setting of Kyverno's chart that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Where it is.
    pub path: String,
    /// Why.
    pub why: Str,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; ignored", self.path, self.why)
    }
}

impl Schema {
    /// What is wrong with `values`, which are those of the chart with the user's over them.
    pub(super) fn faults(&self, values: &Value) -> Vec<ValueFault> {
        let mut faults = Vec::new();
        Reading { root: self }.check(self, values, "", &mut faults);
        faults
    }

    /// Which of the values that a user gives have no effect.
    pub(super) fn ignored(&self, given: &Value) -> Vec<Ignored> {
        let mut found = Vec::new();
        Reading { root: self }.look(self, given, "", &mut found);
        found
    }
}

struct Reading<'s> {
    root: &'s Schema,
}

impl<'s> Reading<'s> {
    /// The definition that a schema refers to, or itself.
    fn resolved(&self, schema: &'s Schema) -> &'s Schema {
        let name = schema.reference.as_deref().and_then(|reference| reference.strip_prefix("#/definitions/"));
        name.and_then(|name| self.root.definitions.get(name)).unwrap_or(schema)
    }

    fn check(&self, schema: &'s Schema, value: &Value, path: &str, faults: &mut Vec<ValueFault>) {
        let schema = self.resolved(schema);
        if schema.ignored.is_some() {
            return;
        }
        if !schema.admits(value) {
            let (path, found, expected) = (path.to_owned(), shown(value), schema.expected());
            faults.push(match schema.missing.clone() {
                Some(why) => ValueFault::Missing { path, found, expected, why },
                None => ValueFault::Misfit { path, found, expected },
            });
            return;
        }
        match value {
            Value::Object(members) => {
                for name in schema.required.iter().filter(|name| members.get(name).is_none_or(Value::is_null)) {
                    faults.push(ValueFault::Absent { path: member(path, name) });
                }
                for (name, value) in members.iter() {
                    match (schema.properties.get(name), &schema.additional_properties) {
                        (Some(property), _) => self.check(property, value, &member(path, name), faults),
                        (None, Additional::Like(schema)) => self.check(schema, value, &member(path, name), faults),
                        (None, Additional::Allowed(true)) => {}
                        (None, Additional::Allowed(false)) => {
                            let near = nearest(name, schema.properties.keys().map(Str::as_str)).map(Str::new);
                            faults.push(ValueFault::Unknown { path: member(path, name), near });
                        }
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    if let Some(schema) = &schema.items {
                        self.check(schema, item, &format!("{path}[{at}]"), faults);
                    }
                }
            }
            _ => {}
        }
    }

    fn look(&self, schema: &'s Schema, value: &Value, path: &str, found: &mut Vec<Ignored>) {
        let schema = self.resolved(schema);
        if let Some(why) = &schema.ignored {
            return leaves(value, path, why, found);
        }
        match value {
            Value::Object(members) if is_switched_off(members) => {}
            Value::Object(members) => {
                for (name, value) in members.iter() {
                    if let Some(property) = schema.properties.get(name) {
                        self.look(property, value, &member(path, name), found);
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    if let Some(schema) = &schema.items {
                        self.look(schema, item, &format!("{path}[{at}]"), found);
                    }
                }
            }
            Value::String(text) => {
                let matching = schema.ignored_if.as_ref().filter(|condition| condition.pattern.0.is_match(text));
                found.extend(matching.map(|it| Ignored { path: path.to_owned(), why: it.why.clone() }));
            }
            _ => {}
        }
    }
}

/// The settings in an ignored value. What is switched off has no effect anyway, and what is empty says nothing.
fn leaves(value: &Value, path: &str, why: &Str, found: &mut Vec<Ignored>) {
    match value {
        Value::Null => {}
        Value::Array(items) if items.is_empty() => {}
        Value::String(text) if text.is_empty() => {}
        Value::Object(members) if is_switched_off(members) => {}
        Value::Object(members) => {
            for (name, value) in members.iter() {
                leaves(value, &member(path, name), why, found);
            }
        }
        _ => found.push(Ignored { path: path.to_owned(), why: why.clone() }),
    }
}

fn is_switched_off(members: &Map) -> bool {
    members.get("enabled") == Some(&Value::Bool(false))
}

fn member(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "a map".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => format!("`{}`", other.to_json()),
    }
}

impl Type {
    fn is_of(self, value: &Value) -> bool {
        match value {
            Value::Null => self == Self::Null,
            Value::Bool(_) => self == Self::Boolean,
            Value::Int(_) => matches!(self, Self::Integer | Self::Number),
            Value::Float(number) => self == Self::Number || (self == Self::Integer && number.fract() == 0.0),
            Value::String(_) => self == Self::String,
            Value::Array(_) => self == Self::Array,
            Value::Object(_) => self == Self::Object,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Array => "a list",
            Self::Boolean => "true or false",
            Self::Integer => "a whole number",
            Self::Null => "null",
            Self::Number => "a number",
            Self::Object => "a map",
            Self::String => "a text",
        }
    }
}

impl Types {
    fn all(&self) -> &[Type] {
        match self {
            Self::Any => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

impl Schema {
    /// Whether the value itself fits, whatever is in it.
    fn admits(&self, value: &Value) -> bool {
        let types = self.types.all();
        if !types.is_empty() && !types.iter().any(|kind| kind.is_of(value)) {
            return false;
        }
        if self.values.as_ref().is_some_and(|values| !values.contains(value)) {
            return false;
        }
        let at_most = |length: usize, limit: Option<usize>| limit.is_none_or(|limit| length <= limit);
        match value {
            Value::Int(number) => {
                self.minimum.is_none_or(|least| *number >= least) && self.maximum.is_none_or(|most| *number <= most)
            }
            Value::String(text) => {
                self.min_length.is_none_or(|least| text.chars().count() >= least)
                    && self.pattern.as_ref().is_none_or(|Pattern(pattern)| pattern.is_match(text))
            }
            Value::Array(items) => at_most(items.len(), self.max_items),
            Value::Object(members) => at_most(members.len(), self.max_properties),
            _ => true,
        }
    }

    /// What fits, in words.
    fn expected(&self) -> String {
        if let Some(values) = &self.values {
            let words: Vec<_> = values.iter().filter(|value| !value.is_null()).map(Value::to_json).collect();
            return words.join(" or ");
        }
        let types: Vec<_> = self.types.all().iter().filter(|kind| **kind != Type::Null).map(|k| k.words()).collect();
        let range = match (self.minimum, self.maximum) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(" from {least} on"),
            (None, Some(most)) => format!(" up to {most}"),
            (None, None) => String::new(),
        };
        let pattern = self.pattern.as_ref().map(|Pattern(pattern)| format!(" that matches `{pattern}`"));
        let length = match (self.min_length, self.max_items.or(self.max_properties)) {
            (Some(_), _) => " that is not empty",
            (None, Some(0)) => " that is empty",
            (None, Some(1)) => " of one",
            _ => "",
        };
        format!("{}{range}{}{length}", types.join(" or "), pattern.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
