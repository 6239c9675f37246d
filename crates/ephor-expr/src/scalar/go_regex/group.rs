//! Groups: `(...)`, `(?P<name>...)`, `(?i)`, `(?i:...)`.

use std::fmt::Write as _;

use super::error::{GoRegexError, GoRegexErrorKind as Kind};
use super::translate::{Piece, Translator};

/// The deepest nesting of groups.
const MOST_GROUPS: usize = 1000;

/// The flags that are on.
#[derive(Clone, Copy)]
pub(super) struct Flags(u8);

impl Flags {
    pub(super) const NONE: Flags = Flags(0);
    /// `i`
    pub(super) const FOLD_CASE: Flags = Flags(1);
    /// `m`
    pub(super) const MULTI_LINE: Flags = Flags(2);
    /// `s`
    pub(super) const DOT_MATCHES_NEWLINE: Flags = Flags(4);
    /// `U`
    pub(super) const SWAP_GREED: Flags = Flags(8);

    pub(super) fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    fn set(&mut self, flag: Flags, on: bool) {
        self.0 = if on { self.0 | flag.0 } else { self.0 & !flag.0 };
    }
}

/// A group not yet closed.
pub(super) struct Group {
    flags: Flags,
    /// Whether the output folds case where the group starts; it will again where it ends.
    folding: bool,
    start: usize,
    /// The largest [`Piece::repeats`] so far in the group around it.
    repeats: u32,
}

impl<'a> Translator<'a> {
    pub(super) fn open_group(&mut self) -> Result<(), GoRegexError> {
        if self.groups.len() >= MOST_GROUPS {
            return Err(GoRegexError::new(Kind::NestingDepth, self.source));
        }
        let start = self.at;
        let rest = self.rest();
        let named = if rest.starts_with("(?P<") {
            Some("(?P<")
        } else if rest.starts_with("(?<") {
            Some("(?<")
        } else {
            None
        };
        if let Some(opening) = named {
            let name = self.group_name(opening.len())?;
            let outer = self.flags;
            self.push_group(outer);
            // `regex` wants a letter first and each name once; without its name the group still counts.
            if name.starts_with(|c: char| c.is_ascii_digit()) || self.names.contains(&name) {
                self.out.push('(');
            } else {
                self.names.push(name);
                // Writing to a string cannot fail.
                let _ = write!(self.out, "(?P<{name}>");
            }
        } else if self.eat("(?") {
            self.group_flags(start)?;
        } else {
            self.at += 1;
            let outer = self.flags;
            self.push_group(outer);
            self.out.push('(');
        }
        Ok(())
    }

    fn group_name(&mut self, opening: usize) -> Result<&'a str, GoRegexError> {
        let rest = self.rest();
        let Some(end) = rest.find('>') else {
            return Err(GoRegexError::new(Kind::InvalidNamedCapture, rest));
        };
        self.at += end + 1;
        let name = rest.get(opening..end).unwrap_or_default();
        let whole = rest.get(..=end).unwrap_or_default();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(GoRegexError::new(Kind::InvalidNamedCapture, whole));
        }
        Ok(name)
    }

    /// Reads `i-s)` or `i-s:` after `(?`.
    fn group_flags(&mut self, start: usize) -> Result<(), GoRegexError> {
        let outer = self.flags;
        let mut flags = outer;
        let (mut on, mut seen) = (true, false);
        while let Some(c) = self.next_char() {
            match c {
                'i' => flags.set(Flags::FOLD_CASE, on),
                'm' => flags.set(Flags::MULTI_LINE, on),
                's' => flags.set(Flags::DOT_MATCHES_NEWLINE, on),
                'U' => flags.set(Flags::SWAP_GREED, on),
                '-' if on => {
                    on = false;
                    seen = false;
                    continue;
                }
                ':' | ')' if on || seen => {
                    if c == ':' {
                        self.push_group(outer);
                        self.out.push_str("(?:");
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => return Err(GoRegexError::new(Kind::InvalidPerlOp, self.since(start))),
            }
            seen = true;
        }
        Err(GoRegexError::new(Kind::InvalidPerlOp, self.since(start)))
    }

    fn push_group(&mut self, outer: Flags) {
        self.end_piece();
        let start = self.out.len();
        self.groups.push(Group { flags: outer, folding: self.folding, start, repeats: self.repeats });
        self.repeats = 1;
    }

    pub(super) fn close_group(&mut self) -> Result<(), GoRegexError> {
        self.end_piece();
        let Some(group) = self.groups.pop() else {
            return Err(GoRegexError::new(Kind::UnexpectedParen, self.source));
        };
        self.at += 1;
        self.out.push(')');
        self.piece = Some(Piece { start: group.start, repeats: self.repeats });
        self.repeats = group.repeats;
        self.flags = group.flags;
        self.folding = group.folding;
        Ok(())
    }
}
