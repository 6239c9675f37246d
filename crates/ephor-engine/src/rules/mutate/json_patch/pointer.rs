//! JSON pointers (RFC 6901).

use std::fmt;
use std::sync::Arc;

use ephor_expr::{Str, Value};

/// Where an operation applies: `/spec/containers/0`, with `~1` for a slash and `~0` for a tilde inside a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    text: Str,
    steps: Vec<Str>,
}

impl Pointer {
    /// Reads a pointer. Text that does not start with a slash points to nothing, as in the reference: operations then
    /// fail when they are applied.
    pub fn parse(text: &str) -> Self {
        let steps = match text.strip_prefix('/') {
            Some(rest) => rest.split('/').map(unescape).collect(),
            None => Vec::new(),
        };
        Self { text: Str::new(text), steps }
    }

    /// The pointer with these steps.
    pub fn from_steps(steps: &[Str]) -> Self {
        let mut text = String::new();
        for step in steps {
            text.push('/');
            escape_into(&mut text, step);
        }
        Self { text: text.into(), steps: steps.to_vec() }
    }

    /// The pointer as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether this is the whole document.
    pub fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    /// The steps, unescaped; none for the root and for text that is no pointer.
    pub fn steps(&self) -> &[Str] {
        &self.steps
    }

    /// The steps to the parent, and the last one.
    pub(super) fn split_last(&self) -> Option<(&Str, &[Str])> {
        self.steps.split_last()
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn unescape(step: &str) -> Str {
    if step.contains('~') { Str::from(step.replace("~1", "/").replace("~0", "~")) } else { Str::new(step) }
}

fn escape_into(out: &mut String, step: &str) {
    for c in step.chars() {
        match c {
            '~' => out.push_str("~0"),
            '/' => out.push_str("~1"),
            c => out.push(c),
        }
    }
}

/// What a step says about a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// A number; negative ones count from the end.
    Number(i64),
    /// `-`, the place after the last item.
    End,
    /// Not a number.
    Malformed,
    /// A number beyond 64 bits.
    Overflow,
}

impl Index {
    /// Reads a step as Go's `strconv.Atoi` does: an optional sign, then digits.
    pub(super) fn of(step: &str) -> Self {
        if step == "-" {
            return Index::End;
        }
        let digits = step.strip_prefix(['+', '-']).unwrap_or(step);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Index::Malformed;
        }
        step.parse().map_or(Index::Overflow, Index::Number)
    }
}

/// The place of an existing item: `None` beyond either end.
pub(super) fn item_place(index: i64, len: usize) -> Option<usize> {
    let len = i64::try_from(len).ok()?;
    let place = if index < 0 { index.checked_add(len)? } else { index };
    usize::try_from(place).ok().filter(|_| place < len)
}

/// What stands at one step below `value`, if there is such a thing.
pub(super) fn child<'v>(value: &'v Value, step: &str) -> Option<&'v Value> {
    match value {
        Value::Object(map) => map.get(step),
        Value::Array(items) => match Index::of(step) {
            Index::Number(index) => items.get(item_place(index, items.len())?),
            Index::End | Index::Malformed | Index::Overflow => None,
        },
        _ => None,
    }
}

/// [`child`] for change.
pub(super) fn child_mut<'v>(value: &'v mut Value, step: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(map) => Arc::make_mut(map).get_mut(step),
        Value::Array(items) => {
            let Index::Number(index) = Index::of(step) else { return None };
            let place = item_place(index, items.len())?;
            Arc::make_mut(items).get_mut(place)
        }
        _ => None,
    }
}
