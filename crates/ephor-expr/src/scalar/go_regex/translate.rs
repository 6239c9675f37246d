//! Go's regular expression syntax, rewritten in that of `regex`.
//!
//! One pass over the text without recursion. Every piece (a character, a class, a group, an assertion) is written as
//! one unit that stands for the same in either state of the target's flags, save for case folding, which is switched
//! on and off in the output where the source has done so.

use std::fmt::Write as _;

use super::error::{GoRegexError, GoRegexErrorKind as Kind};
use super::group::{Flags, Group};

/// The highest repetition count, also of nested repetitions multiplied.
const MOST_REPEATS: u32 = 1000;

/// Rewrites a Go expression, or says in Go's words why it is none.
pub(super) fn translate(pattern: &str) -> Result<String, GoRegexError> {
    let mut translator = Translator::new(pattern);
    while translator.step()? {}
    translator.finish()
}

/// The piece that a repetition would apply to.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// Where it starts in the output.
    pub(super) start: usize,
    /// How often it repeats its innermost part, nested counts multiplied.
    pub(super) repeats: u32,
}

pub(super) struct Translator<'a> {
    pub(super) source: &'a str,
    /// Where the next piece starts.
    pub(super) at: usize,
    pub(super) out: String,
    pub(super) flags: Flags,
    pub(super) folding: bool,
    pub(super) groups: Vec<Group>,
    pub(super) piece: Option<Piece>,
    /// The largest [`Piece::repeats`] in this group.
    pub(super) repeats: u32,
    /// Where the repetition just read starts, if the last thing was one.
    last_repetition: Option<usize>,
    pub(super) names: Vec<&'a str>,
}

impl<'a> Translator<'a> {
    fn new(source: &'a str) -> Self {
        Translator {
            source,
            at: 0,
            out: String::with_capacity(source.len() + 16),
            flags: Flags::NONE,
            folding: false,
            groups: Vec::new(),
            piece: None,
            repeats: 1,
            last_repetition: None,
            names: Vec::new(),
        }
    }

    /// What is still to be read.
    pub(super) fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    /// What was read since `start`.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.source.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn next_char(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    /// Reads one piece; false at the end.
    fn step(&mut self) -> Result<bool, GoRegexError> {
        let start = self.at;
        let Some(c) = self.rest().chars().next() else { return Ok(false) };
        let repeated_before = self.last_repetition.take();
        match c {
            '(' => self.open_group()?,
            ')' => self.close_group()?,
            '|' => {
                self.at += 1;
                self.end_piece();
                self.out.push('|');
            }
            '[' => {
                self.start_piece();
                self.class()?;
            }
            '.' => {
                self.at += 1;
                self.push_piece(if self.flags.has(Flags::DOT_MATCHES_NEWLINE) { "(?s:.)" } else { "." });
            }
            '^' => {
                self.at += 1;
                self.push_piece(if self.flags.has(Flags::MULTI_LINE) { "(?m:^)" } else { "\\A" });
            }
            '$' => {
                self.at += 1;
                self.push_piece(if self.flags.has(Flags::MULTI_LINE) { "(?m:$)" } else { "\\z" });
            }
            '*' | '+' | '?' => {
                self.at += 1;
                let (min, max) = match c {
                    '*' => (0, None),
                    '+' => (1, None),
                    _ => (0, Some(1)),
                };
                self.repetition(start, repeated_before, min, max, c)?;
            }
            '{' => {
                if let Some((min, max)) = self.counts() {
                    self.counted_repetition(start, repeated_before, min, max)?;
                } else {
                    self.at = start + 1;
                    self.literal('{');
                }
            }
            '\\' => self.escape()?,
            c => {
                self.at += c.len_utf8();
                self.literal(c);
            }
        }
        Ok(true)
    }

    fn finish(self) -> Result<String, GoRegexError> {
        if self.groups.is_empty() { Ok(self.out) } else { Err(GoRegexError::new(Kind::MissingParen, self.source)) }
    }

    /// Makes room for a piece: the output folds case as the source wants, and a repetition will find its start.
    pub(super) fn start_piece(&mut self) {
        let folding = self.flags.has(Flags::FOLD_CASE);
        if self.folding != folding {
            self.out.push_str(if folding { "(?i)" } else { "(?-i)" });
            self.folding = folding;
        }
        self.end_piece();
        self.piece = Some(Piece { start: self.out.len(), repeats: 1 });
    }

