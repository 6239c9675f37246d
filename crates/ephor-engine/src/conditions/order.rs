//! `GreaterThan`, `LessThan` and their kin.

use std::cmp::Ordering;

use ephor_expr::Value;
use ephor_expr::scalar::duration::Duration;
use ephor_expr::scalar::number::parse_go_float;
use ephor_expr::scalar::quantity::Quantity;
use ephor_expr::scalar::semver;

/// How `key` compares with `value`: as durations, quantities, numbers, then versions. `None` if they do not.
pub(super) fn compare(key: &Value, value: &Value) -> Option<Ordering> {
    if let Some((key, value)) = durations(key, value) {
        return Some(key.cmp(&value));
    }
    let Value::String(text) = key else { return compare_number(key.as_f64()?, value) };
    if let Value::String(other) = value
        && let Ok(quantity) = Quantity::parse(text)
        && let Ok(other) = Quantity::parse(other)
    {
        return Some(quantity.cmp(&other));
    }
    if let Some(number) = parse_go_float(text) {
        return match durations(&Value::Float(number), value) {
            Some((key, value)) => Some(key.cmp(&value)),
            None => compare_number(number, value),
        };
    }
    let (version, other) = (semver::parse_strict(text)?, semver::parse_strict(value.as_str()?)?);
    Some(semver::compare(&version, &other))
}

fn compare_number(key: f64, value: &Value) -> Option<Ordering> {
    let value = match value {
        Value::String(text) => parse_go_float(text)?,
        number => number.as_f64()?,
    };
    key.partial_cmp(&value)
}

/// Both sides as durations: at least one a duration text, the other one too or a number of seconds.
pub(super) fn durations(key: &Value, value: &Value) -> Option<(Duration, Duration)> {
    match (key, value) {
        (Value::String(key), Value::String(value)) => Some((duration(key)?, duration(value)?)),
        (Value::String(key), value) => Some((duration(key)?, seconds(value)?)),
        (key, Value::String(value)) => Some((seconds(key)?, duration(value)?)),
        _ => None,
    }
}

/// How `key` compares with `value` when numbers are seconds and strings durations.
pub(super) fn compare_durations(key: &Value, value: &Value) -> Option<Ordering> {
    let span = |side: &Value| match side {
        Value::String(text) => Duration::parse(text).ok(),
        number => seconds(number),
    };
    Some(span(key)?.cmp(&span(value)?))
}

/// A duration with a unit; `0` alone is a number here.
fn duration(text: &str) -> Option<Duration> {
    Duration::parse(text).ok().filter(|_| text != "0")
}

/// A number as seconds, its fraction cut off.
fn seconds(value: &Value) -> Option<Duration> {
    value.as_f64().map(|n| Duration::from_secs_f64(n.trunc()))
}
