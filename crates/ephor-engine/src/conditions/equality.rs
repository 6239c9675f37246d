//! `Equals`.

use ephor_expr::Value;
use ephor_expr::scalar::number::parse_go_float;
use ephor_expr::scalar::quantity::Quantity;

use super::order::durations;
use super::work::{Decided, Work};

/// Whether `key` equals `value`: numbers by size, strings as durations, then as quantities, then by wildcards of the
/// value, lists and maps part by part.
pub(super) fn equals(key: &Value, value: &Value, work: Work<'_>) -> Decided<bool> {
    Ok(match (key, value) {
        (Value::Bool(key), Value::Bool(value)) => key == value,
        (Value::Int(_) | Value::Float(_), _) => {
            let value = match value {
                Value::String(text) => parse_go_float(text),
                number => number.as_f64(),
            };
            value.is_some() && key.as_f64() == value
        }
        (Value::String(text), _) => string_equals(text, key, value, work)?,
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => same(key, value, work)?,
        _ => false,
    })
}

fn string_equals(text: &str, key: &Value, value: &Value, work: Work<'_>) -> Decided<bool> {
    if let Some((left, right)) = durations(key, value) {
        return Ok(left == right);
    }
    let Value::String(pattern) = value else { return Ok(false) };
    match Quantity::parse(text) {
        // A quantity equals nothing but quantities, so `"10"` is not `"1*"`.
        Ok(quantity) => Ok(Quantity::parse(pattern).is_ok_and(|other| quantity == other)),
        Err(_) => work.fits(pattern, text),
    }
}

/// Equality of parts, in which a literal integer is never a float.
fn same(a: &Value, b: &Value, work: Work<'_>) -> Decided<bool> {
    // The lists and maps that are still to compare: values nest deeper than the stack of a thread.
    let mut pending = Vec::new();
    let mut same = part(a, b, &mut pending, work)?;
    while same && let Some((a, b)) = pending.pop() {
        same = parts(a, b, &mut pending, work)?;
    }
    Ok(same)
}

/// What is left to compare.
type Pairs<'v> = Vec<(&'v Value, &'v Value)>;

/// Whether two values are the same so far; what lists and maps hold is left to `pending`.
fn part<'v>(a: &'v Value, b: &'v Value, pending: &mut Pairs<'v>, work: Work<'_>) -> Decided<bool> {
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => false,
        (Value::String(a), Value::String(b)) => work.same(a, b)?,
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            pending.push((a, b));
            true
        }
        (a, b) => a == b,
    })
}

/// The same for what two lists or two maps hold.
fn parts<'v>(a: &'v Value, b: &'v Value, pending: &mut Pairs<'v>, work: Work<'_>) -> Decided<bool> {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            work.budget.charge_steps(a.len() as u64)?;
            let mut pairs = a.iter().zip(b.iter());
            Ok(a.len() == b.len() && pairs.try_fold(true, |all, (a, b)| Ok(all && part(a, b, pending, work)?))?)
        }
        (Value::Object(a), Value::Object(b)) => {
            work.budget.charge_steps(a.len() as u64)?;
            let mut pairs = a.iter().zip(b.iter());
            Ok(a.len() == b.len()
                && pairs.try_fold(true, |all, ((k, a), (l, b))| Ok(all && k == l && part(a, b, pending, work)?))?)
        }
        _ => Ok(false),
    }
}
