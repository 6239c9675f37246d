//! Conditions: two documents compared by every operator.

#![no_main]

use ephor_engine::conditions::{KeyAuthor, Operands, Operator, as_data, evaluate};
use ephor_expr::budget::Budget;
use ephor_expr::yaml::{Limits, parse_values};
use libfuzzer_sys::fuzz_target;

const OPERATORS: [&str; 16] = [
    "Equals",
    "NotEquals",
    "In",
    "AnyIn",
    "AllIn",
    "NotIn",
    "AnyNotIn",
    "AllNotIn",
    "GreaterThan",
    "GreaterThanOrEquals",
    "LessThan",
    "LessThanOrEquals",
    "DurationGreaterThan",
    "DurationGreaterThanOrEquals",
    "DurationLessThan",
    "DurationLessThanOrEquals",
];

fuzz_target!(|text: &str| {
    let Ok(values) = parse_values(text, &Limits::default()) else { return };
    let [key, value, ..] = values.as_slice() else { return };
    for name in OPERATORS {
        let operator = Operator::parse(name).expect("a known operator");
        for (key, key_author) in [(key.clone(), KeyAuthor::Policy), (as_data(key.clone()), KeyAuthor::Data)] {
            let _ = evaluate(operator, &Operands { key, key_author, value: value.clone() }, &Budget::default());
        }
    }
});
