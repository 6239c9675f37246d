//! `AnyIn`, `AllNotIn` and their kin, and the deprecated `In` and `NotIn`.

use ephor_expr::scalar::compare::{Measure, MeasureRange};
use ephor_expr::scalar::range::parse_range;
use ephor_expr::scalar::wildcard::matches;
use ephor_expr::{Str, Value};

use super::text::{element_text, scalar_text};

/// Which elements of a key are in a value. A scalar is its own only element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Membership {
    /// Some element is in.
    pub(super) some_in: bool,
    /// Some element is not in.
    pub(super) some_out: bool,
}

/// Whether the operator asks for some element or for all; list keys are read differently in two corners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantifier {
    Any,
    All,
}

impl Membership {
    fn of(elements: &[Value], is_in: impl Fn(&str) -> bool) -> Self {
        let mut found = Self { some_in: false, some_out: false };
        for element in elements {
            if is_in(&element_text(element)) {
                found.some_in = true;
            } else {
                found.some_out = true;
            }
            if found.some_in && found.some_out {
                break;
            }
        }
        found
    }

    fn of_scalar(is_in: bool) -> Self {
        Self { some_in: is_in, some_out: !is_in }
    }
}

/// Membership for the current operators. `None` where the reference cannot say, and all of them are false.
pub(super) fn membership(key: &Value, value: &Value, quantifier: Quantifier) -> Option<Membership> {
    match key {
        Value::Array(elements) => list_membership(elements, value, quantifier),
        _ => scalar_membership(&scalar_text(key)?, value),
    }
}

fn scalar_membership(key: &str, value: &Value) -> Option<Membership> {
    let is_in = match value {
        Value::Array(items) => items.iter().any(|item| alike(&element_text(item), key)),
        Value::String(text) if matches(text, key) => true,
        Value::String(text) => match Span::parse(text) {
            Some(span) => span.contains(key),
            None => match JsonList::parse(text) {
                JsonList::Strings(strings) => strings.iter().any(|s| s == key),
                JsonList::NotJson => false,
                JsonList::Other => return None,
            },
        },
        _ => return None,
    };
    Some(Membership::of_scalar(is_in))
}

fn list_membership(elements: &[Value], value: &Value, quantifier: Quantifier) -> Option<Membership> {
    Some(match value {
        Value::Array(items) => Membership::of(elements, |key| items.iter().any(|item| alike(&element_text(item), key))),
        Value::String(text) if is_only(elements, text) => Membership::of_scalar(true),
        Value::String(text) => match Span::parse(text) {
            Some(span) => {
                let mut found = Membership::of(elements, |key| span.contains(key));
                // Upstream: `AnyNotIn` negates a range at its first `-`, which for a negative lower end is the sign.
                found.some_out |= quantifier == Quantifier::Any && span.negative && !elements.is_empty();
                found
            }
            None => match JsonList::parse(text) {
                JsonList::Strings(strings) => {
                    Membership::of(elements, |key| strings.iter().any(|item| alike(item, key)))
                }
                JsonList::NotJson => Membership::of(elements, |key| alike(text, key)),
                JsonList::Other => return None,
            },
        },
        Value::Int(_) | Value::Float(_) | Value::Bool(_) if quantifier == Quantifier::Any => {
            let text = scalar_text(value)?;
            Membership::of(elements, |key| alike(&text, key))
        }
        _ => return None,
    })
}

/// What `In` and `NotIn` say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exact {
    pub(super) is_in: bool,
    pub(super) not_in: bool,
}

impl From<Membership> for Exact {
    fn from(found: Membership) -> Self {
        Self { is_in: !found.some_out, not_in: found.some_out }
    }
}

/// The deprecated operators: elements of list keys are compared exactly, and ranges are plain text. `None` where both
/// are false.
pub(super) fn exact_membership(key: &Value, value: &Value) -> Option<Exact> {
    match key {
        Value::Array(elements) => exact_list_membership(elements, value),
        _ => exact_scalar_membership(&scalar_text(key)?, value),
    }
}

fn exact_scalar_membership(key: &str, value: &Value) -> Option<Exact> {
    let is_in = match value {
        Value::Array(items) => items.iter().any(|item| alike(&element_text(item), key)),
        Value::String(text) if matches(text, key) => true,
        Value::String(text) => match JsonList::parse(text) {
            JsonList::Strings(strings) => strings.iter().any(|s| s == key),
            JsonList::NotJson | JsonList::Other => return None,
        },
        _ => return None,
    };
    Some(Membership::of_scalar(is_in).into())
}

fn exact_list_membership(elements: &[Value], value: &Value) -> Option<Exact> {
    let found = match value {
        // Upstream: both operators are true.
        Value::String(text) if is_only(elements, text) => return Some(Exact { is_in: true, not_in: true }),
        Value::String(text) => match JsonList::parse(text) {
            JsonList::Strings(strings) => Membership::of(elements, |key| strings.iter().any(|s| s == key)),
            JsonList::NotJson | JsonList::Other => return None,
        },
        Value::Array(items) if items.iter().all(|item| item.as_str().is_some()) => {
            Membership::of(elements, |key| items.iter().any(|item| item.as_str() == Some(key)))
        }
        _ => return None,
    };
    Some(found.into())
}

/// Whether one of two texts matches the other as a wildcard pattern.
fn alike(a: &str, b: &str) -> bool {
    matches(a, b) || matches(b, a)
}

fn is_only(elements: &[Value], text: &str) -> bool {
    matches!(elements, [only] if element_text(only) == text)
}

/// A string value read as JSON.
enum JsonList {
    /// An array of strings; null elements are empty, and null itself is the empty array.
    Strings(Vec<Str>),
    /// JSON, but something else.
    Other,
    NotJson,
}

impl JsonList {
    fn parse(text: &str) -> Self {
        // Most values are plain words: look at the first character before reading.
        if !text.trim_start().starts_with(|c: char| matches!(c, '[' | '{' | '"' | '-' | '0'..='9' | 't' | 'f' | 'n')) {
            return Self::NotJson;
        }
        let Ok(value) = Value::from_json(text) else { return Self::NotJson };
        let items = match &value {
            Value::Null => &[],
            Value::Array(items) => items.as_slice(),
            _ => return Self::Other,
        };
        let string = |item: &Value| match item {
            Value::String(s) => Some(s.clone()),
            Value::Null => Some(Str::default()),
            _ => None,
        };
        items.iter().map(string).collect::<Option<_>>().map_or(Self::Other, Self::Strings)
    }
}

/// A range value `a-b`, both ends included; `a!-b` is plain text here.
struct Span {
    range: MeasureRange,
    /// The lower end has a minus sign.
    negative: bool,
}

impl Span {
    fn parse(text: &str) -> Option<Self> {
        let range = parse_range(text).filter(|range| !range.negated)?;
        Some(Self { range: MeasureRange::new(range), negative: range.low.starts_with('-') })
    }

    fn contains(&self, key: &str) -> bool {
        self.range.holds(&Measure::parse(key))
    }
}
