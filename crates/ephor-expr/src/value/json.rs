//! JSON text to values and back.

use std::fmt::{self, Write as _};

use super::list::MAX_RECURSION;
use super::{Str, Value, deep};

/// Text that is not JSON: where, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {line} column {column}")]
pub struct JsonError {
    /// What is wrong.
    pub message: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        let full = error.to_string();
        let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
        Self { message, line: error.line(), column: error.column() }
    }
}

impl Value {
    /// Parses one JSON document. Nesting is limited to 127 levels; duplicate keys: the last wins.
    pub fn from_json(text: &str) -> Result<Value, JsonError> {
        Ok(serde_json::from_str(text)?)
    }

    /// The same, with nesting up to `depth` levels, of which there are 127 at least.
    pub fn from_json_nested(text: &str, depth: usize) -> Result<Value, JsonError> {
        match Self::from_json(text) {
            Err(_) if deep::levels(text) > deep::USUAL => deep::parse(text, depth),
            read => read,
        }
    }

    /// Compact JSON as the reference prints it: keys sorted, `<`, `>`, `&` and the two Unicode line separators
    /// escaped, integral floats without fraction, exponents below 1e-6 and from 1e21 on.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        write_value(&mut out, self, None, 0);
        out
    }

    /// JSON indented by `indent` spaces a level, otherwise as [`Value::to_json`].
    pub fn to_json_pretty(&self, indent: usize) -> String {
        let mut out = String::new();
        write_value(&mut out, self, Some((indent, 0)), 0);
        out
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// Spaces a level, and the level; `None` for compact text.
type Layout = Option<(usize, usize)>;

fn newline(out: &mut String, layout: Layout) {
    if let Some((step, depth)) = layout {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', step * depth));
    }
}

fn below(layout: Layout) -> Layout {
    layout.map(|(step, depth)| (step, depth + 1))
}

fn write_value(out: &mut String, value: &Value, layout: Layout, depth: usize) {
    match value {
        _ if depth >= MAX_RECURSION => write_deep(out, value, layout),
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                begin_item(out, i, below(layout));
                write_value(out, item, below(layout), depth + 1);
            }
            newline(out, layout);
            out.push(']');
        }
        Value::Object(map) if !map.is_empty() => {
            out.push('{');
            for (i, (key, member)) in map.iter().enumerate() {
                begin_member(out, i, key, below(layout));
                write_value(out, member, below(layout), depth + 1);
            }
            newline(out, layout);
            out.push('}');
        }
        flat => write_flat(out, flat),
    }
}

