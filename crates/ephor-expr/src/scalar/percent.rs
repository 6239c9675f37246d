//! Percent-encoding in URLs (RFC 3986).
//!
//! [`encode`] takes the set of bytes to encode from the caller, because each part of a URL has its own. [`decode`] is
//! strict: the `percent-encoding` crate passes incomplete escapes through, which lets two readers of one URL disagree.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

pub use percent_encoding::AsciiSet;

/// Everything but the unreserved characters of RFC 3986: letters, digits and `-._~`.
pub const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `text` with the bytes of `set` and all non-ASCII bytes encoded, in upper case.
pub fn encode<'t>(text: &'t str, set: &'static AsciiSet) -> impl fmt::Display + use<'t> {
    utf8_percent_encode(text, set)
}

/// Decodes escapes, and in queries `+` to a space. `None` if an escape is incomplete.
pub fn decode(text: &str, plus_is_space: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_escapes_are_errors() {
        for (text, plus_is_space, want) in [
            ("a%20b", false, Some("a b")),
            ("a+b", true, Some("a b")),
            ("a+b", false, Some("a+b")),
            ("%C3%a9", false, Some("\u{e9}")),
            ("%", false, None),
            ("%2", false, None),
            ("%zz", false, None),
            ("%+1", false, None),
        ] {
            assert_eq!(decode(text, plus_is_space), want.map(|text| text.as_bytes().to_vec()), "{text}");
        }
    }

    #[test]
    fn reserved_characters_and_bytes_outside_of_ascii_are_encoded() {
        assert_eq!(encode("a-._~/b \u{e9}%", RESERVED).to_string(), "a-._~%2Fb%20%C3%A9%25");
    }
}