    pub(super) fn end_piece(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.repeats = self.repeats.max(piece.repeats);
        }
    }

    fn push_piece(&mut self, translated: &str) {
        self.start_piece();
        self.out.push_str(translated);
    }

    fn literal(&mut self, c: char) {
        self.start_piece();
        if regex_syntax::is_meta_character(c) {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    /// A character by number; one that is no character (a surrogate) never matches.
    fn literal_number(&mut self, number: u32) {
        match char::from_u32(number) {
            Some(c) => self.literal(c),
            None => self.push_piece("[a&&b]"),
        }
    }

    fn escape(&mut self) -> Result<(), GoRegexError> {
        let start = self.at;
        let assertion = match self.rest().as_bytes().get(1) {
            Some(b'A') => Some("\\A"),
            Some(b'z') => Some("\\z"),
            Some(b'b') => Some("(?-u:\\b)"),
            Some(b'B') => Some("(?-u:\\B)"),
            _ => None,
        };
        if let Some(assertion) = assertion {
            self.at += 2;
            self.push_piece(assertion);
            return Ok(());
        }
        if self.eat("\\Q") {
            let (quoted, _) = self.rest().split_once("\\E").unwrap_or((self.rest(), ""));
            self.at += quoted.len();
            self.eat("\\E");
            quoted.chars().for_each(|c| self.literal(c));
            return Ok(());
        }
        if self.eat("\\C") {
            return Err(GoRegexError::new(Kind::InvalidEscape, self.since(start)));
        }
        self.start_piece();
        if self.named_class()? {
            return Ok(());
        }
        // Not a class: the place kept for one is the character's.
        let number = self.escaped_character()?;
        self.literal_number(number);
        Ok(())
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; `None` when the brace is an ordinary character. Counts too long to read are
    /// the greatest there are.
    fn counts(&mut self) -> Option<(u32, Option<u32>)> {
        self.at += 1;
        let min = self.count()?;
        let max = if self.eat(",") {
            if self.rest().starts_with('}') { None } else { Some(self.count()?) }
        } else {
            Some(min)
        };
        self.eat("}").then_some((min, max))
    }

    fn count(&mut self) -> Option<u32> {
        let rest = self.rest();
        let length = rest.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest.get(..length)?;
        if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        self.at += length;
        Some(digits.parse().unwrap_or(u32::MAX))
    }

    fn counted_repetition(
        &mut self,
        start: usize,
        repeated_before: Option<usize>,
        min: u32,
        max: Option<u32>,
    ) -> Result<(), GoRegexError> {
        if min > MOST_REPEATS || max.is_some_and(|max| max > MOST_REPEATS || min > max) {
            return Err(GoRegexError::new(Kind::InvalidRepeatSize, self.since(start)));
        }
        self.repetition(start, repeated_before, min, max, '{')
    }

    /// Applies a repetition, its operator just read, to the last piece.
    fn repetition(
        &mut self,
        start: usize,
        repeated_before: Option<usize>,
        min: u32,
        max: Option<u32>,
        operator: char,
    ) -> Result<(), GoRegexError> {
        let lazy = self.eat("?");
        if let Some(first) = repeated_before {
            return Err(GoRegexError::new(Kind::InvalidRepeatOp, self.since(first)));
        }
        let Some(piece) = self.piece.as_mut() else {
            return Err(GoRegexError::new(Kind::MissingRepeatArgument, self.since(start)));
        };
        if operator == '{' {
            let times = max.unwrap_or(min).max(1);
            piece.repeats = piece.repeats.saturating_mul(times);
            if times >= 2 && piece.repeats > MOST_REPEATS {
                return Err(GoRegexError::new(Kind::InvalidRepeatSize, self.since(start)));
            }
        }
        // The target must not read two repetitions as one, nor a repetition where a flag switch stands.
        self.out.insert_str(piece.start, "(?:");
        self.out.push(')');
        let _ = match (operator, max) {
            ('{', Some(max)) => write!(self.out, "{{{min},{max}}}"),
            ('{', None) => write!(self.out, "{{{min},}}"),
            _ => write!(self.out, "{operator}"),
        };
        if lazy != self.flags.has(Flags::SWAP_GREED) {
            self.out.push('?');
        }
        self.last_repetition = Some(start);
        Ok(())
    }

    /// Reads an escaped character (`\n`, `\x41`, `\x{1F600}`, `\012`, `\.`) as its number.
    pub(super) fn escaped_character(&mut self) -> Result<u32, GoRegexError> {
        let start = self.at;
        self.at += 1;
        let Some(c) = self.next_char() else {
            return Err(GoRegexError::new(Kind::TrailingBackslash, ""));
        };
        let number = match c {
            '0' => Some(self.octal(0)),
            // A single digit would be a back-reference.
            '1'..='7' if self.rest().starts_with(|c: char| c.is_digit(8)) => c.to_digit(8).map(|d| self.octal(d)),
            'x' => self.hexadecimal(),
            'a' => Some(7),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
            _ => None,
        };
        number.ok_or_else(|| GoRegexError::new(Kind::InvalidEscape, self.since(start)))
    }

    /// Reads up to two more octal digits.
    fn octal(&mut self, mut number: u32) -> u32 {
        for _ in 0..2 {
            let Some(digit) = self.rest().chars().next().and_then(|c| c.to_digit(8)) else { break };
            self.at += 1;
            number = number * 8 + digit;
        }
        number
    }

    /// Reads two hexadecimal digits, or any number of them in braces.
    fn hexadecimal(&mut self) -> Option<u32> {
        let first = self.next_char()?;
        if first != '{' {
            let high = first.to_digit(16)?;
            let low = self.next_char()?.to_digit(16)?;
            return Some(high * 16 + low);
        }
        let (mut number, mut digits) = (0u32, 0);
        loop {
            let c = self.next_char()?;
            if c == '}' {
                return (digits > 0).then_some(number);
            }
            number = number * 16 + c.to_digit(16)?;
            digits += 1;
            if number > u32::from(char::MAX) {
                return None;
            }
        }
    }
}
