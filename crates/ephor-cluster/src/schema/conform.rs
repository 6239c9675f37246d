//! Reading an object as one of its kind.
//!
//! As an API server decodes: fields that are not declared are dropped and reported, nulls are absent, amounts get
//! their canonical form. A value of the wrong type is an error for built-in kinds; for custom kinds the rules of the
//! definition ([`super::validate`]) say so with more words.

use std::fmt::Write as _;

use ephor_expr::scalar::quantity::Quantity;
use ephor_expr::{Map, Value};

use super::format::bytes_problem;
use super::{Kind, Schema};

/// An object as its kind has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conformed {
    /// The object without what is not declared.
    pub object: Value,
    /// The paths of dropped fields: `spec.containers[0].colour`.
    pub unknown: Vec<String>,
    /// Values of the wrong type, in the words of the decoder.
    pub misfits: Vec<String>,
}

/// How many faults are reported; one is enough to refuse an object.
const MAX_FAULTS: usize = 100;

/// Reads `object` as what `schema` describes.
pub fn conform(schema: Schema<'_>, object: &Value) -> Conformed {
    let mut reader = Reader { path: String::new(), found: Conformed::default() };
    let object = reader.value(schema, object).unwrap_or_default();
    Conformed { object, ..reader.found }
}

struct Reader {
    path: String,
    found: Conformed,
}

impl Reader {
    /// The value as declared; `None` if it is as good as missing.
    fn value(&mut self, schema: Schema<'_>, value: &Value) -> Option<Value> {
        if value.is_null() {
            return schema.is_nullable().then_some(Value::Null);
        }
        match (schema.kind(), value) {
            (Kind::Object, Value::Object(members)) => Some(self.members(schema, members)),
            (Kind::Array, Value::Array(items)) => Some(match schema.items() {
                Some(item) => Value::array(self.items(item, items)),
                None => value.clone(),
            }),
            (Kind::Any, Value::Object(members)) if schema.is_embedded() || !schema.keeps_unknown() => {
                Some(self.members(schema, members))
            }
            (Kind::String, Value::String(text)) if schema.format() == Some("byte") && !schema.is_custom => {
                let problem = bytes_problem(text);
                self.report(problem);
                Some(value.clone())
            }
            (Kind::Any, _)
            | (Kind::String, Value::String(_))
            | (Kind::Number, Value::Int(_) | Value::Float(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::IntOrString, Value::String(_) | Value::Int(_))
            | (Kind::Integer, Value::Int(_)) => Some(value.clone()),
            (Kind::Integer, Value::Float(_)) if value.as_i64().is_some() => value.as_i64().map(Value::Int),
            (Kind::Quantity, Value::String(_) | Value::Int(_) | Value::Float(_)) => Some(self.quantity(value)),
            // Custom kinds keep what does not fit for their rules to complain about.
            _ if schema.is_custom => Some(value.clone()),
            (kind, _) => {
                self.misfit(schema, kind, value);
                Some(value.clone())
            }
        }
    }

    fn members(&mut self, schema: Schema<'_>, members: &Map) -> Value {
        let mut kept = Map::with_capacity(members.len());
        for (key, value) in members.iter() {
            let length = self.path.len();
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(key);
            match schema.member(key) {
                Some(member) => {
                    let value = self.value(member, value);
                    if let Some(value) = value.filter(|value| !schema.omits(key, member, value)) {
                        kept.insert(key.clone(), value);
                    }
                }
                None if schema.keeps_unknown() => {
                    kept.insert(key.clone(), value.clone());
                }
                None => {
                    if self.found.unknown.len() < MAX_FAULTS {
                        self.found.unknown.push(self.path.clone());
                    }
                }
            }
            self.path.truncate(length);
        }
        Value::object(kept)
    }

    fn items(&mut self, schema: Schema<'_>, items: &[Value]) -> Vec<Value> {
        let mut kept = Vec::with_capacity(items.len());
        for (index, value) in items.iter().enumerate() {
            let length = self.path.len();
            let _ = write!(self.path, "[{index}]");
            kept.push(self.value(schema, value).unwrap_or_default());
            self.path.truncate(length);
        }
        kept
    }

    /// `1000m` is kept as `1`.
    fn quantity(&mut self, value: &Value) -> Value {
        let text = value.as_str().map_or_else(|| value.to_json(), str::to_owned);
        if let Ok(quantity) = Quantity::parse(text.trim()) {
            return Value::from(quantity.to_string());
        }
        let why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        self.report(Some(why.to_owned()));
        value.clone()
    }

    fn report(&mut self, misfit: Option<String>) {
        if self.found.misfits.len() < MAX_FAULTS {
            self.found.misfits.extend(misfit);
        }
    }

    fn misfit(&mut self, schema: Schema<'_>, kind: Kind, value: &Value) {
        let found = match value {
            Value::Bool(_) => "bool",
            other => other.type_name(),
        };
        let wanted = match (kind, schema.format()) {
            (Kind::Integer, Some(format)) => format,
            (Kind::Integer, None) => "int",
            (Kind::Number, _) => "float64",
            (Kind::Boolean, _) => "bool",
            (Kind::Array, _) => "array",
            (Kind::Object, _) => "object",
            _ => "string",
        };
        self.report(Some(format!("json: cannot unmarshal {found} into field {} of type {wanted}", self.path)));
    }
}
