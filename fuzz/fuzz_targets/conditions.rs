//! Conditions: two documents compared by every operator.

#![no_main]

use ephor_engine::conditions::{Author, Operands, Operator, as_data, evaluate};
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
        for (key, author) in [(key.clone(), Author::Policy), (as_data(key.clone()), Author::Data)] {
            let operands = Operands { key, key_author: author, value: value.clone(), value_author: author };
            let _ = evaluate(operator, &operands, &Budget::default());
        }
    }
});
