//! Properties of all texts and documents.

use proptest::prelude::*;

use super::super::{EvalError, Expression, FixedRuntime};
use crate::budget::Budget;
use crate::value::Value;

/// Texts that often are expressions.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[abc]",
        Just("@".to_owned()),
        Just("*".to_owned()),
        Just("'x'".to_owned()),
        Just("`1`".to_owned()),
        Just("`[1, {\"a\": null}]`".to_owned()),
        Just("\"a b\"".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), prop::sample::select(vec![".", " | ", " || ", " && ", " == ", " < ", ", "]))
                .prop_map(|((a, b), operator)| format!("{a}{operator}{b}")),
            (inner.clone(), prop::sample::select(vec!["[*]", "[]", "[0]", "[-1:]", "[::-1]", ".*", ".a", ".b"]))
                .prop_map(|(a, suffix)| format!("{a}{suffix}")),
            (
                inner.clone(),
                prop::sample::select(vec!["length", "to_string", "keys", "reverse", "sort", "type", "to_array"])
            )
                .prop_map(|(a, function)| format!("{function}({a})")),
            (two.clone(), prop::sample::select(vec!["sort_by", "max_by"]))
                .prop_map(|((a, b), function)| format!("{function}({a}, &{b})")),
            two.clone().prop_map(|(a, b)| format!("{a}[?{b}]")),
            two.clone().prop_map(|(a, b)| format!("{{a: {a}, b: {b}}}")),
            two.prop_map(|(a, b)| format!("[{a}, {b}]")),
            inner.clone().prop_map(|a| format!("!{a}")),
            inner.prop_map(|a| format!("({a})")),
        ]
    })
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::array),
            prop::collection::vec(("[abc]", inner), 0..4)
                .prop_map(|members| Value::object(members.into_iter().map(|(k, v)| (k.into(), v)).collect())),
        ]
    })
}

fn evaluate(expression: &Expression, root: &Value) -> Result<Value, EvalError> {
    expression.evaluate(root, &FixedRuntime::default().with_budget(Budget::new(100_000, 1 << 20)))
}

proptest! {
    #[test]
    fn any_text_compiles_or_is_refused_at_a_place_in_it(text in "\\PC*") {
        if let Err(error) = Expression::compile(&text) {
            prop_assert!(error.offset <= text.len());
        }
    }

    #[test]
    fn token_soup_compiles_or_is_refused(text in "[\\[\\]{}()@&|!=<>.,:*?'`\"\\\\a-c0-9 -]*") {
        if let Err(error) = Expression::compile(&text) {
            prop_assert!(text.is_char_boundary(error.offset));
        }
    }

    #[test]
    fn evaluation_ends_and_repeats(text in expressions(), root in documents()) {
        let (first, second) = (Expression::compile(&text), Expression::compile(&text));
        prop_assert_eq!(first.as_ref().err(), second.as_ref().err());
        if let (Ok(first), Ok(second)) = (first, second) {
            prop_assert_eq!(first.dump(), second.dump());
            // Not a number differs from itself, and is written as null.
            let text = |result: Result<Value, EvalError>| result.map(|value| value.to_json());
            prop_assert_eq!(text(evaluate(&first, &root)), text(evaluate(&second, &root)));
        }
    }

    #[test]
    fn pipes_swallow_what_their_ends_miss(text in expressions(), root in documents()) {
        if let (Ok(plain), Ok(piped)) = (Expression::compile(&text), Expression::compile(&format!("({text}) | @"))) {
            match (evaluate(&plain, &root), evaluate(&piped, &root)) {
                (Err(EvalError::UnknownKey { .. }), got) => prop_assert_eq!(got, Ok(Value::Null)),
                (Err(EvalError::Budget(_)), _) | (_, Err(EvalError::Budget(_))) => {}
                (plain, piped) => prop_assert_eq!(plain.map(|v| v.to_json()), piped.map(|v| v.to_json())),
            }
        }
    }
}
