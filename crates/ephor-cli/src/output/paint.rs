//! Colours of the terminal.

use std::borrow::Cow;

use ephor_engine::outcome::Verdict;

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// For what is well.
    Green,
    /// For failures.
    Red,
    /// For warnings.
    Yellow,
    /// For what does not count.
    Dim,
}

impl Colour {
    /// The colour of a verdict.
    pub fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Green,
            Verdict::Fail | Verdict::Error => Self::Red,
            Verdict::Warn => Self::Yellow,
            Verdict::Skip => Self::Dim,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Dim => "2",
        }
    }
}

/// Text from files as it may be shown on a terminal: control characters, which could move the cursor or colour the rest,
/// are written as escapes. Line breaks and tabs stay.
pub fn plain(text: &str) -> Cow<'_, str> {
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if odd(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// `text` in a colour, or as it is when `on` is false.
pub fn paint(text: &str, colour: Colour, on: bool) -> String {
    if on { format!("\u{1b}[{}m{text}\u{1b}[0m", colour.code()) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        assert_eq!(plain("a\tb\n\u{e9}"), "a\tb\n\u{e9}");
        assert_eq!(plain("\u{1b}[31mred\r"), "\\u{1b}[31mred\\u{d}");
    }
}
