//! The values of the parts of an expression, kept for those who ask why.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use ephor_expr::budget::Budget;
use ephor_expr::cel::{EvalError, Val};
use ephor_expr::{Str, Value};

use crate::trace::Part;

/// How many steps reading the value of an expression may take, and as many reading those of its parts. They do not
/// count for the rule.
const MOST_SHOWN: u64 = 1_000_000;

/// How many of these one value may take: only its beginning is shown.
const MOST_OF_ONE: u64 = 20_000;

/// How many values of one part are kept: a part within a fold has one for each element.
const MOST_VALUES: usize = 8;

/// The parts of one expression that have values.
pub(super) struct Watched {
    /// By place: the outer before what it contains.
    parts: RefCell<BTreeMap<(usize, Reverse<usize>), Values>>,
    left: Cell<u64>,
}

#[derive(Default)]
struct Values {
    first: Vec<Result<Value, String>>,
    more: usize,
}

impl Watched {
    pub(super) fn new() -> Self {
        Self { parts: RefCell::default(), left: Cell::new(MOST_SHOWN) }
    }

    /// Keeps a value of the part at `place`.
    pub(super) fn see(&self, place: Range<usize>, value: &Result<Val<'_>, EvalError>) {
        let mut parts = self.parts.borrow_mut();
        let values = parts.entry((place.start, Reverse(place.end))).or_default();
        if values.first.len() < MOST_VALUES {
            values.first.push(self.shown(value));
        } else {
            values.more += 1;
        }
    }

    /// The value of a part, within what is left for all parts.
    fn shown(&self, value: &Result<Val<'_>, EvalError>) -> Result<Value, String> {
        let allowed = self.left.get().min(MOST_OF_ONE);
        let budget = Budget::new(allowed, 0);
        let shown = shown(value, &budget);
        self.left.set(self.left.get() - (allowed - budget.steps_left()));
        shown
    }

    /// The parts of `text` in reading order, without the text as a whole.
    pub(super) fn into_parts(self, text: &str) -> Vec<Part> {
        let whole = text.trim();
        let mut open: Vec<usize> = Vec::new();
        let mut parts = Vec::new();
        for ((start, Reverse(end)), Values { first, more }) in self.parts.into_inner() {
            let Some(part) = text.get(start..end).filter(|part| *part != whole) else { continue };
            while open.last().is_some_and(|outer| *outer <= start) {
                open.pop();
            }
            parts.push(Part { text: Str::new(part), depth: open.len(), values: first, more });
            open.push(end);
        }
        parts
    }
}

/// The value of a whole expression, whatever its parts have taken.
pub(super) fn whole(value: &Result<Val<'_>, EvalError>) -> Result<Value, String> {
    shown(value, &Budget::new(MOST_SHOWN, 0))
}

/// A value that outlives the evaluation; of one that is too large, or that JSON cannot say, its type.
fn shown(value: &Result<Val<'_>, EvalError>, budget: &Budget) -> Result<Value, String> {
    let value = value.as_ref().map_err(ToString::to_string)?;
    let json = value.charge(budget).ok().and_then(|_| value.to_json());
    Ok(match (json, value) {
        (Some(json), _) => json,
        (None, Val::Optional(None)) => Value::from("optional.none()"),
        (None, other) => Value::from(other.type_name().into_owned()),
    })
}
