//! Strict JSON inside expressions, refused in the reference's words.
//!
//! `serde_json` reads the text; only when it refuses does the walk below find the place again, because the
//! reference's wording (`invalid character 'x' looking for beginning of value`) ends up in front of users.

use crate::value::Value;

/// Why a text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct JsonTextError {
    /// The reference's message.
    pub(crate) message: String,
    /// Byte offset of the first byte that cannot be.
    pub(crate) offset: usize,
}

/// Reads one JSON document, nested at most 128 levels deep.
pub(crate) fn parse(text: &str) -> Result<Value, JsonTextError> {
    Value::from_json(text).map_err(|error| {
        // Texts that the grammar allows fail for their numbers or their depth; the parser's own message says so.
        match (Walk { bytes: text.as_bytes(), at: 0 }).document() {
            Err(Stop::Refused(offset, message)) => JsonTextError { message, offset },
            Ok(()) | Err(Stop::TooDeep) => JsonTextError { message: error.message, offset: 0 },
        }
    })
}

enum Stop {
    Refused(usize, String),
    TooDeep,
}

struct Walk<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Walk<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn refuse(&self, context: &str) -> Stop {
        let message = match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {} {context}", quoted(byte)),
        };
        Stop::Refused(self.at, message)
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn digits(&mut self, context: &str) -> Result<(), Stop> {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.refuse(context));
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn document(&mut self) -> Result<(), Stop> {
        self.value(0)?;
        self.spaces();
        if self.peek().is_some() { Err(self.refuse("after top-level value")) } else { Ok(()) }
    }

    fn value(&mut self, depth: usize) -> Result<(), Stop> {
        if depth > 128 {
            return Err(Stop::TooDeep);
        }
        self.spaces();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.refuse("looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), Stop> {
        self.at += 1;
        self.spaces();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.spaces();
            if self.peek() != Some(b'"') {
                return Err(self.refuse("looking for beginning of object key string"));
            }
            self.string()?;
            self.spaces();
            if self.peek() != Some(b':') {
                return Err(self.refuse("after object key"));
            }
            self.at += 1;
            self.value(depth + 1)?;
            if self.closed(b'}', "after object key:value pair")? {
                return Ok(());
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), Stop> {
        self.at += 1;
        self.spaces();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            if self.closed(b']', "after array element")? {
                return Ok(());
            }
        }
    }

    /// Takes a comma (false) or `end` (true).
    fn closed(&mut self, end: u8, context: &str) -> Result<bool, Stop> {
        self.spaces();
        match self.peek() {
            Some(b) if b == b',' || b == end => {
                self.at += 1;
                Ok(b == end)
            }
            _ => Err(self.refuse(context)),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Stop> {
        for byte in word.bytes() {
            if self.peek() != Some(byte) {
                return Err(self.refuse(&format!("in literal {word} (expecting {})", quoted(byte))));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Stop> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Stop> {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'u') => {
                            self.at += 1;
                            self.hex()?;
                        }
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
                        _ => return Err(self.refuse("in string escape code")),
                    }
                }
                Some(0x20..) => self.at += 1,
                _ => return Err(self.refuse("in string literal")),
            }
        }
    }

    fn hex(&mut self) -> Result<(), Stop> {
        for _ in 0..4 {
            if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                return Err(self.refuse("in \\u hexadecimal character escape"));
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// A byte between single quotes. The reference shows bytes beyond ASCII as the characters of the same number.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        0x7..=0x1f | 0x7f => match byte {
            0x7 => r"'\a'".to_owned(),
            0x8 => r"'\b'".to_owned(),
            0xb => r"'\v'".to_owned(),
            0xc => r"'\f'".to_owned(),
            _ => format!("'\\x{byte:02x}'"),
        },
        0..=0x6 => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_the_character_and_the_place() {
        for (text, offset, message) in [
            ("'a'", 0, r"invalid character '\'' looking for beginning of value"),
            ("", 0, "unexpected end of JSON input"),
            (" ", 1, "unexpected end of JSON input"),
            ("1 2", 2, "invalid character '2' after top-level value"),
            ("01", 1, "invalid character '1' after top-level value"),
            ("abc", 0, "invalid character 'a' looking for beginning of value"),
            ("trux", 3, "invalid character 'x' in literal true (expecting 'e')"),
            ("{a:1}", 1, "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", 5, "invalid character '1' after object key"),
            ("{\"a\":1 \"", 7, "invalid character '\"' after object key:value pair"),
            ("[1 2]", 3, "invalid character '2' after array element"),
            ("[1,]", 3, "invalid character ']' looking for beginning of value"),
            ("-x", 1, "invalid character 'x' in numeric literal"),
            ("1.e", 2, "invalid character 'e' after decimal point in numeric literal"),
            ("1ex", 2, "invalid character 'x' in exponent of numeric literal"),
            ("\"\\q\"", 2, "invalid character 'q' in string escape code"),
            ("\"\\u00g0\"", 5, r"invalid character 'g' in \u hexadecimal character escape"),
            ("\"\n\"", 1, r"invalid character '\n' in string literal"),
            ("é", 0, "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(parse(text), Err(JsonTextError { message: message.to_owned(), offset }), "{text}");
        }
    }

    #[test]
    fn depth_and_range_are_errors() {
        assert!(parse(&"[".repeat(10_000)).is_err());
        assert!(parse("1e999").is_err());
    }
}
