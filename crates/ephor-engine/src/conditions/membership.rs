//! `AnyIn`, `AllNotIn` and their kin, and the deprecated `In` and `NotIn`.

use ephor_expr::scalar::compare::{Measure, MeasureRange};
use ephor_expr::scalar::range::parse_range;
use ephor_expr::{Str, Value};

use super::text::scalar_text;
use super::work::{Decided, Work};

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
    fn of(elements: &[Value], work: Work<'_>, is_in: impl Fn(&str) -> Decided<bool>) -> Decided<Self> {
        let mut found = Self { some_in: false, some_out: false };
        for element in elements {
            if is_in(&work.text(element)?)? {
                found.some_in = true;
            } else {
                found.some_out = true;
            }
            if found.some_in && found.some_out {
                break;
            }
        }
        Ok(found)
    }

    fn of_scalar(is_in: bool) -> Self {
        Self { some_in: is_in, some_out: !is_in }
    }
}

/// Membership for the current operators. `None` where the reference cannot say, and all of them are false.
pub(super) fn membership(
    key: &Value,
    value: &Value,
    quantifier: Quantifier,
    work: Work<'_>,
) -> Decided<Option<Membership>> {
    match key {
        Value::Array(elements) => list_membership(elements, value, quantifier, work),
        _ => match scalar_text(key) {
            Some(key) => scalar_membership(&key, value, work),
            None => Ok(None),
        },
    }
}

/// Whether `is_in` says so of any of `items`.
fn any<T>(items: &[T], is_in: impl Fn(&T) -> Decided<bool>) -> Decided<bool> {
    for item in items {
        if is_in(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn scalar_membership(key: &str, value: &Value, work: Work<'_>) -> Decided<Option<Membership>> {
    let is_in = match value {
        Value::Array(items) => any(items, |item| work.alike(&work.text(item)?, key))?,
        Value::String(text) if work.fits(text, key)? => true,
        Value::String(text) => match Span::parse(text) {
            Some(span) => span.contains(key, work)?,
            None => match JsonList::parse(text, work)? {
                JsonList::Strings(strings) => any(&strings, |item| work.same(item, key))?,
                JsonList::NotJson => false,
                JsonList::Other => return Ok(None),
            },
        },
        _ => return Ok(None),
    };
    Ok(Some(Membership::of_scalar(is_in)))
}

fn list_membership(
    elements: &[Value],
    value: &Value,
    quantifier: Quantifier,
    work: Work<'_>,
) -> Decided<Option<Membership>> {
    Ok(Some(match value {
        Value::Array(items) => {
            Membership::of(elements, work, |key| any(items, |item| work.alike(&work.text(item)?, key)))?
        }
        Value::String(text) if is_only(elements, text, work)? => Membership::of_scalar(true),
        Value::String(text) => match Span::parse(text) {
            Some(span) => {
                let mut found = Membership::of(elements, work, |key| span.contains(key, work))?;
                // Upstream: `AnyNotIn` negates a range at its first `-`, which for a negative lower end is the sign.
                found.some_out |= quantifier == Quantifier::Any && span.negative && !elements.is_empty();
                found
            }
            None => match JsonList::parse(text, work)? {
                JsonList::Strings(strings) => {
                    Membership::of(elements, work, |key| any(&strings, |item| work.alike(item, key)))?
                }
                JsonList::NotJson => Membership::of(elements, work, |key| work.alike(text, key))?,
                JsonList::Other => return Ok(None),
            },
        },
        Value::Int(_) | Value::Float(_) | Value::Bool(_) if quantifier == Quantifier::Any => {
            let Some(text) = scalar_text(value) else { return Ok(None) };
            Membership::of(elements, work, |key| work.alike(&text, key))?
        }
        _ => return Ok(None),
    }))
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
pub(super) fn exact_membership(key: &Value, value: &Value, work: Work<'_>) -> Decided<Option<Exact>> {
    match key {
        Value::Array(elements) => exact_list_membership(elements, value, work),
        _ => match scalar_text(key) {
            Some(key) => exact_scalar_membership(&key, value, work),
            None => Ok(None),
        },
    }
}

fn exact_scalar_membership(key: &str, value: &Value, work: Work<'_>) -> Decided<Option<Exact>> {
    let is_in = match value {
        Value::Array(items) => any(items, |item| work.alike(&work.text(item)?, key))?,
        Value::String(text) if work.fits(text, key)? => true,
        Value::String(text) => match JsonList::parse(text, work)? {
            JsonList::Strings(strings) => any(&strings, |item| work.same(item, key))?,
            JsonList::NotJson | JsonList::Other => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(Membership::of_scalar(is_in).into()))
}

fn exact_list_membership(elements: &[Value], value: &Value, work: Work<'_>) -> Decided<Option<Exact>> {
    let found = match value {
        // Upstream: both operators are true.
        Value::String(text) if is_only(elements, text, work)? => {
            return Ok(Some(Exact { is_in: true, not_in: true }));
        }
        Value::String(text) => match JsonList::parse(text, work)? {
            JsonList::Strings(strings) => {
                Membership::of(elements, work, |key| any(&strings, |item| work.same(item, key)))?
            }
            JsonList::NotJson | JsonList::Other => return Ok(None),
        },
        Value::Array(items) if items.iter().all(|item| item.as_str().is_some()) => {
            let same = |item: &Value, key: &str| item.as_str().map_or(Ok(false), |item| work.same(item, key));
            Membership::of(elements, work, |key| any(items, |item| same(item, key)))?
        }
        _ => return Ok(None),
    };
    Ok(Some(found.into()))
}

fn is_only(elements: &[Value], text: &str, work: Work<'_>) -> Decided<bool> {
    match elements {
        [only] => Ok(work.text(only)? == text),
        _ => Ok(false),
    }
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
    fn parse(text: &str, work: Work<'_>) -> Decided<Self> {
        // Most values are plain words: look at the first character before reading.
        if !text.trim_start().starts_with(|c: char| matches!(c, '[' | '{' | '"' | '-' | '0'..='9' | 't' | 'f' | 'n')) {
            return Ok(Self::NotJson);
        }
        work.read_json(text)?;
        let Ok(value) = Value::from_json(text) else { return Ok(Self::NotJson) };
        let items = match &value {
            Value::Null => &[],
            Value::Array(items) => items.as_slice(),
            _ => return Ok(Self::Other),
        };
        let string = |item: &Value| match item {
            Value::String(s) => Some(s.clone()),
            Value::Null => Some(Str::default()),
            _ => None,
        };
        Ok(items.iter().map(string).collect::<Option<_>>().map_or(Self::Other, Self::Strings))
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

    fn contains(&self, key: &str, work: Work<'_>) -> Decided<bool> {
        work.read(key)?;
        Ok(self.range.holds(&Measure::parse(key)))
    }
}
