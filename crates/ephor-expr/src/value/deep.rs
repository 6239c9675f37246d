//! JSON of any depth, read with a stack on the heap.
//!
//! The usual reader ([`Value::from_json`]) calls itself for each level and stops at [`USUAL`]. An API server reads
//! 10,000 levels, and what it lets a user write has to be read here too. Strings and numbers are read by the usual
//! reader, so both agree on them.

use super::json::JsonError;
use super::{Map, Str, Value};

/// The levels that the usual reader takes.
pub(super) const USUAL: usize = 127;

/// How deep a text is nested, if it is JSON.
pub(super) fn levels(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        if in_string {
            in_string = byte != b'"' || escaped;
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Reads one document.
pub(super) fn parse(text: &str, depth: usize) -> Result<Value, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let mut open: Vec<Open> = Vec::new();
    'value: loop {
        let mut value = match reader.peek() {
            Some(b'[') => {
                reader.at += 1;
                reader.deeper(&open, depth)?;
                if reader.peek() != Some(b']') {
                    open.push(Open::Array(Vec::new()));
                    continue 'value;
                }
                reader.at += 1;
                Value::array(Vec::new())
            }
            Some(b'{') => {
                reader.at += 1;
                reader.deeper(&open, depth)?;
                if reader.peek() != Some(b'}') {
                    let key = reader.key()?;
                    open.push(Open::Object(Vec::new(), key));
                    continue 'value;
                }
                reader.at += 1;
                Value::object(Map::new())
            }
            _ => reader.scalar()?,
        };
        // The value is complete, and with it perhaps what it stands in.
        loop {
            match (open.pop(), reader.peek()) {
                (None, None) => return Ok(value),
                (None, Some(_)) => return Err(reader.error("trailing characters")),
                (Some(Open::Array(mut items)), Some(b',')) => {
                    reader.at += 1;
                    items.push(value);
                    open.push(Open::Array(items));
                    continue 'value;
                }
                (Some(Open::Array(mut items)), Some(b']')) => {
                    reader.at += 1;
                    items.push(value);
                    value = Value::array(items);
                }
                (Some(Open::Object(mut members, key)), Some(b',')) => {
                    reader.at += 1;
                    members.push((key, value));
                    let key = reader.key()?;
                    open.push(Open::Object(members, key));
                    continue 'value;
                }
                (Some(Open::Object(mut members, key)), Some(b'}')) => {
                    reader.at += 1;
                    members.push((key, value));
                    value = Value::object(members.into_iter().collect());
                }
                (Some(Open::Array(_)), _) => return Err(reader.error("expected `,` or `]`")),
                (Some(Open::Object(..)), _) => return Err(reader.error("expected `,` or `}`")),
            }
        }
    }
}

impl Value {
    /// Whether arrays and objects stand in each other in more levels than this. Decoding a value into types and
    /// encoding types that hold one take the stack for each level, so what strangers nest is asked first.
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        let mut pending = vec![(self, 0)];
        while let Some((value, above)) = pending.pop() {
            match value {
                Value::Array(_) | Value::Object(_) if above >= levels => return true,
                Value::Array(items) => pending.extend(items.iter().map(|item| (item, above + 1))),
                Value::Object(map) => pending.extend(map.values().map(|item| (item, above + 1))),
                _ => {}
            }
        }
        false
    }
}

/// What is not closed yet.
enum Open {
    Array(Vec<Value>),
    /// The members so far, and the key of the next.
    Object(Vec<(Str, Value)>, Str),
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += spaces;
        rest.get(spaces).copied()
    }

    fn deeper(&self, open: &[Open], depth: usize) -> Result<(), JsonError> {
        if open.len() < depth {
            return Ok(());
        }
        Err(self.error(format!("more than {depth} levels of nesting")))
    }

    fn key(&mut self) -> Result<Str, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("key must be a string"));
        }
        let Value::String(key) = self.scalar()? else { return Err(self.error("key must be a string")) };
        if self.peek() != Some(b':') {
            return Err(self.error("expected `:`"));
        }
        self.at += 1;
        Ok(key)
    }

    /// A string, a number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Result<Value, JsonError> {
        let first = self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = if first == Some(b'"') {
            let mut escaped = false;
            let end = rest.bytes().skip(1).position(|byte| {
                let ends = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
            let plain = rest.bytes().position(|byte| !plain(byte)).unwrap_or(rest.len());
            // What is no value is read too, for the usual reader's words about it.
            if plain == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { plain }
        };
        let value = serde_json::from_str(rest.get(..length).unwrap_or_default());
        let value = value.map_err(|error: serde_json::Error| self.error(JsonError::from(error).message))?;
        self.at += length;
        Ok(value)
    }

    fn error(&self, message: impl Into<String>) -> JsonError {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let (message, column) = (message.into(), line.len() + 1);
        JsonError { message, line: before.bytes().filter(|byte| *byte == b'\n').count() + 1, column }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nested(depth: usize, inner: &str) -> String {
        let (mut text, mut end) = (String::new(), String::new());
        for level in 0..depth {
            text.push_str(if level % 2 == 0 { "[1, " } else { r#"{"a\"]": "# });
            end.insert(0, if level % 2 == 0 { ']' } else { '}' });
        }
        text + inner + &end
    }

    #[test]
    fn depth_is_counted_outside_of_strings() {
        for (text, want) in [("1", 0), ("[]", 1), (r#"["[[[\"[["]"#, 1), (&nested(300, "{}"), 301)] {
            assert_eq!(levels(text), want, "{text}");
        }
    }

    #[test]
    fn depth_of_values_is_told() {
        let deep = parse(&nested(10_000, "[1]"), 10_001).unwrap();
        for (value, levels, want) in [(&deep, 10_000, true), (&deep, 10_001, false), (&Value::Int(1), 0, false)] {
            assert_eq!(value.is_deeper_than(levels), want, "{levels}");
        }
    }

    #[test]
    fn faults_are_errors_with_their_place() {
        for (text, want) in [
            ("", "EOF while parsing a value at line 1 column 1"),
            ("[1,]", "expected value at line 1 column 4"),
            ("[1\n 2]", "expected `,` or `]` at line 2 column 2"),
            ("{\"a\" 1}", "expected `:` at line 1 column 6"),
            ("{1:1}", "key must be a string at line 1 column 2"),
            ("{\"a\":1,}", "key must be a string at line 1 column 8"),
            ("[1] x", "trailing characters at line 1 column 5"),
            ("[\"a", "EOF while parsing a string at line 1 column 2"),
            ("[trux]", "expected ident at line 1 column 2"),
            ("[[[[]]]]", "more than 3 levels of nesting at line 1 column 5"),
        ] {
            assert_eq!(parse(text, 3).map_err(|error| error.to_string()), Err(want.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn both_readers_agree(text in r#"[\[\]{}:,"\\au0-9.eE+ tfn-]{0,24}"#) {
            let usual = Value::from_json(&text);
            let deep = parse(&text, USUAL);
            prop_assert_eq!(usual.as_ref().ok(), deep.as_ref().ok());
        }

        #[test]
        fn documents_are_read_alike(depth in 0_usize..100, inner in "[1-9][0-9]{0,4}|\"[a-z]{0,30}\"|null|\\{\"b\":1,\"a\":2,\"b\":3\\}") {
            let text = nested(depth, &inner);
            prop_assert_eq!(parse(&text, 200).unwrap(), Value::from_json(&text).unwrap());
        }
    }
}