/// A scalar or an empty container.
fn write_flat(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(n) => {
            let _ = write!(out, "{n}");
        }
        Value::Float(f) => write_float(out, *f),
        Value::String(s) => write_string(out, s),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn begin_item(out: &mut String, i: usize, layout: Layout) {
    if i > 0 {
        out.push(',');
    }
    newline(out, layout);
}

fn begin_member(out: &mut String, i: usize, key: &str, layout: Layout) {
    begin_item(out, i, layout);
    write_string(out, key);
    out.push(':');
    if layout.is_some() {
        out.push(' ');
    }
}

/// A container that is being written: the items or members that are left, and the layout around it.
enum Open<'v> {
    Array(std::iter::Enumerate<std::slice::Iter<'v, Value>>, Layout),
    Object(std::iter::Enumerate<Members<'v>>, Layout),
}

type Members<'v> = std::slice::Iter<'v, (Str, Value)>;

/// [`write_value`] without recursion.
fn write_deep(out: &mut String, value: &Value, layout: Layout) {
    let mut open: Vec<Open<'_>> = Vec::new();
    let (mut value, mut layout) = (value, layout);
    loop {
        match value {
            Value::Array(items) if !items.is_empty() => {
                out.push('[');
                open.push(Open::Array(items.iter().enumerate(), layout));
            }
            Value::Object(map) if !map.is_empty() => {
                out.push('{');
                open.push(Open::Object(map.entries().iter().enumerate(), layout));
            }
            flat => write_flat(out, flat),
        }
        loop {
            let Some(innermost) = open.last_mut() else { return };
            match innermost {
                Open::Array(items, around) => {
                    if let Some((i, item)) = items.next() {
                        (value, layout) = (item, below(*around));
                        begin_item(out, i, layout);
                        break;
                    }
                    newline(out, *around);
                    out.push(']');
                }
                Open::Object(members, around) => {
                    if let Some((i, (key, member))) = members.next() {
                        (value, layout) = (member, below(*around));
                        begin_member(out, i, key, layout);
                        break;
                    }
                    newline(out, *around);
                    out.push('}');
                }
            }
            open.pop();
        }
    }
}

/// Go's `encoding/json` number text: shortest digits, plain notation between 1e-6 and 1e21, and an exponent of
/// at least one digit (`1e-7`, `1e+21`) outside.
fn write_float(out: &mut String, f: f64) {
    let magnitude = f.abs();
    if magnitude == 0.0 {
        out.push_str(if f.is_sign_negative() { "-0" } else { "0" });
    } else if !f.is_finite() {
        out.push_str("null");
    } else if (1e-6..1e21).contains(&magnitude) {
        let _ = write!(out, "{f}");
    } else {
        let text = format!("{f:e}");
        match text.split_once('e') {
            Some((digits, exp)) if !exp.starts_with('-') => {
                let _ = write!(out, "{digits}e+{exp}");
            }
            _ => out.push_str(&text),
        }
    }
}

fn write_string(out: &mut String, s: &str) {
    out.push('"');
    let mut plain = 0;
    for (i, c) in s.char_indices() {
        let escape: Option<&str> = match c {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            '\u{8}' => Some("\\b"),
            '\u{c}' => Some("\\f"),
            '<' => Some("\\u003c"),
            '>' => Some("\\u003e"),
            '&' => Some("\\u0026"),
            '\u{2028}' => Some("\\u2028"),
            '\u{2029}' => Some("\\u2029"),
            c if (c as u32) < 0x20 => None,
            _ => continue,
        };
        out.push_str(s.get(plain..i).unwrap_or_default());
        match escape {
            Some(text) => out.push_str(text),
            None => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
        }
        plain = i + c.len_utf8();
    }
    out.push_str(s.get(plain..).unwrap_or_default());
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_the_reference_prints_them() {
        for (value, want) in [
            (Value::Int(1_000_000), "1000000"),
            (Value::Float(2.0), "2"),
            (Value::Float(1e20), "100000000000000000000"),
            (Value::Float(1e21), "1e+21"),
            (Value::Float(1e-7), "1e-7"),
            (Value::Float(0.000_001), "0.000001"),
            (Value::Float(-0.5), "-0.5"),
        ] {
            assert_eq!(value.to_json(), want);
        }
    }

    #[test]
    fn text_round_trips() {
        let text = r#"{"a":[1,2.5,null,true,"x\"\\\n\u0001"],"b":{},"c":[]}"#;
        let value = Value::from_json(text).unwrap();
        assert_eq!(value.to_json(), text);
        assert_eq!(Value::from_json(&value.to_json_pretty(2)).unwrap(), value);
    }

    #[test]
    fn markup_characters_are_escaped() {
        assert_eq!(Value::from("<&>").to_json(), r#""\u003c\u0026\u003e""#);
    }

    #[test]
    fn deep_values_are_written_without_deep_recursion() {
        let deep = (0..100_000).fold(Value::array(vec![]), |inner, level| {
            if level % 2 == 0 { Value::from([("a", inner), ("b", Value::Null)]) } else { Value::array(vec![inner]) }
        });
        let text = deep.to_json();
        assert!(text.starts_with(r#"[{"a":[{"a":["#) && text.ends_with(r#""b":null}],"b":null}]"#), "{}", text.len());
        let shallow = (0..50).fold(Value::array(vec![]), |inner, _| Value::from([("a", Value::array(vec![inner]))]));
        assert_eq!(Value::from_json(&shallow.to_json()), Value::from_json(&shallow.to_json_pretty(2)));
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_crash() {
        assert!(Value::from_json(&"[".repeat(100_000)).is_err());
    }
}
