//! What comparisons cost. Users write the texts and lists on both sides, so each look at one is charged.

use std::borrow::Cow;

use ephor_expr::Value;
use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::scalar::wildcard;

use super::text::element_text;

/// A decision, unless the budget is spent first.
pub(super) type Decided<T> = Result<T, BudgetError>;

/// The steps of comparisons, charged to a budget before each is made.
#[derive(Clone, Copy)]
pub(super) struct Work<'b> {
    pub(super) budget: &'b Budget,
    /// Whether the wildcards of keys count, and not only those of values.
    pub(super) keys_are_patterns: bool,
}

impl Work<'_> {
    /// Charges for reading `text` once.
    pub(super) fn read(self, text: &str) -> Decided<()> {
        self.budget.charge_reading(text.len())
    }

    /// Charges for reading `text` as JSON.
    pub(super) fn read_json(self, text: &str) -> Decided<()> {
        self.budget.charge_steps(text.len() as u64 / 4)
    }

    /// Charges for reading all of `value`.
    pub(super) fn read_all(self, value: &Value) -> Decided<()> {
        self.budget.charge_tree(value).map(drop)
    }

    /// Whether `text` fits the wildcard pattern.
    pub(super) fn matches(self, pattern: &str, text: &str) -> Decided<bool> {
        wildcard::matches_within(pattern, text, self.budget)
    }

    /// Whether a key fits an item of the value as a wildcard pattern, or the item fits the key.
    pub(super) fn alike(self, item: &str, key: &str) -> Decided<bool> {
        let key_is_pattern = self.keys_are_patterns && wildcard::has_wildcard(key);
        if !key_is_pattern && !wildcard::has_wildcard(item) {
            return self.same(item, key);
        }
        Ok(self.matches(item, key)? || (key_is_pattern && self.matches(key, item)?))
    }

    /// Whether two texts are the same.
    pub(super) fn same(self, a: &str, b: &str) -> Decided<bool> {
        self.budget.charge_reading(a.len().min(b.len()))?;
        Ok(a == b)
    }

    /// The text of a list's element.
    pub(super) fn text(self, element: &Value) -> Decided<Cow<'_, str>> {
        if element.as_str().is_none() {
            self.read_all(element)?;
        }
        Ok(element_text(element))
    }
}
