//! `Equals`.

use ephor_expr::Value;
use ephor_expr::scalar::number::parse_go_float;
use ephor_expr::scalar::quantity::Quantity;
use ephor_expr::scalar::wildcard::matches;

use super::order::durations;
use super::text::MAX_DEPTH;

/// Whether `key` equals `value`: numbers by size, strings as durations, then as quantities, then by wildcards of the
/// value, lists and maps part by part.
pub(super) fn equals(key: &Value, value: &Value) -> bool {
    match (key, value) {
        (Value::Bool(key), Value::Bool(value)) => key == value,
        (Value::Int(_) | Value::Float(_), _) => {
            let value = match value {
                Value::String(text) => parse_go_float(text),
                number => number.as_f64(),
            };
            value.is_some() && key.as_f64() == value
        }
        (Value::String(text), _) => string_equals(text, key, value),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => same(key, value, 0),
        _ => false,
    }
}

fn string_equals(text: &str, key: &Value, value: &Value) -> bool {
    if let Some((left, right)) = durations(key, value) {
        return left == right;
    }
    let Value::String(pattern) = value else { return false };
    match Quantity::parse(text) {
        // A quantity equals nothing but quantities, so `"10"` is not `"1*"`.
        Ok(quantity) => Quantity::parse(pattern).is_ok_and(|other| quantity == other),
        Err(_) => matches(pattern, text),
    }
}

/// Equality of parts, in which a literal integer is never a float.
fn same(a: &Value, b: &Value, depth: usize) -> bool {
    match (a, b) {
        _ if depth > MAX_DEPTH => false,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => false,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(a, b, depth + 1))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|((k, a), (l, b))| k == l && same(a, b, depth + 1))
        }
        (a, b) => a == b,
    }
}
