//! Expected and found outcomes of vectors.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ephor_expr::Value;
use ephor_expr::cel::{Key, Type, Val};
use ephor_expr::scalar::go_time::{self, Time};
use ephor_expr::value::Map;

use super::scope::{Outcome, Runner, map};

/// In what an outcome differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    /// The place where the expression stands is not supported.
    Refused,
    /// Another kind of outcome, or another value.
    Verdict,
    /// Another static type.
    Type,
    /// Another text of an error.
    Text,
    /// Another cost.
    Cost,
}

impl Difference {
    pub(crate) const ALL: [Self; 5] = [Self::Refused, Self::Verdict, Self::Type, Self::Text, Self::Cost];
}

/// One vector's differences.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) differences: Vec<(Difference, String)>,
    /// Whether costs were compared.
    pub(crate) has_cost: bool,
    /// Whether texts of errors were compared.
    pub(crate) has_text: bool,
}

pub(crate) fn judge(runner: &mut Runner<'_>, vector: &Value) -> Judged {
    let mut judged = Judged::default();
    let Some(outcome) = runner.run(vector) else {
        judged.differences.push((Difference::Refused, "not supported".into()));
        return judged;
    };
    let mut differ = |kind, wanted: &str, found: &str| {
        judged.differences.push((kind, format!("wanted {wanted}\n    found  {found}")));
    };
    let Outcome { program, estimate, value, cost } = outcome;
    let wanted_text = vector.str_at(&["compile", "error"]);
    let program = match (program, wanted_text) {
        (Err(found), Some(wanted)) => {
            judged.has_text = !wanted.starts_with("GO PANIC") && !wanted.contains("Syntax error");
            if judged.has_text && found != wanted {
                differ(Difference::Text, wanted, &found);
            }
            return judged;
        }
        (Err(found), None) => {
            differ(Difference::Verdict, "a program", &found);
            return judged;
        }
        (Ok(_), Some(wanted)) => {
            // Where the reference crashes, any outcome is as good.
            if !wanted.starts_with("GO PANIC") {
                differ(Difference::Verdict, wanted, "a program");
            }
            return judged;
        }
        (Ok(program), None) => program,
    };
    let wanted_type = vector.str_at(&["compile", "type"]).unwrap_or_default();
    let found_type = program.kind().to_string();
    if wanted_type != found_type {
        differ(Difference::Type, wanted_type, &found_type);
    }
    // The largest estimates are beyond what JSON numbers tell apart.
    let wanted = vector.get("est_max").map(Value::to_json);
    if let Some(wanted) = wanted.filter(|wanted| wanted.parse() != Ok(estimate as f64)) {
        differ(Difference::Cost, &format!("an estimate of {wanted}"), &estimate.to_string());
    }
    let Some(value) = value else { return judged };
    let found = match &value {
        Ok(value) => outcome_of(value),
        Err(error) => Value::String(error.to_string().into()),
    };
    match (vector.get("value"), vector.str_at(&["error"]), &value) {
        (Some(wanted), _, Ok(_)) => {
            let other = vector.str_at(&["other"]).and_then(|text| Value::from_json(text).ok());
            if !same_value(wanted, &found) && !other.is_some_and(|other| same_value(&other, &found)) {
                differ(Difference::Verdict, &wanted.to_json(), &found.to_json());
            }
        }
        (None, Some(wanted), Err(_)) => {
            let accepted = [Some(wanted), vector.str_at(&["other"])];
            judged.has_text = true;
            if !accepted.contains(&found.as_str()) {
                differ(Difference::Text, wanted, found.as_str().unwrap_or_default());
            }
        }
        (Some(wanted), _, Err(error)) => differ(Difference::Verdict, &wanted.to_json(), &format!("error: {error}")),
        (None, Some(wanted), Ok(_)) => differ(Difference::Verdict, &format!("error: {wanted}"), &found.to_json()),
        (None, None, _) => {}
    }
    if let Some(wanted) = vector.get("cost").and_then(Value::as_i64) {
        judged.has_cost = true;
        let range = vector.get("cost_range").and_then(Value::as_array).map(|r| {
            let bound = |i: usize| r.get(i).and_then(Value::as_i64).unwrap_or(wanted);
            bound(0)..=bound(1)
        });
        let found = cost.cast_signed();
        if found != wanted && !range.is_some_and(|range| range.contains(&found)) {
            differ(Difference::Cost, &wanted.to_string(), &found.to_string());
        }
    }
    judged
}

