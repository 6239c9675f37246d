//! Character classes: `[...]`, `\d`, `\p{...}`, `[:alpha:]`.

use std::fmt::Write as _;

use super::error::{GoRegexError, GoRegexErrorKind as Kind};
use super::translate::Translator;

/// The ASCII classes by letter, as class items of the target.
const PERL: [(char, &str); 3] = [('d', "0-9"), ('s', r"\t\n\x0C\r\x20"), ('w', "0-9A-Za-z_")];

/// The classes by name, as class items of the target.
const POSIX: [(&str, &str); 14] = [
    ("alnum", "0-9A-Za-z"),
    ("alpha", "A-Za-z"),
    ("ascii", r"\x00-\x7F"),
    ("blank", r"\t\x20"),
    ("cntrl", r"\x00-\x1F\x7F"),
    ("digit", "0-9"),
    ("graph", r"\x21-\x7E"),
    ("lower", "a-z"),
    ("print", r"\x20-\x7E"),
    ("punct", r"\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E"),
    ("space", r"\t\n\x0B\x0C\r\x20"),
    ("upper", "A-Z"),
    ("word", "0-9A-Za-z_"),
    ("xdigit", "0-9A-Fa-f"),
];

impl Translator<'_> {
    /// Reads `[...]`.
    pub(super) fn class(&mut self) -> Result<(), GoRegexError> {
        let class = self.rest();
        self.at += 1;
        let opening = if self.eat("^") { "[^" } else { "[" };
        self.out.push_str(opening);
        let mut first = true;
        loop {
            // A `]` in first place is an ordinary character.
            if !first && self.eat("]") {
                break;
            }
            first = false;
            if self.posix_class()? || self.named_class()? {
                continue;
            }
            let start = self.at;
            let low = self.class_character(class)?;
            let mut high = low;
            let rest = self.rest();
            // `[a-]` is `a` or `-`.
            if rest.len() >= 2 && rest.starts_with('-') && !rest.starts_with("-]") {
                self.at += 1;
                high = self.class_character(class)?;
                if high < low {
                    return Err(GoRegexError::new(Kind::InvalidCharRange, self.since(start)));
                }
            }
            self.class_range(low, high);
        }
        self.out.push(']');
        Ok(())
    }

    fn class_character(&mut self, class: &str) -> Result<u32, GoRegexError> {
        if self.rest().starts_with('\\') {
            return self.escaped_character();
        }
        self.next_char().map(u32::from).ok_or_else(|| GoRegexError::new(Kind::MissingBracket, class))
    }

    /// Writes a range of numbers; those of surrogates are left out.
    fn class_range(&mut self, low: u32, high: u32) {
        let low = if (0xD800..0xE000).contains(&low) { 0xE000 } else { low };
        let high = if (0xD800..0xE000).contains(&high) { 0xD7FF } else { high };
        if low > high {
            // Nothing is left; an empty class keeps the brackets legal.
            self.out.push_str("[a&&b]");
        } else {
            // Writing to a string cannot fail.
            let _ = write!(self.out, r"\x{{{low:X}}}-\x{{{high:X}}}");
        }
    }

    /// Reads `[:alpha:]` inside a class; false when there is none.
    fn posix_class(&mut self) -> Result<bool, GoRegexError> {
        let rest = self.rest();
        let Some(inner) = rest.strip_prefix("[:") else { return Ok(false) };
        let Some(length) = inner.find(":]") else { return Ok(false) };
        self.at += length + 4;
        let name = inner.get(..length).unwrap_or_default();
        let (negated, bare) = match name.strip_prefix('^') {
            Some(bare) => (true, bare),
            None => (false, name),
        };
        let Some((_, items)) = POSIX.iter().find(|(known, _)| *known == bare) else {
            let whole = rest.get(..length + 4).unwrap_or_default();
            return Err(GoRegexError::new(Kind::InvalidCharRange, whole));
        };
        self.items(negated, items);
        Ok(true)
    }

    /// Reads `\d`, `\W`, `\pL` or `\p{Greek}`; false when there is none.
    pub(super) fn named_class(&mut self) -> Result<bool, GoRegexError> {
        let rest = self.rest();
        let mut chars = rest.chars();
        let (Some('\\'), Some(letter)) = (chars.next(), chars.next()) else { return Ok(false) };
        let lower = letter.to_ascii_lowercase();
        if lower == 'p' {
            self.at += 2;
            self.unicode_class(rest, letter == 'P')?;
            return Ok(true);
        }
        let Some((_, items)) = PERL.iter().find(|(known, _)| *known == lower) else { return Ok(false) };
        self.at += 2;
        self.items(letter != lower, items);
        Ok(true)
    }

    fn items(&mut self, negated: bool, items: &str) {
        self.out.push_str(if negated { "[^" } else { "[" });
        self.out.push_str(items);
        self.out.push(']');
    }

    /// Reads the name after `\p`; `text` starts at the backslash.
    fn unicode_class(&mut self, text: &str, negated: bool) -> Result<(), GoRegexError> {
        let start = self.at;
        let Some(c) = self.next_char() else {
            return Err(GoRegexError::new(Kind::InvalidCharRange, text));
        };
        let name = if c == '{' {
            let Some(length) = self.rest().find('}') else {
                return Err(GoRegexError::new(Kind::InvalidCharRange, text));
            };
            let name = self.rest().get(..length).unwrap_or_default();
            self.at += length + 1;
            name
        } else {
            self.since(start)
        };
        let (negated, bare) = match name.strip_prefix('^') {
            Some(bare) => (!negated, bare),
            None => (negated, name),
        };
        let letter = if negated { 'P' } else { 'p' };
        let class = format!(r"\{letter}{{{bare}}}");
        let plain = !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !plain || regex_syntax::parse(&class).is_err() {
            let whole = text.get(..self.at - (start - 2)).unwrap_or(text);
            return Err(GoRegexError::new(Kind::InvalidCharRange, whole));
        }
        self.out.push_str(&class);
        Ok(())
    }
}
