//! Strings in YAML text: which notation one needs, and writing it.

use std::fmt::Write as _;

use super::options::Dialect;
use super::resolve::{Scalar, plain_scalar};
use crate::scalar::unseen::is_unseen;

/// How a string is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    Plain,
    Single,
    Double,
    /// After `|`.
    Literal,
}

/// The notation of a string that is a value.
pub(super) fn notation(text: &str) -> Notation {
    if text.chars().any(is_special) {
        return Notation::Double;
    }
    if text.contains('\n') {
        // White space at the end of a line is easily lost.
        return if text.ends_with(' ') || text.contains(" \n") { Notation::Double } else { Notation::Literal };
    }
    if means_something_else(text) {
        return Notation::Double;
    }
    if is_plain_safe(text) { Notation::Plain } else { Notation::Single }
}

/// The notation of a string that is a key.
pub(super) fn key_notation(text: &str) -> Notation {
    match notation(text) {
        Notation::Literal => Notation::Double,
        _ if text == "<<" => Notation::Double,
        other => other,
    }
}

/// Characters that are only written as escapes: invisible ones and, as in Go's libraries, those that do not fit 16
/// bits.
fn is_special(c: char) -> bool {
    c != '\n' && (is_unseen(c) || c >= '\u{fffe}')
}

/// Whether an unquoted `text` is, to some reader of YAML 1.1, no string.
fn means_something_else(text: &str) -> bool {
    let resolved = plain_scalar(text, Dialect::Kubernetes);
    !matches!(resolved, Scalar::Text(_) | Scalar::Merge) || is_timestamp(text) || is_base_60(text)
}

/// Whether an unquoted `text` would be taken as one scalar and no more.
fn is_plain_safe(text: &str) -> bool {
    let ends_word = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let mut chars = text.chars();
    let starts_well = match chars.next() {
        None
        | Some(' ' | '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`') => {
            false
        }
        Some('-' | '?' | ':') => !ends_word(chars.as_str()),
        Some(_) => true,
    };
    starts_well
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.starts_with("---")
        && !text.starts_with("...")
}

/// A date, or a date and time, of YAML 1.1 as Go reads them.
fn is_timestamp(text: &str) -> bool {
    let number = |s: &str, max_len: usize| -> Option<u32> {
        let fits = !s.is_empty() && s.len() <= max_len && s.bytes().all(|b| b.is_ascii_digit());
        if fits { s.parse().ok() } else { None }
    };
    let clock = |time: &str| {
        let whole = match time.split_once('.') {
            Some((_, fraction)) if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) => {
                return false;
            }
            Some((whole, _)) => whole,
            None => time,
        };
        let parts: Vec<_> = whole.split(':').map(|part| number(part, 2)).collect();
        matches!(parts[..], [Some(h), Some(m), Some(s)] if h < 24 && m < 60 && s < 60)
    };
    let (date, time) = match text.split_once([' ', 't', 'T']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let parts: Vec<_> = date.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    if parts.first().is_none_or(|year| year.len() != 4) || !(1..=days).contains(&day) {
        return false;
    }
    match time {
        None => true,
        Some(time) if text.contains(' ') => clock(time),
        Some(time) => {
            if let Some(time) = time.strip_suffix('Z') {
                return clock(time);
            }
            let Some((time, zone)) = time.split_once(['+', '-']) else { return false };
            let zone = zone.split_once(':').and_then(|(h, m)| Some((number(h, 2)?, number(m, 2)?)));
            zone.is_some_and(|(h, m)| h <= 24 && m < 60) && clock(time)
        }
    }
}

/// A number in base 60 of YAML 1.1, such as `190:20:30` or `1:30.5`.
fn is_base_60(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (places, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut places = places.split(':');
    let is_digit = |b: u8| b.is_ascii_digit();
    let starts_well = places.next().is_some_and(|first| {
        first.bytes().next().is_some_and(is_digit) && first.bytes().all(|b| is_digit(b) || b == b'_')
    });
    let mut count = 0;
    let goes_on = places.all(|place| {
        count += 1;
        matches!(place.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
    });
    starts_well && goes_on && count > 0 && fraction.bytes().all(|b| is_digit(b) || b == b'_')
}

/// Counts columns and decides where a long text may go on in the next line.
struct Folder {
    column: usize,
    indent: usize,
    width: Option<usize>,
    after_space: bool,
}

impl Folder {
    fn new(out: &str, indent: usize, width: Option<usize>) -> Self {
        let column = match width {
            Some(_) => out.rsplit('\n').next().map_or(0, |line| line.chars().count()),
            None => 0,
        };
        Self { column, indent, width, after_space: false }
    }

    /// Whether the space before `rest` becomes a line break.
    fn breaks_before(&self, rest: &str) -> bool {
        self.width.is_some_and(|width| self.column > width) && !self.after_space && !rest.is_empty()
    }

    /// As [`Folder::breaks_before`] where further spaces would be lost at the start of a line.
    fn breaks_before_word(&self, rest: &str) -> bool {
        self.breaks_before(rest) && !rest.starts_with(' ')
    }

    fn break_line(&mut self, out: &mut String) {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', self.indent));
        self.column = self.indent;
        self.after_space = true;
    }

    fn passed(&mut self, c: char, columns: usize) {
        self.column += columns;
        self.after_space = c == ' ';
    }
}

pub(super) fn write_plain(out: &mut String, text: &str, indent: usize, width: Option<usize>) {
    if width.is_none() {
        return out.push_str(text);
    }
    let mut folder = Folder::new(out, indent, width);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == ' ' && folder.breaks_before_word(chars.as_str()) {
            folder.break_line(out);
            continue;
        }
        out.push(c);
        folder.passed(c, 1);
    }
}

pub(super) fn write_single_quoted(out: &mut String, text: &str, indent: usize, width: Option<usize>) {
    out.push('\'');
    let mut folder = Folder::new(out, indent, width);
    let mut chars = text.chars();
    let mut first = true;
    while let Some(c) = chars.next() {
        if c == ' ' && !first && folder.breaks_before_word(chars.as_str()) {
            folder.break_line(out);
            continue;
        }
        first = false;
        if c == '\'' {
            out.push('\'');
            folder.passed(c, 1);
        }
        out.push(c);
        folder.passed(c, 1);
    }
    out.push('\'');
}

pub(super) fn write_double_quoted(out: &mut String, text: &str, indent: usize, width: Option<usize>) {
    out.push('"');
    let mut folder = Folder::new(out, indent, width);
    let mut chars = text.chars();
    let mut first = true;
    while let Some(c) = chars.next() {
        if c == ' ' && !first && folder.breaks_before(chars.as_str()) {
            folder.break_line(out);
            if chars.as_str().starts_with(' ') {
                out.push('\\');
                folder.column += 1;
            }
            continue;
        }
        first = false;
        let before = out.len();
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            c if is_special(c) => {
                // Writing to a string cannot fail.
                let _ = match c as u32 {
                    code @ ..=0xff => write!(out, "\\x{code:02X}"),
                    code @ ..=0xffff => write!(out, "\\u{code:04X}"),
                    code => write!(out, "\\U{code:08X}"),
                };
            }
            c => out.push(c),
        }
        let columns = if out.len() - before == c.len_utf8() { 1 } else { out.len() - before };
        folder.passed(c, columns);
    }
    out.push('"');
}
