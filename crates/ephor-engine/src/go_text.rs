//! Values as Go's `%v` prints them, the form in which messages quote them and conditions compare them.

use std::fmt::{self, Write as _};

use ephor_expr::Value;
use ephor_expr::scalar::number::format_g;

/// Deeper parts print as `…`.
const MAX_DEPTH: usize = 256;

/// Prints `map[b:1]`, `[x y]`, `<nil>`, integers as `1000000` and floats as `1e+06`.
pub(crate) struct GoText<'v>(pub(crate) &'v Value);

impl fmt::Display for GoText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, 0)
    }
}

fn write(f: &mut fmt::Formatter<'_>, value: &Value, depth: usize) -> fmt::Result {
    match value {
        _ if depth > MAX_DEPTH => f.write_char('…'),
        Value::Null => f.write_str("<nil>"),
        Value::Bool(b) => write!(f, "{b}"),
        Value::Int(n) => write!(f, "{n}"),
        Value::Float(n) => f.write_str(&format_g(*n)),
        Value::String(s) => f.write_str(s),
        Value::Array(items) => {
            f.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    f.write_char(' ')?;
                }
                write(f, item, depth + 1)?;
            }
            f.write_char(']')
        }
        Value::Object(map) => {
            f.write_str("map[")?;
            for (i, (key, member)) in map.iter().enumerate() {
                if i > 0 {
                    f.write_char(' ')?;
                }
                write!(f, "{key}:")?;
                write(f, member, depth + 1)?;
            }
            f.write_char(']')
        }
    }
}
