//! The functions of the public specification, but for `sum`, which the reference replaces.

use std::cmp::Ordering;

use super::super::compare::equal;
use super::{Call, Function, Param, Type};
use crate::jmespath::EvalError;
use crate::scalar::number::parse_go_float;
use crate::value::{Map, Value};

const COMPARABLE: Param = Param::of(&[Type::ArrayOfNumbers, Type::ArrayOfStrings]);
const EXPRESSION: Param = Param::of(&[Type::Expression]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "abs",
        params: &[Param::NUMBER],
        returns: "number",
        doc: "The number without its sign.",
        examples: &[("abs(`-3`)", "3"), ("abs(`1.5`)", "1.5")],
        call: |call| Ok(Value::number(call.number(0).abs())),
    },
    Function {
        name: "avg",
        params: &[Param::of(&[Type::ArrayOfNumbers])],
        returns: "number",
        doc: "The mean of the numbers; null if there are none.",
        examples: &[("avg(`[1, 2]`)", "1.5"), ("avg(`[]`)", "null")],
        call: |call| {
            let items = items(call, 0);
            let sum: f64 = items.iter().filter_map(Value::as_f64).sum();
            Ok(if items.is_empty() { Value::Null } else { Value::number(sum / items.len() as f64) })
        },
    },
    Function {
        name: "ceil",
        params: &[Param::NUMBER],
        returns: "number",
        doc: "The number rounded up.",
        examples: &[("ceil(`1.2`)", "2")],
        call: |call| Ok(Value::number(call.number(0).ceil())),
    },
    Function {
        name: "contains",
        params: &[Param::of(&[Type::Array, Type::String]), Param::ANY],
        returns: "boolean",
        doc: "Whether an array has an item, or a string a part. A string contains nothing but strings.",
        examples: &[
            ("contains(`[1, 2]`, `2.0`)", "true"),
            ("contains('abc', 'bc')", "true"),
            ("contains('abc', `1`)", "false"),
        ],
        call: contains,
    },
    Function {
        name: "ends_with",
        params: &[Param::STRING, Param::STRING],
        returns: "boolean",
        doc: "Whether a string ends with another.",
        examples: &[("ends_with('abc', 'bc')", "true")],
        call: |call| Ok(Value::Bool(call.str(0).ends_with(call.str(1)))),
    },
    Function {
        name: "floor",
        params: &[Param::NUMBER],
        returns: "number",
        doc: "The number rounded down.",
        examples: &[("floor(`-1.2`)", "-2")],
        call: |call| Ok(Value::number(call.number(0).floor())),
    },
    Function {
        name: "join",
        params: &[Param::STRING, Param::of(&[Type::ArrayOfStrings])],
        returns: "string",
        doc: "The strings of an array with the first string between them.",
        examples: &[(r#"join(', ', `["a", "b"]`)"#, r#""a, b""#), ("join('-', `[]`)", r#""""#)],
        call: join,
    },
    Function {
        name: "keys",
        params: &[Param::OBJECT],
        returns: "array",
        doc: "The names of an object's members, sorted.",
        examples: &[(r#"keys(`{"b": 1, "a": 2}`)"#, r#"["a","b"]"#)],
        call: |call| {
            let keys = call.args.first().and_then(Value::as_object).into_iter().flat_map(Map::keys);
            Ok(Value::array(keys.cloned().map(Value::String).collect()))
        },
    },
    Function {
        name: "length",
        params: &[Param::of(&[Type::String, Type::Array, Type::Object])],
        returns: "number",
        doc: "The number of characters, items or members.",
        examples: &[("length('żó')", "2"), ("length(`[1, [2]]`)", "2"), (r#"length(`{"a": 1}`)"#, "1")],
        call: |call| {
            Ok(Value::from(match call.args.first() {
                Some(Value::String(text)) => text.chars().count(),
                Some(Value::Array(items)) => items.len(),
                Some(Value::Object(map)) => map.len(),
                _ => 0,
            }))
        },
    },
    Function {
        name: "map",
        params: &[EXPRESSION, Param::ARRAY],
        returns: "array",
        doc: "The expression's value for every item, nulls included.",
        examples: &[(r#"map(&a, `[{"a": 1}, {}]`)"#, "[1,null]")],
        call: |call| {
            let mapped: Result<Vec<_>, _> = items(call, 1).iter().map(|item| (call.apply)(0, item)).collect();
            Ok(Value::array(mapped?))
        },
    },
    Function {
        name: "max",
        params: &[COMPARABLE],
        returns: "any",
        doc: "The greatest of numbers or strings; null if there are none.",
        examples: &[("max(`[2, 10]`)", "10"), (r#"max(`["2", "10"]`)"#, r#""2""#), ("max(`[]`)", "null")],
        call: |call| extreme(call, Ordering::Greater),
    },
    Function {
        name: "max_by",
        params: &[Param::ARRAY, EXPRESSION],
        returns: "any",
        doc: "The first item for which the expression, a number or a string, is greatest.",
        examples: &[(r#"max_by(`[{"a": 1}, {"a": 2}]`, &a)"#, r#"{"a":2}"#)],
        call: |call| extreme_by(call, Ordering::Greater),
    },
    Function {
        name: "merge",
        params: &[Param { types: &[Type::Object], variadic: true }],
        returns: "object",
        doc: "The members of all the objects; of members with one name the last wins.",
        examples: &[(r#"merge(`{"a": 1, "b": 2}`, `{"b": 3}`)"#, r#"{"a":1,"b":3}"#)],
        call: |call| {
            let members = call.args.iter().filter_map(Value::as_object).flat_map(Map::iter);
            call.charge_steps(call.args.iter().filter_map(Value::as_object).map(|map| map.len() as u64).sum())?;
            Ok(Value::object(members.map(|(key, value)| (key.clone(), value.clone())).collect()))
        },
    },
    Function {
        name: "min",
        params: &[COMPARABLE],
        returns: "any",
        doc: "The least of numbers or strings; null if there are none.",
        examples: &[("min(`[2, 10]`)", "2"), (r#"min(`["2", "10"]`)"#, r#""10""#)],
        call: |call| extreme(call, Ordering::Less),
    },
    Function {
        name: "min_by",
        params: &[Param::ARRAY, EXPRESSION],
        returns: "any",
        doc: "The first item for which the expression, a number or a string, is least.",
        examples: &[(r#"min_by(`[{"a": 2}, {"a": 1}]`, &a)"#, r#"{"a":1}"#)],
        call: |call| extreme_by(call, Ordering::Less),
    },
    Function {
        name: "not_null",
        params: &[Param { types: &[Type::Any], variadic: true }],
        returns: "any",
        doc: "The first argument that is neither null nor missing; null if there is none.",
        examples: &[("not_null(a, `null`, 'b')", r#""b""#)],
        call: |call| Ok(call.args.iter().find(|arg| !arg.is_null()).cloned().unwrap_or_default()),
    },
    Function {
        name: "reverse",
        params: &[Param::of(&[Type::Array, Type::String])],
        returns: "array|string",
        doc: "The items or characters from the last to the first.",
        examples: &[("reverse(`[1, 2]`)", "[2,1]"), ("reverse('żó')", r#""óż""#)],
        call: |call| {
            Ok(match call.args.first() {
                Some(Value::String(text)) => Value::from(text.chars().rev().collect::<String>()),
                _ => Value::array(items(call, 0).iter().rev().cloned().collect()),
            })
        },
    },
    Function {
        name: "sort",
        params: &[Param::of(&[Type::ArrayOfStrings, Type::ArrayOfNumbers])],
        returns: "array",
        doc: "The numbers or strings in ascending order, strings by their bytes.",
        examples: &[("sort(`[10, 9]`)", "[9,10]"), (r#"sort(`["b", "B", "a"]`)"#, r#"["B","a","b"]"#)],
        call: |call| {
            charge_sorting(call, items(call, 0).iter())?;
            let mut sorted = items(call, 0).to_vec();
            sorted.sort_by(order);
            Ok(Value::array(sorted))
        },
    },
    Function {
        name: "sort_by",
        params: &[Param::ARRAY, EXPRESSION],
        returns: "array",
        doc: "The items in ascending order of the expression, for all of them a number or for all a string.",
        examples: &[
            (r#"sort_by(`[{"a": 2}, {"a": 1}]`, &a)"#, r#"[{"a":1},{"a":2}]"#),
            (r#"sort_by(`[{"a": 2}, {}]`, &a)"#, "error: error in sort_by comparison"),
        ],
        call: sort_by,
    },
    Function {
        name: "starts_with",
        params: &[Param::STRING, Param::STRING],
        returns: "boolean",
        doc: "Whether a string starts with another.",
        examples: &[("starts_with('abc', 'ab')", "true")],
        call: |call| Ok(Value::Bool(call.str(0).starts_with(call.str(1)))),
    },
    Function {
        name: "to_array",
        params: &[Param::ANY],
        returns: "array",
        doc: "The array itself, or an array of the one value.",
        examples: &[("to_array('a')", r#"["a"]"#), ("to_array(`[1]`)", "[1]")],
        call: |call| {
            let value = first(call);
            Ok(if matches!(value, Value::Array(_)) { value } else { Value::array(vec![value]) })
        },
    },
    Function {
        name: "to_number",
        params: &[Param::ANY],
        returns: "number",
        doc: "The number itself, or the number that a string spells; null for anything else.",
        examples: &[("to_number('1e3')", "1000"), ("to_number('1_000')", "1000"), ("to_number('abc')", "null")],
        call: |call| {
            Ok(match first(call) {
                Value::String(text) => parse_go_float(&text).map_or(Value::Null, Value::number),
                number @ (Value::Int(_) | Value::Float(_)) => number,
                _ => Value::Null,
            })
        },
    },
    Function {
        name: "to_string",
        params: &[Param::ANY],
        returns: "string",
        doc: "The string itself, or the value as compact JSON with `<`, `>` and `&` escaped.",
        examples: &[("to_string('a')", r#""a""#), ("to_string(`[1.0, null]`)", r#""[1,null]""#)],
        call: |call| {
            let value = first(call);
            if matches!(value, Value::String(_)) {
                return Ok(value);
            }
            let budget = call.runtime.budget();
            budget.charge_bytes(budget.charge_tree(&value)?)?;
            Ok(Value::from(value.to_json()))
        },
    },
    Function {
        name: "type",
        params: &[Param::ANY],
        returns: "string",
        doc: "The name of the value's type: array, boolean, null, number, object or string.",
        examples: &[("type('a')", r#""string""#), ("type(a)", r#""null""#)],
        call: |call| Ok(Value::from(first(call).type_name())),
    },
    Function {
        name: "values",
        params: &[Param::OBJECT],
        returns: "array",
        doc: "The values of an object's members, in the order of their names.",
        examples: &[(r#"values(`{"b": 1, "a": 2}`)"#, "[2,1]")],
        call: |call| {
            let values = call.args.first().and_then(Value::as_object).into_iter().flat_map(Map::values);
            Ok(Value::array(values.cloned().collect()))
        },
    },
];

fn first(call: &Call<'_>) -> Value {
    call.args.first().cloned().unwrap_or_default()
}

fn items<'a>(call: &Call<'a>, i: usize) -> &'a [Value] {
    call.args.get(i).and_then(Value::as_array).unwrap_or_default()
}

fn contains(call: &Call<'_>) -> Result<Value, EvalError> {
    let (Some(whole), Some(part)) = (call.args.first(), call.args.get(1)) else { return Ok(Value::Null) };
    if let (Some(whole), Some(part)) = (whole.as_str(), part.as_str()) {
        return Ok(Value::Bool(whole.contains(part)));
    }
    for item in items(call, 0) {
        if equal(item, part, call.runtime.budget())? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn join(call: &Call<'_>) -> Result<Value, EvalError> {
    let (separator, parts) = (call.str(0), items(call, 1));
    let text: usize = parts.iter().filter_map(Value::as_str).map(str::len).sum();
    call.runtime.budget().charge_bytes(text.saturating_add(separator.len().saturating_mul(parts.len())))?;
    let mut joined = String::new();
    for (i, part) in parts.iter().filter_map(Value::as_str).enumerate() {
        if i > 0 {
            joined.push_str(separator);
        }
        joined.push_str(part);
    }
    Ok(Value::from(joined))
}

/// The order of two numbers or two strings.
fn order(a: &Value, b: &Value) -> Ordering {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => a.cmp(b),
        _ => a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default()),
    }
}

/// The first item that is `wanted` compared with all others.
fn extreme(call: &Call<'_>, wanted: Ordering) -> Result<Value, EvalError> {
    let items = items(call, 0);
    call.charge_reading(items.iter().filter_map(Value::as_str).map(str::len).sum())?;
    let best = items.iter().reduce(|best, item| if order(item, best) == wanted { item } else { best });
    Ok(best.cloned().unwrap_or_default())
}

/// Takes what sorting by these keys costs: every key is compared about as often as the logarithm of their number.
fn charge_sorting<'v>(call: &Call<'_>, keys: impl ExactSizeIterator<Item = &'v Value>) -> Result<(), EvalError> {
    let (count, rounds) = (keys.len() as u64, u64::from(keys.len().max(1).ilog2()) + 1);
    let text: usize = keys.filter_map(Value::as_str).map(str::len).sum();
    call.charge_steps((count + text as u64 / 16).saturating_mul(rounds))
}

/// The items of argument 0, each with the value of the expression for it, all of these numbers or all strings.
/// `mismatch` words the error for an item that differs from the first.
fn keyed<'a>(call: &Call<'a>, mismatch: fn(&Value) -> String) -> Result<Vec<(Value, &'a Value)>, EvalError> {
    let mut keyed: Vec<(Value, &Value)> = Vec::new();
    for item in items(call, 0) {
        let key = (call.apply)(1, item)?;
        match keyed.first() {
            None if !matches!(key, Value::String(_) | Value::Int(_) | Value::Float(_)) => {
                return Err(EvalError::Other("invalid type, must be number of string".to_owned()));
            }
            Some((first, _)) if first.type_name() != key.type_name() => return Err(EvalError::Other(mismatch(first))),
            _ => keyed.push((key, item)),
        }
    }
    Ok(keyed)
}

/// Upstream: a single item is given back without a look at it.
fn extreme_by(call: &Call<'_>, wanted: Ordering) -> Result<Value, EvalError> {
    if let [only] = items(call, 0) {
        return Ok(only.clone());
    }
    let keyed = keyed(call, |first| format!("invalid type, must be {}", first.type_name()))?;
    charge_sorting(call, keyed.iter().map(|(key, _)| key))?;
    let best = keyed.into_iter().reduce(|best, item| if order(&item.0, &best.0) == wanted { item } else { best });
    Ok(best.map(|(_, item)| item.clone()).unwrap_or_default())
}

fn sort_by(call: &Call<'_>) -> Result<Value, EvalError> {
    if let [_] = items(call, 0) {
        return Ok(first(call));
    }
    let mut keyed = keyed(call, |_| "error in sort_by comparison".to_owned())?;
    charge_sorting(call, keyed.iter().map(|(key, _)| key))?;
    keyed.sort_by(|a, b| order(&a.0, &b.0));
    Ok(Value::array(keyed.into_iter().map(|(_, item)| item.clone()).collect()))
}
