//! Tests of whole expressions.

mod arithmetic;
mod bounds;
mod compile;
mod dialect;
mod examples;
mod flow;
mod functions;
mod properties;
mod scope;
mod standard;
mod times;

use super::{Expression, FixedRuntime};
use crate::value::Value;

/// The document that the reference's observations were made on.
const DOCUMENT: &str = r#"{
  "o": {"p": {"a": {"b": 1}, "n": "x", "s": [1, 5]}, "q": {"a": {"b": 2}, "n": "y", "s": [7]}},
  "l": [{"k": "p", "m": {"x": 1}}, {"k": "q"}], "ll": [[1, 2], [3, [4]]],
  "w": "abc", "nul": null, "t": true, "e": {}, "elementIndex": 0, "elementIndex1": 1
}"#;

/// The result as JSON, or `error: ` and the message.
fn outcome(expression: &str) -> String {
    let document = Value::from_json(DOCUMENT).unwrap();
    let compiled = match Expression::compile(expression) {
        Ok(compiled) => compiled,
        Err(error) => return format!("error: {error}"),
    };
    match compiled.evaluate(&document, &FixedRuntime::default()) {
        Ok(value) => value.to_json(),
        Err(error) => format!("error: {error}"),
    }
}

/// Checks expressions against outcomes, naming all that differ.
fn check(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|(expression, want)| {
            let got = outcome(expression);
            (got != *want).then(|| format!("{expression}\n  want {want}\n  got  {got}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
