//! Values as JSON in the way of protocol buffers, which is how an API server reads values of JSON patches.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::library::conversions::{duration_text, timestamp_text};
use super::value::{Dict, List, Val};
use crate::value::{Map, Value};

/// The largest whole number of which all smaller ones are doubles.
const MAX_EXACT: u64 = (1 << 53) - 1;

impl Val<'_> {
    /// The value as protocol buffers write it: numbers are doubles, and what is none is text. `None` for what JSON
    /// cannot say.
    pub fn to_protobuf_json(&self) -> Option<Value> {
        Some(match self {
            Val::Int(n) if n.unsigned_abs() > MAX_EXACT => Value::from(n.to_string()),
            Val::Uint(n) if *n > MAX_EXACT => Value::from(n.to_string()),
            Val::Double(n) if !n.is_finite() => return None,
            Val::Bytes(bytes) => Value::from(STANDARD.encode(bytes)),
            Val::Duration(nanos) => Value::from(duration_text(*nanos)),
            Val::Timestamp(time) => Value::from(timestamp_text(time)),
            Val::Optional(inner) => inner.as_ref()?.to_protobuf_json()?,
            Val::List(List::Json(items)) => Value::array(items.iter().map(data).collect()),
            Val::List(list) => Value::array(list.iter().map(|item| item.to_protobuf_json()).collect::<Option<_>>()?),
            Val::Map(Dict::Json(map)) => members(map),
            Val::Map(map) => {
                let entry = |(key, value): (Val<'_>, Val<'_>)| Some((key.as_str()?.into(), value.to_protobuf_json()?));
                Value::object(map.entries().map(entry).collect::<Option<_>>()?)
            }
            // In fields of objects, large whole numbers stay numbers, rounded to doubles; durations and times are
            // refused.
            Val::Object(object) => {
                let entry = |(name, value): (&crate::Str, &Val<'_>)| Some((name.clone(), rounded(value)?));
                Value::object(object.fields.iter().map(entry).collect::<Option<_>>()?)
            }
            other => other.to_json()?,
        })
    }
}

/// A field of an object.
fn rounded(value: &Val<'_>) -> Option<Value> {
    match value {
        Val::Int(n) if n.unsigned_abs() > MAX_EXACT => Some(whole(*n as f64)),
        Val::Uint(n) if *n > MAX_EXACT => Some(whole(*n as f64)),
        Val::Duration(_) | Val::Timestamp(_) => None,
        other => other.to_protobuf_json(),
    }
}

/// A double without a fraction, as a whole number if that fits.
fn whole(n: f64) -> Value {
    if n.abs() < i64::MAX as f64 { Value::Int(n as i64) } else { Value::Float(n) }
}

fn data(value: &Value) -> Value {
    match value {
        Value::Int(n) if n.unsigned_abs() > MAX_EXACT => Value::from(n.to_string()),
        Value::Array(items) => Value::array(items.iter().map(data).collect()),
        Value::Object(map) => members(map),
        other => other.clone(),
    }
}

fn members(map: &Map) -> Value {
    Value::object(map.iter().map(|(key, value)| (key.clone(), data(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::super::profile::Kubernetes;
    use super::super::tests::evaluated;
    use super::{Val, Value};

    fn written(value: &Val<'_>) -> Option<Value> {
        value.to_protobuf_json()
    }

    #[test]
    fn whole_numbers_beyond_doubles_and_spans_are_texts() {
        let table = [
            ("9007199254740991", Some("9007199254740991")),
            ("9007199254740992", Some(r#""9007199254740992""#)),
            ("-9007199254740993", Some(r#""-9007199254740993""#)),
            ("18446744073709551615u", Some(r#""18446744073709551615""#)),
            ("3u", Some("3")),
            ("[{'a': dyn(9007199254740993), 'b': dyn(2u)}]", Some(r#"[{"a":"9007199254740993","b":2}]"#)),
            ("object.n", Some(r#""9007199254740993""#)),
            ("object", Some(r#"{"n":"9007199254740993"}"#)),
            ("Object{a: 9007199254740993, b: [1u]}", Some(r#"{"a":9007199254740992,"b":[1]}"#)),
            ("duration('1500ms')", Some(r#""1.5s""#)),
            ("timestamp('2024-01-02T03:04:05.6Z')", Some(r#""2024-01-02T03:04:05.6Z""#)),
            ("b'abc'", Some(r#""YWJj""#)),
            ("Object{a: duration('1s')}", None),
            ("{1: 2}", None),
            ("0.0 / 0.0", None),
            ("type(1)", None),
        ];
        let environment = Kubernetes::Mutation.environment();
        for (text, wanted) in table {
            let value = evaluated(text, r#"{"n": 9007199254740993}"#, &environment, written);
            assert_eq!(value.map(|value| value.to_json()).as_deref(), wanted, "{text}");
        }
    }
}
