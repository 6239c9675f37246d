//! Literals: numbers, strings and bytes as texts write them.

use crate::Str;

/// A constant of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Str),
    Bytes(Vec<u8>),
}

/// An integer in decimal or, after `0x`, hexadecimal digits.
pub(super) fn int(text: &str, negative: bool) -> Option<i64> {
    let (digits, radix) = radix(text);
    let magnitude = i128::from(u64::from_str_radix(digits, radix).ok()?);
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// An unsigned integer with its suffix.
pub(super) fn uint(text: &str) -> Option<u64> {
    let (digits, radix) = radix(text.trim_end_matches(['u', 'U']));
    u64::from_str_radix(digits, radix).ok()
}

/// A finite floating point number.
pub(super) fn double(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

fn radix(text: &str) -> (&str, u32) {
    text.strip_prefix("0x").map_or((text, 10), |hex| (hex, 16))
}

/// The text of a string literal, or why it has none.
pub(super) fn string(text: &str) -> Result<Str, &'static str> {
    let raw = text.starts_with(['r', 'R']);
    let inner = content(text.trim_start_matches(['r', 'R']));
    if raw || !inner.contains(['\\', '\r']) {
        return Ok(inner.into());
    }
    let mut out = String::with_capacity(inner.len());
    unescape(inner, |piece| match piece {
        Piece::Char(c) | Piece::Unicode(c) => {
            out.push(c);
            Ok(())
        }
        // In text an octet names the code point of its number.
        Piece::Octet(n) => {
            out.push(char::from(n));
            Ok(())
        }
    })?;
    Ok(out.into())
}

/// The bytes of a bytes literal, or why it has none.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    let text = text.trim_start_matches(['b', 'B']);
    let raw = text.starts_with(['r', 'R']);
    let inner = content(text.trim_start_matches(['r', 'R']));
    if raw {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inner.len());
    unescape(inner, |piece| match piece {
        Piece::Char(c) => {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            Ok(())
        }
        Piece::Octet(n) => {
            out.push(n);
            Ok(())
        }
        Piece::Unicode(_) => Err("unable to unescape string"),
    })?;
    Ok(out)
}

/// What stands between the quotes.
fn content(text: &str) -> &str {
    for quote in ["\"\"\"", "'''", "\"", "'"] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    text
}

enum Piece {
    Char(char),
    Octet(u8),
    Unicode(char),
}

fn unescape(text: &str, mut push: impl FnMut(Piece) -> Result<(), &'static str>) -> Result<(), &'static str> {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            // Line ends are line feeds, whatever the editor wrote.
            if c == '\r' {
                if rest.as_str().starts_with('\n') {
                    rest.next();
                }
                push(Piece::Char('\n'))?;
            } else {
                push(Piece::Char(c))?;
            }
            continue;
        }
        let escape = rest.next().ok_or("unable to unescape string")?;
        let mut digits = |count: usize, radix: u32, first: u32| {
            (0..count).try_fold(first, |n, _| Some(n * radix + rest.next()?.to_digit(radix)?))
        };
        let unicode = |n: Option<u32>| n.and_then(char::from_u32).ok_or("invalid unicode code point");
        push(match escape {
            'a' => Piece::Char('\u{7}'),
            'b' => Piece::Char('\u{8}'),
            'f' => Piece::Char('\u{c}'),
            'n' => Piece::Char('\n'),
            'r' => Piece::Char('\r'),
            't' => Piece::Char('\t'),
            'v' => Piece::Char('\u{b}'),
            'x' | 'X' => Piece::Octet(digits(2, 16, 0).unwrap_or_default() as u8),
            'u' => Piece::Unicode(unicode(digits(4, 16, 0))?),
            'U' => Piece::Unicode(unicode(digits(8, 16, 0))?),
            '0'..='3' => Piece::Octet(digits(2, 8, escape.to_digit(8).unwrap_or_default()).unwrap_or_default() as u8),
            other => Piece::Char(other),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_code_points_in_text_and_octets_in_bytes() {
        assert_eq!(string(r"'\xff\n\101'").unwrap(), "ÿ\nA");
        assert_eq!(bytes(r"b'\xff\101é'").unwrap(), [0xff, 0x41, 0xc3, 0xa9]);
        assert_eq!(string(r"r'\n'").unwrap(), r"\n");
        assert_eq!(string(r"'\ud800'"), Err("invalid unicode code point"));
        assert_eq!(int("9223372036854775808", true), Some(i64::MIN));
        assert_eq!(int("9223372036854775808", false), None);
        assert_eq!(uint("0xffu"), Some(255));
    }
}