/// A value as vectors write it.
fn outcome_of(value: &Val<'_>) -> Value {
    let mut outcome = Map::new();
    outcome.insert("type", Value::String(value.type_name().as_ref().into()));
    outcome.insert("json", tagged(value));
    Value::object(outcome)
}

fn tag(name: &str, value: impl Into<Value>) -> Value {
    let mut tagged = Map::new();
    tagged.insert(name, value);
    Value::object(tagged)
}

fn text(text: impl AsRef<str>) -> Value {
    Value::String(text.as_ref().into())
}

fn tagged(value: &Val<'_>) -> Value {
    match value {
        Val::Null => Value::Null,
        Val::Bool(b) => Value::Bool(*b),
        Val::Int(n) => Value::Int(*n),
        Val::Uint(n) => tag("$uint", text(n.to_string())),
        Val::Double(n) => tag("$double", text(n.to_string())),
        Val::String(t) => text(t.as_str()),
        Val::Bytes(bytes) => tag("$bytes", text(STANDARD.encode(bytes))),
        Val::Duration(n) => tag("$duration_ns", text(n.to_string())),
        Val::Timestamp(time) => tag("$timestamp", text(timestamp(time))),
        Val::Type(kind) => tag("$type", text(kind.runtime_name())),
        Val::Optional(None) => tag("$optional_none", Value::Bool(true)),
        Val::Optional(Some(inner)) => tag("$optional", tagged(inner)),
        Val::List(list) => Value::array(list.iter().map(|item| tagged(&item)).collect()),
        Val::Map(map) => {
            let plain = map.entries().all(|(key, _)| key.as_str().is_some_and(|key| !key.starts_with('$')));
            if plain {
                let entry = |(key, item): (Val<'_>, Val<'_>)| (key.as_str().unwrap_or_default().into(), tagged(&item));
                return Value::object(map.entries().map(entry).collect());
            }
            let pair = |(key, item): (Val<'_>, Val<'_>)| Value::array(vec![tagged(&key), tagged(&item)]);
            tag("$map", Value::array(map.entries().map(pair).collect()))
        }
        // What the Go implementations hold as structures has their printing.
        Val::Object(object) if object.name.contains('.') && !object.name.starts_with("Object.") => {
            let list = |value: &Val<'_>| match value {
                Val::List(list) => {
                    let items: Vec<String> = list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
                    format!("[{}]", items.join(" "))
                }
                other => other.as_str().unwrap_or_default().to_owned(),
            };
            let name = |name: &str| name[..1].to_uppercase() + &name[1..];
            let fields: Vec<String> =
                object.fields.iter().map(|(field, value)| format!("{}:{}", name(field), list(value))).collect();
            let mut tagged_opaque = Map::new();
            tagged_opaque.insert("$opaque", text(&object.name));
            tagged_opaque.insert("text", text(format!("{{{}}}", fields.join(" "))));
            Value::object(tagged_opaque)
        }
        Val::Object(object) => {
            let mut tagged_object = Map::new();
            tagged_object.insert("$object", text(&object.name));
            let field = if object.name == "JSONPatch" { tagged } else { plain };
            let fields = object.fields.iter().map(|(name, item)| (name.clone(), field(item))).collect();
            tagged_object.insert("value", Value::object(fields));
            let misnamed = value.misnamed_types();
            if !misnamed.is_empty() && object.name != "JSONPatch" {
                tagged_object.insert("type_name_check", text(misnamed.join("\n")));
            }
            Value::object(tagged_object)
        }
        Val::Opaque(opaque) => {
            let mut tagged_opaque = Map::new();
            tagged_opaque.insert("$opaque", text(opaque.type_name()));
            tagged_opaque.insert("text", text(opaque.text()));
            Value::object(tagged_opaque)
        }
    }
}

