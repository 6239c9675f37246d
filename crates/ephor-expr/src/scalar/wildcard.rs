//! Wildcard patterns: `*` is any run of characters, `?` exactly one, nothing else is special.
//!
//! Used for names, kinds, labels, pattern texts and `pattern_match()`. Case-sensitive, by Unicode character; an empty
//! pattern matches only the empty text (engine.md 2.1).

use crate::Str;

/// Whether `text` as a whole fits `pattern`.
///
/// Iterative with one restart point (the last `*`), so at worst `pattern.len() * text.len()` steps, and without
/// allocation.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // The position after the last `*` seen, and where in the text the rest of the pattern is being tried.
    let mut restart: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                if p == pattern.len() {
                    return true;
                }
                restart = Some((p, t));
            }
            Some(b'?') => {
                p += 1;
                t += char_width(byte);
            }
            Some(&literal) if literal == byte => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((after_star, tried)) = restart else { return false };
                let next = tried + text.get(tried).map_or(1, |&lead| char_width(lead));
                restart = Some((after_star, next));
                (p, t) = (after_star, next);
            }
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|&b| b == b'*'))
}

/// Whether `s` has a `*` or `?`.
pub fn has_wildcard(s: &str) -> bool {
    s.bytes().any(|b| b == b'*' || b == b'?')
}

/// The length of the UTF-8 character that starts with this byte.
const fn char_width(lead: u8) -> usize {
    match lead {
        0..=0xBF => 1,
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xFF => 4,
    }
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
    fn many_stars_against_a_long_text_stay_fast() {
        let pattern = "a*".repeat(1_000) + "b";
        let text = "a".repeat(20_000);
        assert!(!matches(&pattern, &text));
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
