//! Text into tokens.
//!
//! Each token has its position in code points. What is no token is reported and skipped in the way of the reference's
//! lexer: up to and including the character at which no token could go on.

use super::error::Issue;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An operator, a bracket or a reserved word (`in`, `true`, `false`, `null`), by its text.
    Symbol(&'static str),
    Identifier,
    /// An identifier in backquotes.
    Quoted,
    Int,
    Uint,
    Float,
    String,
    Bytes,
    End,
}

/// A token and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// In code points.
    pub(super) offset: usize,
    /// In bytes.
    pub(super) start: usize,
}

const SYMBOLS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%",
];
const WORDS: [&str; 4] = ["in", "true", "false", "null"];

/// Splits `text`; the last token is [`Kind::End`].
pub(super) fn tokenize<'a>(text: &'a str, issues: &mut Vec<Issue>) -> Vec<Token<'a>> {
    let mut tokens = Vec::new();
    let (mut rest, mut offset) = (text, 0);
    loop {
        let skipped = blank(rest);
        let (space, tail) = split(rest, skipped);
        offset += space.chars().count();
        rest = tail;
        let start = text.len() - rest.len();
        if rest.is_empty() {
            tokens.push(Token { kind: Kind::End, text: "<EOF>", offset, start });
            return tokens;
        }
        let length = match token(rest) {
            Ok((kind, length)) => {
                tokens.push(Token { kind, text: split(rest, length).0, offset, start });
                length
            }
            Err(length) => {
                let bad = split(rest, length).0;
                let shown = bad.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
                let message = format!("Syntax error: token recognition error at: '{shown}'");
                issues.push(Issue { offset: Some(offset), message });
                length
            }
        };
        let (done, tail) = split(rest, length);
        offset += done.chars().count();
        rest = tail;
    }
}

fn split(text: &str, at: usize) -> (&str, &str) {
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// The length of white space and comments at the start.
fn blank(text: &str) -> usize {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
        if !rest.starts_with("//") {
            return text.len() - rest.len();
        }
        rest = rest.find('\n').map_or("", |end| split(rest, end).1);
    }
}

/// The longest token at the start of `text`, or the length of what is none.
fn token(text: &str) -> Result<(Kind, usize), usize> {
    let bytes = text.as_bytes();
    let first = bytes.first().copied().unwrap_or_default();
    if first.is_ascii_alphabetic() || first == b'_' {
        if let Some((kind, prefix)) = string_prefix(bytes)
            && let Ok(length) = string(split(text, prefix.len).1, prefix.raw)
        {
            return Ok((kind, prefix.len + length));
        }
        let length = bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let word = split(text, length).0;
        let reserved = WORDS.into_iter().find(|w| *w == word);
        return Ok((reserved.map_or(Kind::Identifier, Kind::Symbol), length));
    }
    let digit_after_dot = first == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit);
    if first.is_ascii_digit() || digit_after_dot {
        return Ok(number(bytes));
    }
    if first == b'"' || first == b'\'' {
        return string(text, false).map(|length| (Kind::String, length));
    }
    if first == b'`' {
        let inside = |b: &u8| b.is_ascii_alphanumeric() || b"_.-/ ".contains(b);
        let length = bytes.iter().skip(1).take_while(|b| inside(b)).count();
        return match bytes.get(1 + length) {
            Some(b'`') if length > 0 => Ok((Kind::Quoted, length + 2)),
            _ => Err(through(text, 1 + length)),
        };
    }
    match SYMBOLS.into_iter().find(|symbol| text.starts_with(symbol)) {
        Some(symbol) => Ok((Kind::Symbol(symbol), symbol.len())),
        // `=`, `&` and `|` begin symbols of two characters.
        None if b"=&|".contains(&first) => Err(through(text, 1)),
        None => Err(through(text, 0)),
    }
}

/// The offset after the character at byte `at`, or the end.
fn through(text: &str, at: usize) -> usize {
    split(text, at).1.chars().next().map_or(text.len(), |c| at + c.len_utf8())
}

struct Prefix {
    len: usize,
    raw: bool,
}

fn string_prefix(bytes: &[u8]) -> Option<(Kind, Prefix)> {
    let lower = |i: usize| bytes.get(i).map(u8::to_ascii_lowercase);
    let quote = |i: usize| matches!(bytes.get(i), Some(b'"' | b'\''));
    match (lower(0), lower(1)) {
        (Some(b'b'), Some(b'r')) if quote(2) => Some((Kind::Bytes, Prefix { len: 2, raw: true })),
        (Some(b'b'), _) if quote(1) => Some((Kind::Bytes, Prefix { len: 1, raw: false })),
        (Some(b'r'), _) if quote(1) => Some((Kind::String, Prefix { len: 1, raw: true })),
        _ => None,
    }
}

fn number(bytes: &[u8]) -> (Kind, usize) {
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let unsigned = |end: usize| matches!(bytes.get(end), Some(b'u' | b'U'));
    if bytes.starts_with(b"0x") {
        let hex = bytes.iter().skip(2).take_while(|b| b.is_ascii_hexdigit()).count();
        if hex > 0 {
            return if unsigned(2 + hex) { (Kind::Uint, 3 + hex) } else { (Kind::Int, 2 + hex) };
        }
    }
    let whole = digits(0);
    let mut end = whole;
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    if end > whole {
        (Kind::Float, end)
    } else if unsigned(end) {
        (Kind::Uint, end + 1)
    } else {
        (Kind::Int, end)
    }
}

/// The length of the string literal at the start, or of what the reference skips if it is none.
fn string(text: &str, raw: bool) -> Result<usize, usize> {
    let quote = if text.starts_with('"') { "\"" } else { "'" };
    let triple = if text.starts_with('"') { "\"\"\"" } else { "'''" };
    if text.starts_with(triple)
        && let Ok(length) = body(text, 3, triple, raw)
    {
        return Ok(length);
    }
    body(text, 1, quote, raw)
}

fn body(text: &str, start: usize, end: &str, raw: bool) -> Result<usize, usize> {
    let mut at = start;
    loop {
        let rest = split(text, at).1;
        if rest.starts_with(end) {
            return Ok(at + end.len());
        }
        let Some(c) = rest.chars().next() else {
            return Err(text.len());
        };
        match c {
            '\\' if !raw => at += escape(rest).map_err(|bad| through(text, at + bad))?,
            '\n' | '\r' if end.len() == 1 => return Err(through(text, at)),
            _ => at += c.len_utf8(),
        }
    }
}

/// The length of the escape sequence at the start, or the offset of the character that spoils it.
fn escape(text: &str) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    let run = |count: usize, digit: fn(&u8) -> bool| {
        let good = bytes.iter().skip(2).take(count).take_while(|b| digit(b)).count();
        if good == count { Ok(2 + count) } else { Err(2 + good) }
    };
    match bytes.get(1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => Ok(2),
        Some(b'x' | b'X') => run(2, u8::is_ascii_hexdigit),
        Some(b'u') => run(4, u8::is_ascii_hexdigit),
        Some(b'U') => run(8, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => run(2, |b| (b'0'..=b'7').contains(b)),
        _ => Err(1),
    }
}
