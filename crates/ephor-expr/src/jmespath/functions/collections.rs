//! Lookups in and conversions between arrays and objects.

use super::super::compare::equal;
use super::{Call, Function, Param, Type};
use crate::jmespath::EvalError;
use crate::scalar::number::{format_g, format_print_full};
use crate::value::{Map, Str, Value};

const OBJECT_OR_ARRAY: Param = Param::of(&[Type::Object, Type::Array]);

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "lookup",
        params: &[OBJECT_OR_ARRAY, Param::TEXT],
        returns: "any",
        doc: "The member of an object, or the element of an array, that the second argument names; null if there is \
              none.",
        examples: &[
            (r#"lookup(`{"a":1}`,'a')"#, "1"),
            (r#"lookup(`{"a":1}`,'b')"#, "null"),
            (r#"lookup(`["x","y"]`,`1`)"#, "\"y\""),
            ("lookup(`[7]`,`-1`)", "null"),
            (
                "lookup(`[7]`,`0.5`)",
                "error: JMESPath function 'lookup': argument #2: expected an integer number but got: 0.5",
            ),
        ],
        call: lookup,
    },
    Function {
        name: "items",
        params: &[OBJECT_OR_ARRAY, Param::STRING, Param::STRING],
        returns: "array",
        doc: "One object for each member, in the order of keys, or element: the key or index under the name in the \
              second argument, the value under that in the third.",
        examples: &[
            (r#"items(`{"b":1,"a":2}`,'k','v')"#, r#"[{"k":"a","v":2},{"k":"b","v":1}]"#),
            ("items(`[7]`,'i','v')", r#"[{"i":0,"v":7}]"#),
            (r#"items(`{"a":1}`,'k','k')"#, r#"[{"k":1}]"#),
        ],
        call: items,
    },
    Function {
        name: "object_from_lists",
        params: &[Param::ARRAY, Param::ARRAY],
        returns: "object",
        doc: "An object with the keys of the first list and the values of the second, null where that is shorter.",
        examples: &[
            (r#"object_from_lists(`["a"]`,`[1,2]`)"#, r#"{"a":1}"#),
            (r#"object_from_lists(`[1,"b"]`,`[2]`)"#, r#"{"1":2,"b":null}"#),
        ],
        call: object_from_lists,
    },
    Function {
        name: "label_match",
        params: &[Param::OBJECT, Param::OBJECT],
        returns: "boolean",
        doc: "Whether every pair of the first object is in the second. Wildcards are not understood.",
        examples: &[
            (r#"label_match(`{"a":"1"}`,`{"a":"1","b":"2"}`)"#, "true"),
            (r#"label_match(`{}`,`{"a":"1"}`)"#, "true"),
            (r#"label_match(`{"a":"*"}`,`{"a":"1"}`)"#, "false"),
        ],
        call: label_match,
    },
];

fn lookup(call: &Call<'_>) -> Result<Value, EvalError> {
    let found = match call.args {
        [Value::Object(map), Value::String(key)] => map.get(key),
        [Value::Object(_), _] => return Err(call.error("argument #2 is not of type String")),
        [Value::Array(items), key] => {
            let Some(number) = key.as_f64() else {
                return Err(call.error("argument #2 is not of type Number"));
            };
            if number.abs() >= 9.2e18 {
                return Err(call.error(format!(
                    "argument #2: number is outside the range of integer numbers: {}",
                    format_g(number)
                )));
            }
            if number.fract() != 0.0 {
                return Err(
                    call.error(format!("argument #2: expected an integer number but got: {}", format_g(number)))
                );
            }
            usize::try_from(number as i64).ok().and_then(|i| items.get(i))
        }
        _ => None,
    };
    Ok(found.cloned().unwrap_or_default())
}

fn items(call: &Call<'_>) -> Result<Value, EvalError> {
    let (key_name, value_name) = (Str::new(call.str(1)), Str::new(call.str(2)));
    // With equal names, the value takes the place of the key.
    let item = |key: Value, value: &Value| Value::from([(key_name.clone(), key), (value_name.clone(), value.clone())]);
    let list: Vec<Value> = match call.args.first() {
        Some(Value::Object(map)) => {
            charge_objects(call, map.len())?;
            map.iter().map(|(k, v)| item(k.clone().into(), v)).collect()
        }
        Some(Value::Array(items)) => {
            charge_objects(call, items.len())?;
            items.iter().enumerate().map(|(i, v)| item(i.into(), v)).collect()
        }
        _ => Vec::new(),
    };
    Ok(Value::array(list))
}

/// Takes what `n` objects of two members need.
fn charge_objects(call: &Call<'_>, n: usize) -> Result<(), EvalError> {
    call.charge(n.saturating_mul(2 * size_of::<(Str, Value)>() + size_of::<Map>()))
}

fn object_from_lists(call: &Call<'_>) -> Result<Value, EvalError> {
    let list = |i: usize| call.args.get(i).and_then(Value::as_array).unwrap_or_default();
    let (keys, values) = (list(0), list(1));
    call.charge(keys.len().saturating_mul(size_of::<(Str, Value)>()))?;
    let values = values.iter().cloned().chain(std::iter::repeat(Value::Null));
    let members: Option<Map> = keys.iter().zip(values).map(|(key, value)| Some((key_text(key)?, value))).collect();
    match members {
        Some(map) => Ok(Value::object(map)),
        None => Err(call.error("argument #1 is not of type StringArray")),
    }
}

/// The text of a scalar.
fn key_text(key: &Value) -> Option<Str> {
    match key {
        Value::String(s) => Some(s.clone()),
        Value::Bool(b) => Some(Str::new(if *b { "true" } else { "false" })),
        _ => key.as_f64().map(|n| format_print_full(n).into()),
    }
}

fn label_match(call: &Call<'_>) -> Result<Value, EvalError> {
    let object = |i: usize| call.args.get(i).and_then(Value::as_object);
    let (Some(want), Some(have)) = (object(0), object(1)) else { return Ok(false.into()) };
    for (key, value) in want.iter() {
        call.charge_reading(key.len())?;
        let Some(found) = have.get(key) else { return Ok(false.into()) };
        if !equal(found, value, call.runtime.budget())? {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}
