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
    /// Whether the wildcards of values count.
    pub(super) values_are_patterns: bool,
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

    /// Whether `key` fits the text of the value, as a wildcard pattern if it is one.
    pub(super) fn fits(self, value: &str, key: &str) -> Decided<bool> {
        if self.values_are_patterns { self.matches(value, key) } else { self.same(value, key) }
    }

    fn matches(self, pattern: &str, text: &str) -> Decided<bool> {
        wildcard::matches_within(pattern, text, self.budget)
    }

    /// Whether a key fits an item of the value as a wildcard pattern, or the item fits the key.
    pub(super) fn alike(self, item: &str, key: &str) -> Decided<bool> {
        // Looking for wildcards reads both, also where lengths alone tell texts apart.
        self.budget.charge_reading(item.len() + key.len())?;
        let key_is_pattern = || self.keys_are_patterns && wildcard::has_wildcard(key);
        // A pattern fits its own text.
        Ok(item == key
            || (self.values_are_patterns && wildcard::has_wildcard(item) && self.matches(item, key)?)
            || (key_is_pattern() && self.matches(key, item)?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_texts_are_charged_however_short_one_is() {
        let (long, budget) = ("a".repeat(1 << 20), Budget::new(100_000, 0));
        let alike = |_| Work { budget: &budget, keys_are_patterns: true, values_are_patterns: true }.alike("b", &long);
        let first_refusal = (0..10).map(alike).position(|decided| decided == Err(BudgetError::Steps));
        assert_eq!(first_refusal, Some(1));
    }

    #[test]
    fn texts_are_alike_if_one_fits_the_other() {
        let budget = Budget::default();
        let work = Work { budget: &budget, keys_are_patterns: true, values_are_patterns: true };
        for (a, b, want) in [
            ("a", "a", true),
            ("a", "b", false),
            ("a*", "a*", true),
            ("a?", "ab", true),
            ("ab", "?b", true),
            ("a*", "b*", false),
        ] {
            assert_eq!(work.alike(a, b), Ok(want), "{a} {b}");
        }
    }
}
