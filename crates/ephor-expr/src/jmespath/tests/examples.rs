//! The table of functions: its examples hold, its entries are complete.

use super::super::functions::{self, Type};
use super::super::{Expression, FixedRuntime};
use crate::value::Value;

/// What `expression` gives on an empty document: JSON, or `error: ` and the message.
fn outcome(expression: &str) -> String {
    let compiled = Expression::compile(expression).map_err(|error| error.to_string());
    let result = compiled.and_then(|compiled| {
        let document = Value::object(crate::Map::new());
        compiled.evaluate(&document, &FixedRuntime::default()).map_err(|error| error.to_string())
    });
    result.map_or_else(|error| format!("error: {error}"), |value| value.to_json())
}

#[test]
fn examples_hold() {
    let mut wrong = Vec::new();
    for function in functions::all() {
        for (expression, want) in function.examples {
            let got = outcome(expression);
            // The name of the function in front of its message goes without saying.
            let holds = match want.strip_prefix("error") {
                Some(reason) => got.starts_with("error") && got.ends_with(reason.trim_start_matches(": ")),
                None => got == *want,
            };
            if !holds {
                wrong.push(format!("{expression}\n  want {want}\n  got  {got}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn entries_are_complete_and_unique() {
    let mut names = Vec::new();
    for function in functions::all() {
        let name = function.name;
        assert!(!names.contains(&name), "{name} twice");
        names.push(name);
        assert!(!function.examples.is_empty() && function.doc.ends_with('.') && !function.returns.is_empty(), "{name}");
        let fixed = function.params.len().saturating_sub(1);
        assert!(function.params.iter().take(fixed).all(|param| !param.variadic), "{name}: only the last may repeat");
        for param in function.params {
            assert!(
                !param.types.is_empty() && (param.types.len() == 1 || !param.types.contains(&Type::Expression)),
                "{name}"
            );
        }
    }
}
