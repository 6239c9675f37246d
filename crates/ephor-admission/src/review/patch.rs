//! The JSON patch between two objects.

use ephor_expr::{Map, Value};

/// The operations (RFC 6902) that make `before` into `after`; empty if they are the same.
///
/// Objects are compared member by member and lists of one length item by item; other lists are replaced as a whole, for
/// the order of items means something, and so is what differs deeper than [`MAX_DEPTH`].
pub(super) fn between(before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    compare(before, after, MAX_DEPTH, &mut String::new(), &mut operations);
    operations
}

/// The levels that are compared part by part.
const MAX_DEPTH: usize = 256;

fn compare(before: &Value, after: &Value, depth: usize, path: &mut String, out: &mut Vec<Value>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) if std::sync::Arc::ptr_eq(old, new) => {}
        (Value::Object(old), Value::Object(new)) if depth > 0 => members(old, new, depth - 1, path, out),
        // What both share is the same, however deep it is.
        (Value::Array(old), Value::Array(new)) if std::sync::Arc::ptr_eq(old, new) => {}
        (Value::Array(old), Value::Array(new)) if depth > 0 && old.len() == new.len() => {
            for (i, (old, new)) in old.iter().zip(new.iter()).enumerate() {
                at(path, &i.to_string(), |path| compare(old, new, depth - 1, path, out));
            }
        }
        _ if before == after => {}
        _ => out.push(operation("replace", path, Some(after))),
    }
}

fn members(old: &Map, new: &Map, depth: usize, path: &mut String, out: &mut Vec<Value>) {
    for key in old.keys().filter(|key| !new.contains_key(key)) {
        at(path, key, |path| out.push(operation("remove", path, None)));
    }
    for (key, after) in new.iter() {
        at(path, key, |path| match old.get(key) {
            Some(before) => compare(before, after, depth, path, out),
            None => out.push(operation("add", path, Some(after))),
        });
    }
}

fn at(path: &mut String, step: &str, f: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    for c in step.chars() {
        match c {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            c => path.push(c),
        }
    }
    f(path);
    path.truncate(length);
}

fn operation(op: &'static str, path: &str, value: Option<&Value>) -> Value {
    let mut members = Map::with_capacity(3);
    members.insert("op", op);
    members.insert("path", path);
    if let Some(value) = value {
        members.insert("value", value.clone());
    }
    members.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_differences_are_replaced_from_where_comparing_ends() {
        let nested = |inner: i64| (0..10_000).fold(Value::Int(inner), |inner, _| Value::array(vec![inner]));
        let patch = between(&nested(1), &nested(2));
        assert_eq!(patch.len(), 1);
        assert_eq!(patch[0].str_at(&["path"]).unwrap(), "/0".repeat(MAX_DEPTH));
        assert!(between(&nested(1), &nested(1)).is_empty());
    }

    #[test]
    fn patches_touch_only_what_differs() {
        for (before, after, want) in [
            ("{}", "{}", "[]"),
            (
                r#"{"a":1,"b":[1,{"c":2}]}"#,
                r#"{"a":1,"b":[1,{"c":3}]}"#,
                r#"[{"op":"replace","path":"/b/1/c","value":3}]"#,
            ),
            (r#"{"a":[1]}"#, r#"{"a":[2,1]}"#, r#"[{"op":"replace","path":"/a","value":[2,1]}]"#),
            (
                r#"{"a":{"x/y":1},"b":2}"#,
                r#"{"a":{"x/y":2,"z~":null},"c":{}}"#,
                r#"[{"op":"remove","path":"/b"},{"op":"replace","path":"/a/x~1y","value":2},{"op":"add","path":"/a/z~0","value":null},{"op":"add","path":"/c","value":{}}]"#,
            ),
            (r#"{"a":"x"}"#, r#"{"a":{"b":1}}"#, r#"[{"op":"replace","path":"/a","value":{"b":1}}]"#),
        ] {
            let value = |json| Value::from_json(json).unwrap();
            let patch = Value::array(between(&value(before), &value(after)));
            assert_eq!(patch.to_json(), want);
            let applied = ephor_engine::rules::mutate::JsonPatch::parse(&patch.to_json())
                .unwrap()
                .apply(&value(before), &ephor_expr::budget::Budget::default());
            assert_eq!(applied.unwrap(), value(after), "{before} to {after}");
        }
    }
}
