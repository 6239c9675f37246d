//! Wildcard patterns: `*` is any run of characters, `?` exactly one, nothing else is special.
//!
//! Used for names, kinds, labels, pattern texts and `pattern_match()`. Case-sensitive, by Unicode character; an empty
//! pattern matches only the empty text (engine.md 2.1).

use crate::Str;
use crate::budget::{Budget, BudgetError};

/// Whether `text` as a whole fits `pattern`.
///
/// The pieces between stars are searched one after the other, each from where the one before ended, and none of the
/// text is searched twice. So the time is linear, but for pieces with a `?`, which are tried place by place. No
/// allocation.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return prefix(pattern, text).is_some_and(str::is_empty);
    };
    let Some(text) = prefix(first, text) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut text) = without_suffix(last, text) else { return false };
    for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
        match after(piece, text) {
            Some(rest) => text = rest,
            None => return false,
        }
    }
    true
}

/// [`matches()`] of texts that anybody may have written: the work is charged before it is done.
pub fn matches_within(pattern: &str, text: &str, budget: &Budget) -> Result<bool, BudgetError> {
    budget.charge_steps(cost(pattern, text))?;
    Ok(matches(pattern, text))
}

/// What [`matches()`] counts for, in evaluation steps.
pub fn cost(pattern: &str, text: &str) -> u64 {
    let (pattern_length, length) = (pattern.len() as u64, text.len() as u64);
    let tried = if has_question_mark(pattern) { pattern_length.min(length).saturating_mul(length) } else { 0 };
    1 + (pattern_length + length) / 16 + tried / 16
}

/// A search of bytes: texts are short here, and a search of characters takes longer to begin.
fn has_question_mark(s: &str) -> bool {
    s.as_bytes().contains(&b'?')
}

/// What follows `piece`, which has no star, at the start of `text`.
fn prefix<'t>(piece: &str, text: &'t str) -> Option<&'t str> {
    if !has_question_mark(piece) {
        return text.strip_prefix(piece);
    }
    let mut rest = text.chars();
    let fits = piece.chars().all(|wanted| rest.next().is_some_and(|c| wanted == '?' || wanted == c));
    fits.then_some(rest.as_str())
}

/// What comes before `piece`, which has no star, at the end of `text`.
fn without_suffix<'t>(piece: &str, text: &'t str) -> Option<&'t str> {
    if !has_question_mark(piece) {
        return text.strip_suffix(piece);
    }
    let mut rest = text.chars();
    let fits = piece.chars().rev().all(|wanted| rest.next_back().is_some_and(|c| wanted == '?' || wanted == c));
    fits.then_some(rest.as_str())
}

/// What follows the first place of `piece`, which has no star, in `text`.
fn after<'t>(piece: &str, text: &'t str) -> Option<&'t str> {
    if !has_question_mark(piece) {
        return text.split_once(piece).map(|(_, rest)| rest);
    }
    let mut rest = text.chars();
    loop {
        if let Some(found) = prefix(piece, rest.as_str()) {
            return Some(found);
        }
        rest.next()?;
    }
}

/// Whether `s` has a `*` or `?`.
pub fn has_wildcard(s: &str) -> bool {
    s.bytes().any(|b| b == b'*' || b == b'?')
}

/// A pattern examined once, so that the common shapes are a single comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    pattern: Str,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// No wildcard.
    Exact,
    /// `*`
    Any,
    /// `?*`: anything but the empty text.
    NonEmpty,
    /// `x*`
    Prefix,
    /// `*x`
    Suffix,
    /// `*x*`
    Contains,
    General,
}

impl Wildcard {
    /// Compiles a pattern; every text is one.
    pub fn new(pattern: &str) -> Self {
        let shape = if !has_wildcard(pattern) {
            Shape::Exact
        } else if pattern.bytes().all(|b| b == b'*') {
            Shape::Any
        } else if pattern == "?*" || pattern == "*?" {
            Shape::NonEmpty
        } else {
            let (front, back) = (pattern.strip_prefix('*'), pattern.strip_suffix('*'));
            let both = front.and_then(|rest| rest.strip_suffix('*'));
            match (front, back, both) {
                (_, _, Some(x)) if !has_wildcard(x) => Shape::Contains,
                (Some(x), _, _) if !has_wildcard(x) => Shape::Suffix,
                (_, Some(x), _) if !has_wildcard(x) => Shape::Prefix,
                _ => Shape::General,
            }
        };
        Wildcard { pattern: pattern.into(), shape }
    }

