//! JSON merge patch (RFC 7386).

use ephor_expr::{Map, Value};

/// The nesting that JSON documents of the API may have; deeper patches are refused.
const MAX_DEPTH: usize = 128;

/// `target` changed by `patch`; `None` if the patch is nested too deeply.
pub(in crate::memory) fn merge(target: &Value, patch: &Value) -> Option<Value> {
    merge_at(Some(target), patch, 0)
}

fn merge_at(target: Option<&Value>, patch: &Value, depth: usize) -> Option<Value> {
    let Value::Object(members) = patch else { return Some(patch.clone()) };
    if depth >= MAX_DEPTH {
        return None;
    }
    let mut merged = target.and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    for (key, change) in members.iter() {
        if change.is_null() {
            merged.remove(key);
        } else {
            let value = merge_at(merged.get(key), change, depth + 1)?;
            merged.insert(key.clone(), value);
        }
    }
    Some(Value::object(merged))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (target, patch, want) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            let [target, patch] = [target, patch].map(|t| Value::from_json(t).unwrap());
            assert_eq!(merge(&target, &patch).unwrap().to_json(), want, "{target} + {patch}");
        }
    }

    #[test]
    fn a_bottomless_patch_is_refused() {
        let patch = (0..1000).fold(Value::from(1), |inner, _| Value::from([("a", inner)]));
        assert_eq!(merge(&Value::Null, &patch), None);
    }
}