/// An object's field: nested objects are plain.
fn plain(value: &Val<'_>) -> Value {
    match value {
        Val::Object(object) => {
            Value::object(object.fields.iter().map(|(name, item)| (name.clone(), plain(item))).collect())
        }
        Val::Optional(Some(inner)) => plain(inner),
        Val::List(list) => Value::array(list.iter().map(|item| plain(&item)).collect()),
        Val::Map(map) if map.entries().all(|(key, _)| key.as_str().is_some()) => {
            let entry = |(key, item): (Val<'_>, Val<'_>)| (key.as_str().unwrap_or_default().into(), plain(&item));
            Value::object(map.entries().map(entry).collect())
        }
        other => tagged(other),
    }
}

fn timestamp(time: &Time) -> String {
    let time = time.to_utc();
    let seconds = go_time::format_rfc3339(&time);
    if time.nanos() == 0 {
        return seconds;
    }
    let fraction = format!("{:09}", time.nanos());
    format!("{}.{}Z", seconds.trim_end_matches('Z'), fraction.trim_end_matches('0'))
}

/// Whether two written values are the same; numbers by value, entries of maps in any order.
fn same_value(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(a), Value::Object(b)) => {
            // Types of Kyverno's own are written as opaque.
            if let (Some("type"), Some(name)) = (a.get("$opaque").and_then(Value::as_str), b.get("$type")) {
                return a.get("text") == Some(name);
            }
            if let (Some(x), Some(y)) = (a.get("$double"), b.get("$double")) {
                return double(x).to_bits() == double(y).to_bits();
            }
            if let (Some(x), Some(y)) = (a.get("$map"), b.get("$map")) {
                let (x, y) = (x.as_array().unwrap_or_default(), y.as_array().unwrap_or_default());
                return x.len() == y.len() && x.iter().all(|entry| y.iter().any(|other| same_value(entry, other)));
            }
            a.len() == b.len() && b.iter().all(|(key, y)| a.get(key).is_some_and(|x| same_value(x, y)))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| same_value(x, y))
        }
        (a, b) => a == b,
    }
}

fn double(value: &Value) -> f64 {
    let n = match value.as_str().unwrap_or_default() {
        "+Inf" | "inf" => f64::INFINITY,
        "-Inf" | "-inf" => f64::NEG_INFINITY,
        other => other.parse().unwrap_or(f64::NAN),
    };
    if n.is_nan() { f64::NAN } else { n }
}

/// A value as vectors write it, read.
pub(crate) fn untag(value: &Value) -> Val<'static> {
    let Value::Object(object) = value else {
        return match value {
            Value::Array(items) => Val::list(items.iter().map(untag).collect()),
            other => Val::owned_json(other),
        };
    };
    let string = |name: &str| object.get(name).and_then(Value::as_str);
    if let Some(n) = string("$uint").and_then(|n| n.parse().ok()) {
        return Val::Uint(n);
    }
    if let Some(n) = object.get("$double") {
        return Val::Double(double(n));
    }
    if let Some(bytes) = string("$bytes").and_then(|bytes| STANDARD.decode(bytes).ok()) {
        return Val::Bytes(bytes.into());
    }
    if let Some(n) = object.get("$duration_ns").and_then(|n| n.as_i64().or(n.as_str()?.parse().ok())) {
        return Val::Duration(n);
    }
    if let Some(time) = string("$timestamp").and_then(|text| go_time::parse_rfc3339(text).ok()) {
        return Val::Timestamp(time);
    }
    if let Some(kind) = string("$type").and_then(Type::parse) {
        return Val::Type(Arc::new(kind));
    }
    if object.contains_key("$optional_none") {
        return Val::Optional(None);
    }
    if let Some(inner) = object.get("$optional") {
        return Val::some(untag(inner));
    }
    let key = |key: &Val<'static>| match key {
        Val::Bool(b) => Key::Bool(*b),
        Val::Int(n) => Key::Int(*n),
        Val::Uint(n) => Key::Uint(*n),
        other => Key::String(other.as_str().unwrap_or_default().into()),
    };
    if let Some(pairs) = object.get("$map").and_then(Value::as_array) {
        let entry = |pair: &Value| {
            let pair = pair.as_array().unwrap_or_default();
            Some((key(&untag(pair.first()?)), untag(pair.get(1)?)))
        };
        return map(pairs.iter().filter_map(entry).collect());
    }
    map(object.iter().map(|(name, item)| (Key::String(name.clone()), untag(item))).collect())
}
