//! Tables of observed matches.

mod properties;
mod scalars;
mod structure;

use ephor_expr::Value;
use ephor_expr::budget::Budget;

use super::{Mismatch, Pattern};

fn json(text: &str) -> Value {
    Value::from_json(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// The verdict as the reference's tables write it: `P`, `F <path>`, `E <message>` or `S <message>`.
fn verdict(pattern: &Pattern, resource: &Value) -> String {
    let result = pattern.matches(resource, &Budget::default());
    assert_eq!(pattern.is_match(resource, &Budget::default()), Ok(result.is_ok()));
    match result {
        Ok(()) => "P".to_owned(),
        Err(Mismatch::Fail { path, .. }) => format!("F {path}"),
        Err(Mismatch::Error { message }) => format!("E {message}"),
        Err(Mismatch::Skip { message }) => format!("S {message}"),
        Err(Mismatch::Spent(error)) => panic!("{error}"),
    }
}
