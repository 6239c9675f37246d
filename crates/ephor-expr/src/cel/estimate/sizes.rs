//! How large the parts of a value may be, by the schema of the value.
//!
//! Takes a schema; gives for each place the most elements or characters that a request can hold there. A request has
//! at most 3 MiB, so lists, maps and texts without a limit of their own are bounded by how many of the smallest
//! elements fit in. Numbers, Booleans and objects have size 0, as in the reference.

use std::collections::BTreeMap;

use crate::Str;
use crate::cel::schema::{escaped, is_set, with_meta};
use crate::value::Value;

/// The largest request, in bytes.
const LARGEST_REQUEST: u64 = 3 * 1024 * 1024;
/// The longest text of a time or a span of time, with its quotes.
const LONGEST_TIME: u64 = 32;
/// A date with its quotes.
const DATE: u64 = 12;
/// How deep schemas are followed.
const MAX_DEPTH: usize = 64;

/// The largest size of a value and of its parts.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    /// The most elements or characters.
    pub(super) max: u64,
    /// The fewest bytes that it takes in a request.
    min_bytes: u64,
    fields: BTreeMap<Str, Sizes>,
    /// Whether it is a map: then its keys are texts.
    is_map: bool,
    elements: Option<Box<Sizes>>,
}

/// A step from a value to a part of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'p> {
    Field(&'p str),
    /// An item of a list or a value of a map.
    Element,
    Key,
    /// The index of an item, of which no size is known.
    Index,
}

/// The size of keys, of which nothing is known.
static KEY: Sizes = Sizes { max: 0, min_bytes: 2, fields: BTreeMap::new(), is_map: false, elements: None };

impl Sizes {
    /// The sizes of values with `schema`, which are objects of Kubernetes or not; none if rules do not see them.
    pub fn of_schema(schema: &Value, is_resource: bool) -> Option<Self> {
        Self::read(schema, is_resource, MAX_DEPTH)
    }

    /// How often such a value may stand in one request.
    pub fn most_in_a_request(&self) -> u64 {
        LARGEST_REQUEST / self.min_bytes.saturating_add(1)
    }

    pub(super) fn part(&self, part: Part<'_>) -> Option<&Self> {
        match part {
            Part::Field(name) => self.fields.get(name),
            Part::Element => self.elements.as_deref(),
            Part::Key => self.is_map.then_some(&KEY),
            Part::Index => None,
        }
    }

    fn scalar(max: u64, min_bytes: u64) -> Self {
        Self { max, min_bytes, ..Self::default() }
    }

    fn read(schema: &Value, is_resource: bool, depth: usize) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        let limit = |key: &str| schema.get(key).and_then(Value::as_i64).map(|n| u64::try_from(n).unwrap_or(0));
        // A character takes up to four bytes.
        let text_limit = limit("maxLength").map(|n| n.saturating_mul(4));
        if is_set(schema, "x-kubernetes-int-or-string") {
            return Some(Self::scalar(text_limit.unwrap_or(LARGEST_REQUEST - 2), 1));
        }
        let below = |schema: &Value| Self::read(schema, is_set(schema, "x-kubernetes-embedded-resource"), depth);
        Some(match schema.str_at(&["type"])? {
            "array" => {
                let items = below(schema.get("items")?)?;
                let max = limit("maxItems").unwrap_or((LARGEST_REQUEST - 2) / (items.min_bytes + 1));
                Self { max, min_bytes: 2, elements: Some(Box::new(items)), ..Self::default() }
            }
            "object" => match schema.get("additionalProperties") {
                Some(values @ Value::Object(_)) => {
                    let values = below(values)?;
                    let max = limit("maxProperties").unwrap_or((LARGEST_REQUEST - 2) / (values.min_bytes + 6));
                    Self { max, min_bytes: 2, is_map: true, elements: Some(Box::new(values)), ..Self::default() }
                }
                _ if is_resource => Self::object(&with_meta(schema), depth),
                _ => Self::object(schema, depth),
            },
            "string" => match schema.str_at(&["format"]) {
                Some("byte") => Self::scalar(limit("maxLength").unwrap_or(LARGEST_REQUEST - 2), 2),
                Some("duration") => Self::scalar(LONGEST_TIME, 3),
                Some("date") => Self::scalar(DATE, DATE),
                Some("date-time") => Self::scalar(LONGEST_TIME, 21),
                _ => {
                    let values = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty());
                    let longest = values
                        .map(|values| values.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0) as u64);
                    Self::scalar(text_limit.or(longest).unwrap_or(LARGEST_REQUEST - 2), 2)
                }
            },
            "boolean" => Self::scalar(0, 4),
            "number" | "integer" => Self::scalar(0, 1),
            _ => return None,
        })
    }

    fn object(schema: &Value, depth: usize) -> Self {
        let required = schema.get("required").and_then(Value::as_array).unwrap_or_default();
        let mut object = Self::scalar(0, 2);
        for (name, property) in
            schema.get("properties").and_then(Value::as_object).into_iter().flat_map(crate::value::Map::iter)
        {
            let is_resource = is_set(property, "x-kubernetes-embedded-resource");
            let Some(field) = Self::read(property, is_resource, depth) else { continue };
            // The API server fills in what has a default, so requests may leave it out.
            let is_sent = property.get("default").is_none_or(Value::is_null)
                && required.iter().any(|required| required.as_str() == Some(name));
            if is_sent {
                object.min_bytes += name.len() as u64 + field.min_bytes + 4;
            }
            object.fields.insert(escaped(name), field);
        }
        object
    }
}