    /// Whether `text` as a whole fits; the same answer as [`matches()`].
    pub fn matches(&self, text: &str) -> bool {
        let pattern = self.pattern.as_str();
        let star = '*';
        match self.shape {
            Shape::Exact => pattern == text,
            Shape::Any => true,
            Shape::NonEmpty => !text.is_empty(),
            Shape::Prefix => text.starts_with(pattern.trim_end_matches(star)),
            Shape::Suffix => text.ends_with(pattern.trim_start_matches(star)),
            Shape::Contains => text.contains(pattern.trim_matches(star)),
            Shape::General => matches(pattern, text),
        }
    }

    /// [`Wildcard::matches`] of a text that anybody may have written: the work is charged before it is done.
    pub fn matches_within(&self, text: &str, budget: &Budget) -> Result<bool, BudgetError> {
        let cost = match self.shape {
            Shape::General => cost(&self.pattern, text),
            // One comparison, without a `?` that is tried in many places.
            _ => 1 + (self.pattern.len() + text.len()) as u64 / 16,
        };
        budget.charge_steps(cost)?;
        Ok(self.matches(text))
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether it has no wildcard, so that it matches exactly one text.
    pub fn is_exact(&self) -> bool {
        self.shape == Shape::Exact
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, by recursion over characters.
    fn naive(pattern: &[char], text: &[char]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=text.len()).any(|n| naive(rest, &text[n..])),
            (Some(('?', rest)), Some((_, others))) => naive(rest, others),
            (Some((c, rest)), Some((d, others))) => c == d && naive(rest, others),
            _ => false,
        }
    }

    #[test]
    fn observed_pairs() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "x", false),
            ("*", "", true),
            ("**", "", true),
            ("?*", "", false),
            ("?*", "x", true),
            ("a?c", "ac", false),
            ("a.c", "abc", false),
            ("a**b", "ab", true),
            ("?", "a", true),
            ("?", "é", true),
            ("?", "ab", false),
            ("a?", "a", false),
            ("[ab]", "a", false),
            ("FOO", "foo", false),
            ("?0", "50", true),
            ("50*", "50", true),
            ("*.5", "7.5E+00", false),
            ("prod-*", "prod-eu", true),
            ("D?ployment", "Deployment", true),
            ("Deployment?", "Deployment", false),
            ("*:latest", "nginx:latest", true),
            ("*/é?*", "ż/éó", true),
            ("*b*d", "abcbd", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern:?} {text:?}");
            assert_eq!(Wildcard::new(pattern).matches(text), expected, "compiled {pattern:?} {text:?}");
        }
    }

    #[test]
    fn many_stars_against_a_long_text_take_linear_time() {
        let text = "a".repeat(1 << 20);
        for pattern in ["*a*a*a*a*b".to_owned(), "a*".repeat(100_000) + "b", "*".repeat(100_000) + "b"] {
            assert!(!matches(&pattern, &text));
            assert!(cost(&pattern, &text) < 100_000);
        }
    }

    #[test]
    fn pieces_with_question_marks_are_charged_for_every_place() {
        let (pattern, text) = (format!("*{}b*", "?".repeat(10_000)), "a".repeat(1 << 20));
        assert_eq!(matches_within(&pattern, &text, &Budget::default()), Err(BudgetError::Steps));
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[a-bé*?]{0,7}", text in "[a-bé*?ż]{0,10}") {
            let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
            let expected = naive(&p, &t);
            prop_assert_eq!(matches(&pattern, &text), expected);
            prop_assert_eq!(Wildcard::new(&pattern).matches(&text), expected);
        }

        #[test]
        fn takes_any_text(pattern in ".*", text in ".*") {
            prop_assert_eq!(Wildcard::new(&pattern).matches(&text), matches(&pattern, &text));
        }
    }
}
