//! Values of the chart: defaults, files over them, settings over those, as Helm merges them.

use ephor_expr::{Map, Value};

/// A `--set` that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a setting: expected {expected}")]
pub struct SetError {
    text: String,
    expected: &'static str,
}

/// `below` with `above` over it: maps are merged, null takes a key away, anything else replaces.
pub(super) fn merged(below: &Value, above: &Value) -> Value {
    let (Value::Object(below), Value::Object(above)) = (below, above) else { return above.clone() };
    let mut out = (**below).clone();
    for (key, value) in above.iter() {
        match (out.get(key), value) {
            (_, Value::Null) => {
                out.remove(key);
            }
            (Some(old), value) => {
                let value = merged(old, value);
                out.insert(key.clone(), value);
            }
            (None, value) => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    out.into()
}

/// Puts settings such as `a.b=1,c[0]=x,d={e,f}` over `values`. A backslash keeps the next character from having a
/// meaning.
pub(super) fn set(values: &mut Value, settings: &str) -> Result<(), SetError> {
    for setting in split(settings, ',') {
        let wrong = |expected| SetError { text: setting.clone(), expected };
        let Some((path, value)) = cut(&setting, '=') else { return Err(wrong("`name=value`")) };
        let keys: Vec<String> = split(&path, '.').into_iter().map(|key| plain(&key)).collect();
        if keys.iter().any(String::is_empty) {
            return Err(wrong("names between dots"));
        }
        if !put(values, &keys, constant(&value)) {
            return Err(wrong("an index within the list, or one after it"));
        }
    }
    Ok(())
}

fn put(at: &mut Value, keys: &[String], value: Value) -> bool {
    let Some((key, rest)) = keys.split_first() else {
        *at = value;
        return true;
    };
    let (key, index) = match key.strip_suffix(']').and_then(|key| key.split_once('[')) {
        Some((key, index)) => (key, Some(index)),
        None => (key.as_str(), None),
    };
    if at.as_object().is_none() {
        *at = Map::new().into();
    }
    let Some(map) = at.as_object_mut() else { return false };
    let Some(index) = index else {
        return put(map.entry(key), rest, value);
    };
    let slot = map.entry(key);
    if slot.as_array().is_none() {
        *slot = Value::array(Vec::new());
    }
    let (Some(items), Ok(index)) = (slot.as_array_mut(), index.parse::<usize>()) else { return false };
    if index == items.len() {
        items.push(Value::Null);
    }
    items.get_mut(index).is_some_and(|item| put(item, rest, value))
}

fn constant(text: &str) -> Value {
    if let Some(items) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        return Value::array(
            split(items, ',').iter().filter(|item| !item.is_empty()).map(|item| constant(item)).collect(),
        );
    }
    match text {
        "true" => true.into(),
        "false" => false.into(),
        "null" => Value::Null,
        // A zero in front makes it a text, as with account numbers.
        _ if text == "0" || !text.starts_with('0') => {
            text.parse::<i64>().map_or_else(|_| plain(text).into(), Value::Int)
        }
        _ => plain(text).into(),
    }
}

/// Splits where the character stands without a backslash and outside of braces. The pieces keep their backslashes.
fn split(text: &str, at: char) -> Vec<String> {
    let (mut pieces, mut escaped, mut depth) = (vec![String::new()], false, 0);
    for c in text.chars() {
        match c {
            '{' if !escaped => depth += 1,
            '}' if !escaped && depth > 0 => depth -= 1,
            _ => {}
        }
        if c == at && !escaped && depth == 0 {
            pieces.push(String::new());
            continue;
        }
        escaped = c == '\\' && !escaped;
        if let Some(piece) = pieces.last_mut() {
            piece.push(c);
        }
    }
    pieces
}

fn cut(text: &str, at: char) -> Option<(String, String)> {
    let before = split(text, at).into_iter().next()?;
    let after = text.get(before.len() + at.len_utf8()..)?;
    Some((before, after.to_owned()))
}

/// The text without the backslashes that kept characters from their meaning.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        out.extend(if c == '\\' { characters.next() } else { Some(c) });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        Value::from_json(json).unwrap()
    }

    #[test]
    fn settings_are_read_as_helm_reads_them() {
        let table = [
            ("a.b=1,c=x", r#"{"a":{"b":1},"c":"x"}"#),
            ("a=true,b=null,c=007,d=0", r#"{"a":true,"b":null,"c":"007","d":0}"#),
            (r"a.b\.c/d=e\,f", r#"{"a":{"b.c/d":"e,f"}}"#),
            ("l={a,1,{b}}", r#"{"l":["a",1,["b"]]}"#),
            ("l={}", r#"{"l":[]}"#),
            ("l[0].a=1,l[1].a=2,l[0].b=3", r#"{"l":[{"a":1,"b":3},{"a":2}]}"#),
            ("a=b=c", r#"{"a":"b=c"}"#),
        ];
        for (settings, expected) in table {
            let mut values = value("{}");
            set(&mut values, settings).unwrap();
            assert_eq!(values.to_json(), expected, "{settings}");
        }
        for wrong in ["a", "=1", "a..b=1", "l[1]=x", "l[x]=y"] {
            assert!(set(&mut value("{}"), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn null_takes_a_default_away() {
        let got = merged(&value(r#"{"a":{"b":1,"c":2},"l":[1,2]}"#), &value(r#"{"a":{"b":null,"d":{}},"l":[3]}"#));
        assert_eq!(got.to_json(), r#"{"a":{"c":2,"d":{}},"l":[3]}"#);
    }
}
