//! Values as Go's `%v` prints them, the form in which messages quote them and conditions compare them.

use std::fmt;

use ephor_expr::Value;
use ephor_expr::scalar::number::format_g;

/// Prints `map[b:1]`, `[x y]`, `<nil>`, integers as `1000000` and floats as `1e+06`.
pub(crate) struct GoText<'v>(pub(crate) &'v Value);

impl fmt::Display for GoText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is still to print, the next last: values nest deeper than the stack of a thread.
        let mut pending = vec![Piece::Value(self.0)];
        while let Some(piece) = pending.pop() {
            match piece {
                Piece::Text(text) => f.write_str(text)?,
                Piece::Value(Value::Array(items)) => {
                    f.write_str("[")?;
                    pending.push(Piece::Text("]"));
                    for (i, item) in items.iter().enumerate().rev() {
                        pending.push(Piece::Value(item));
                        pending.extend((i > 0).then_some(Piece::Text(" ")));
                    }
                }
                Piece::Value(Value::Object(map)) => {
                    f.write_str("map[")?;
                    pending.push(Piece::Text("]"));
                    for (i, (key, member)) in map.iter().enumerate().rev() {
                        pending.extend([Piece::Value(member), Piece::Text(":"), Piece::Text(key)]);
                        pending.extend((i > 0).then_some(Piece::Text(" ")));
                    }
                }
                Piece::Value(scalar) => write_scalar(f, scalar)?,
            }
        }
        Ok(())
    }
}

enum Piece<'v> {
    Text(&'v str),
    Value(&'v Value),
}

fn write_scalar(f: &mut fmt::Formatter<'_>, scalar: &Value) -> fmt::Result {
    match scalar {
        Value::Bool(b) => write!(f, "{b}"),
        Value::Int(n) => write!(f, "{n}"),
        Value::Float(n) => f.write_str(&format_g(*n)),
        Value::String(s) => f.write_str(s),
        Value::Null | Value::Array(_) | Value::Object(_) => f.write_str("<nil>"),
    }
}
