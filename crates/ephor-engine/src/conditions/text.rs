//! Values as texts, and which numbers are floats.

use std::borrow::Cow;

use ephor_expr::Value;
use ephor_expr::scalar::number::format_g;

use crate::go_text::GoText;

/// Values nested deeper than this are neither printed nor compared any further.
pub(super) const MAX_DEPTH: usize = 256;

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
pub fn as_data(value: Value) -> Value {
    if has_int(&value, 0) { floated(value, 0) } else { value }
}

fn has_int(value: &Value, depth: usize) -> bool {
    match value {
        Value::Int(_) => true,
        Value::Array(items) if depth < MAX_DEPTH => items.iter().any(|item| has_int(item, depth + 1)),
        Value::Object(map) if depth < MAX_DEPTH => map.values().any(|member| has_int(member, depth + 1)),
        _ => false,
    }
}

fn floated(mut value: Value, depth: usize) -> Value {
    if let Value::Int(n) = value {
        return Value::Float(n as f64);
    }
    if depth < MAX_DEPTH {
        let convert = |inner: &mut Value| *inner = floated(std::mem::take(inner), depth + 1);
        if let Some(items) = value.as_array_mut() {
            items.iter_mut().for_each(convert);
        } else if let Some(map) = value.as_object_mut() {
            map.iter_mut().for_each(|(_, member)| convert(member));
        }
    }
    value
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
