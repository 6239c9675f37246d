//! Colours of the terminal.

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

/// `text` in a colour, or as it is when `on` is false.
pub fn paint(text: &str, colour: Colour, on: bool) -> String {
    if on { format!("\u{1b}[{}m{text}\u{1b}[0m", colour.code()) } else { text.to_owned() }
}
