//! Values as texts, and which numbers are floats.

use std::borrow::Cow;
use std::sync::Arc;

use ephor_expr::Value;
use ephor_expr::scalar::number::format_g;

use crate::go_text::GoText;

/// From this depth on the place in a value is kept on the heap instead of the stack.
const MAX_RECURSION: usize = 64;

/// The text of a key or value that is a scalar: numbers print as floats. `None` for null, lists and maps.
pub(super) fn scalar_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(s) => Some(Cow::Borrowed(s)),
        Value::Bool(b) => Some(Cow::Borrowed(if *b { "true" } else { "false" })),
        Value::Int(_) | Value::Float(_) => value.as_f64().map(|n| Cow::Owned(format_g(n))),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The text of a list's element, as Go prints it: `1e+06`, `<nil>`, `[a b]`, `map[k:v]`.
pub(super) fn element_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(s) => Cow::Borrowed(s),
        other => Cow::Owned(GoText(other).to_string()),
    }
}

/// Marks a value as data: every integer in it becomes a float. What holds none is given back unchanged.
pub fn as_data(mut value: Value) -> Value {
    if has_int(&value, 0) {
        make_floats(&mut value);
    }
    value
}

fn has_int(value: &Value, depth: usize) -> bool {
    match value {
        Value::Int(_) => true,
        Value::Array(_) | Value::Object(_) if depth >= MAX_RECURSION => has_deep_int(value),
        Value::Array(items) => items.iter().any(|item| has_int(item, depth + 1)),
        Value::Object(map) => map.values().any(|member| has_int(member, depth + 1)),
        _ => false,
    }
}

/// [`has_int`] without recursion.
fn has_deep_int(value: &Value) -> bool {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Int(_) => return true,
            Value::Array(items) => pending.extend(items.iter()),
            Value::Object(map) => pending.extend(map.values()),
            _ => {}
        }
    }
    false
}

fn make_floats(value: &mut Value) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Int(n) => *value = Value::Float(*n as f64),
            Value::Array(items) => pending.extend(Arc::make_mut(items).iter_mut()),
            Value::Object(map) => pending.extend(Arc::make_mut(map).iter_mut().map(|(_, member)| member)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_print_as_in_go() {
        let value = Value::from_json(r#"[null,true,1000000,1e6,"x",[1,"a"],{"b":{},"a":[2.5]}]"#).unwrap();
        let texts: Vec<_> = value.as_array().unwrap().iter().map(element_text).collect();
        assert_eq!(texts, ["<nil>", "true", "1000000", "1e+06", "x", "[1 a]", "map[a:[2.5] b:map[]]"]);
    }

    #[test]
    fn scalars_print_numbers_as_floats() {
        assert_eq!(scalar_text(&Value::Int(1_000_000)).unwrap(), "1e+06");
        assert_eq!(scalar_text(&Value::Int(5)).unwrap(), "5");
        assert_eq!(scalar_text(&Value::Bool(true)).unwrap(), "true");
        assert_eq!(scalar_text(&Value::Null), None);
    }

    #[test]
    fn data_has_no_integers_and_is_shared_where_it_had_none() {
        let data = as_data(Value::from_json(r#"{"a":[1,{"b":2}],"c":"x"}"#).unwrap());
        assert!(!has_int(&data, 0));
        assert_eq!(data, Value::from_json(r#"{"a":[1,{"b":2}],"c":"x"}"#).unwrap());
        let Value::Object(before) = Value::from_json(r#"{"a":["x",1.5]}"#).unwrap() else { panic!() };
        let Value::Object(after) = as_data(Value::Object(before.clone())) else { panic!() };
        assert!(std::sync::Arc::ptr_eq(&before, &after));
    }
}
