//! Scalars of the subset.

use std::borrow::Cow;

use super::cursor::{Class, Cursor, GiveUp, class};
use crate::yaml::build::RawScalar;
use crate::yaml::resolve::Tag;
use crate::yaml::source_map::{Bytes, ScalarStyle};

/// Where a plain scalar is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    Block,
    Flow,
}

/// A scalar and what follows it.
pub(super) struct Token<'t> {
    pub(super) scalar: RawScalar<'t>,
    /// Whether a `:` follows that makes it a key; the cursor is on it.
    pub(super) is_key: bool,
}

/// A longer key would not be taken as one by the full parser.
const MAX_KEY: usize = 1000;

fn raw(text: Cow<'_, str>, style: ScalarStyle, start: usize, end: usize) -> RawScalar<'_> {
    RawScalar { text, style, tag: Tag::None, anchor: 0, at: Bytes { start: start as u32, end: end as u32 } }
}

/// A null that is not written, at `offset`.
pub(super) fn absent(offset: usize) -> RawScalar<'static> {
    raw(Cow::Borrowed(""), ScalarStyle::Plain, offset, offset)
}

impl<'t> Cursor<'t> {
    /// A plain or quoted scalar at the cursor. Behind it is the end of the line, a comment, in flow context a
    /// delimiter, or the `:` of a key.
    pub(super) fn token(&mut self, context: Context) -> Result<Token<'t>, GiveUp> {
        let start = self.at;
        let scalar = match self.here() {
            b'"' => self.double_quoted()?,
            b'\'' => self.single_quoted()?,
            _ => return self.plain(context),
        };
        // A key in quotes may have its `:` anywhere behind, in flow context even with the value right after it.
        let end = self.at;
        self.skip_spaces();
        let adjacent = context == Context::Flow && self.at == end;
        let is_key = self.here() == b':' && (adjacent || self.is_blank(self.at + 1));
        if is_key && end - start > MAX_KEY {
            return Err(GiveUp);
        }
        if !is_key {
            self.at = end;
        }
        Ok(Token { scalar, is_key })
    }

    fn plain(&mut self, context: Context) -> Result<Token<'t>, GiveUp> {
        let start = self.at;
        match self.here() {
            b'-' | b'?' | b':' => {
                // Indicators when blank space follows, in flow context also before a delimiter.
                let next = self.byte(start + 1);
                if self.here() != b'-' || next == b' ' || class(next) != Class::Ordinary {
                    return Err(GiveUp);
                }
            }
            b'&' | b'*' | b'!' | b'|' | b'>' | b'%' | b'@' | b'`' | b'#' => return Err(GiveUp),
            first if class(first) == Class::Flow => return Err(GiveUp),
            _ => {}
        }
        let mut is_key = false;
        loop {
            match class(self.here()) {
                Class::LineBreak => break,
                Class::Colon if self.is_blank(self.at + 1) => {
                    is_key = true;
                    break;
                }
                Class::Colon if context == Context::Flow && class(self.byte(self.at + 1)) == Class::Flow => {
                    return Err(GiveUp);
                }
                Class::Hash if self.byte(self.at - 1) == b' ' => break,
                Class::Flow if context == Context::Flow => break,
                Class::Ordinary | Class::Colon | Class::Hash | Class::Flow => {}
                Class::Suspect => self.check_suspect(self.at)?,
                Class::Control => return Err(GiveUp),
            }
            self.at += 1;
        }
        let mut end = self.at;
        while end > start && self.byte(end - 1) == b' ' {
            end -= 1;
        }
        if end == start || is_key && end - start > MAX_KEY {
            return Err(GiveUp);
        }
        if !is_key {
            self.at = end;
        }
        let text = Cow::Borrowed(self.slice(start, end)?);
        Ok(Token { scalar: raw(text, ScalarStyle::Plain, start, end), is_key })
    }

    fn single_quoted(&mut self) -> Result<RawScalar<'t>, GiveUp> {
        let start = self.at;
        self.at += 1;
        loop {
            match class(self.here()) {
                Class::LineBreak | Class::Control => return Err(GiveUp),
                Class::Suspect => self.check_suspect(self.at)?,
                _ if self.here() != b'\'' => {}
                _ if self.byte(self.at + 1) == b'\'' => self.at += 1,
                _ => break,
            }
            self.at += 1;
        }
        let inner = self.slice(start + 1, self.at)?;
        self.at += 1;
        let text = if inner.contains('\'') { Cow::Owned(inner.replace("''", "'")) } else { Cow::Borrowed(inner) };
        Ok(raw(text, ScalarStyle::SingleQuoted, start, self.at))
    }

    fn double_quoted(&mut self) -> Result<RawScalar<'t>, GiveUp> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        // Text from here on is not in `text` yet.
        let mut verbatim = self.at;
        loop {
            match self.here() {
                b'"' => break,
                b'\\' => {
                    text.push_str(self.slice(verbatim, self.at)?);
                    text.push(self.escape()?);
                    verbatim = self.at;
                    continue;
                }
                other => match class(other) {
                    Class::LineBreak | Class::Control => return Err(GiveUp),
                    Class::Suspect => self.check_suspect(self.at)?,
                    _ => {}
                },
            }
            self.at += 1;
        }
        let rest = self.slice(verbatim, self.at)?;
        self.at += 1;
        let text = if verbatim == start + 1 {
            Cow::Borrowed(rest)
        } else {
            text.push_str(rest);
            Cow::Owned(text)
        };
        Ok(raw(text, ScalarStyle::DoubleQuoted, start, self.at))
    }

    /// The character behind the escape at the cursor.
    fn escape(&mut self) -> Result<char, GiveUp> {
        let c = match self.byte(self.at + 1) {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let digits = self.slice(self.at + 2, self.at + 6)?;
                if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return Err(GiveUp);
                }
                self.at += 4;
                // Halves of surrogate pairs are for the full parser.
                u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).ok_or(GiveUp)?
            }
            _ => return Err(GiveUp),
        };
        self.at += 2;
        Ok(c)
    }

    /// A block scalar whose `|` or `>` is at the cursor, inside of a collection at column `parent`. The cursor ends
    /// at the start of the line after it.
    pub(super) fn block_scalar(&mut self, parent: usize) -> Result<RawScalar<'t>, GiveUp> {
        let style = if self.here() == b'|' { ScalarStyle::Literal } else { ScalarStyle::Folded };
        self.at += 1;
        let chomping = self.here();
        if matches!(chomping, b'-' | b'+') {
            self.at += 1;
        }
        self.skip_spaces();
        if self.here() != b'\n' || self.at_end() {
            return Err(GiveUp);
        }
        self.at += 1;
        let (mut text, mut start, mut indent) = (String::new(), 0, 0);
        // Line breaks since the last line that is not empty.
        let mut breaks = 0;
        while !self.at_end() {
            let line = self.at;
            self.skip_spaces();
            let spaces = self.at - line;
            if self.here() == b'\n' {
                // The last line must end, and blank lines must not reach beyond the indentation.
                if self.at_end() || spaces > indent && (indent > 0 || spaces > parent) {
                    return Err(GiveUp);
                }
                breaks += 1;
                self.at += 1;
                continue;
            }
            if spaces <= parent {
                self.at = line;
                break;
            }
            if indent == 0 {
                (indent, start) = (spaces, self.at);
                text.extend(std::iter::repeat_n('\n', breaks));
            } else {
                let more_indented = spaces > indent || self.here() == b'\t';
                if spaces < indent || style == ScalarStyle::Folded && more_indented {
                    return Err(GiveUp);
                }
                match style {
                    ScalarStyle::Folded if breaks == 1 => text.push(' '),
                    ScalarStyle::Folded => text.extend(std::iter::repeat_n('\n', breaks - 1)),
                    _ => text.extend(std::iter::repeat_n('\n', breaks)),
                }
            }
            if style == ScalarStyle::Folded && self.here() == b'\t' {
                return Err(GiveUp);
            }
            self.skip_text_line()?;
            text.push_str(self.slice(line + indent, self.at)?);
            if self.at_end() {
                return Err(GiveUp);
            }
            breaks = 1;
            self.at += 1;
        }
        if indent == 0 {
            return Err(GiveUp);
        }
        match chomping {
            b'-' => {}
            b'+' => text.extend(std::iter::repeat_n('\n', breaks)),
            _ => text.push('\n'),
        }
        Ok(raw(Cow::Owned(text), style, start, self.at))
    }

    /// To the end of a line of a block scalar.
    fn skip_text_line(&mut self) -> Result<(), GiveUp> {
        loop {
            match class(self.here()) {
                Class::LineBreak => return Ok(()),
                Class::Control if self.here() != b'\t' => return Err(GiveUp),
                Class::Suspect => self.check_suspect(self.at)?,
                _ => {}
            }
            self.at += 1;
        }
    }
}
