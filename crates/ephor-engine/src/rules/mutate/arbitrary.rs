//! Random documents for property tests.

use ephor_expr::{Map, Str, Value};
use proptest::prelude::*;

/// Any small value, with keys from `keys`.
pub(super) fn value(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2i64..3).prop_map(Value::Int),
        prop_oneof![Just(0.5), Just(1.0)].prop_map(Value::Float),
        prop::sample::select(&["", "a", "b", "80", "(a)", "delete", "replace", "*"][..]).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::array),
            members(keys, inner).prop_map(Value::object),
        ]
    })
}

/// Any small map, with keys from `keys`.
pub(super) fn object(keys: &'static [&'static str]) -> impl Strategy<Value = Value> {
    members(keys, value(keys)).prop_map(Value::object)
}

fn members(keys: &'static [&'static str], values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map> {
    let key = prop::sample::select(keys).prop_map(Str::new);
    prop::collection::vec((key, values), 0..5).prop_map(|members| members.into_iter().collect())
}
