//! Tests of JSON patches. Rows marked with a section are observations of validate-mutate-autogen.md.

mod apply;
mod diff;
mod parse;
mod properties;

use ephor_expr::budget::Budget;
use ephor_expr::{Value, yaml};

use super::JsonPatch;

fn value(text: &str) -> Value {
    yaml::parse_value(text).unwrap()
}

/// The patched document as JSON, or the error.
fn patched(patch: &str, document: &str) -> String {
    match JsonPatch::parse(patch).and_then(|patch| patch.apply(&value(document), &Budget::default())) {
        Ok(value) => value.to_json(),
        Err(error) => error.to_string(),
    }
}

/// Checks rows of patch, document, and result: a document, or `error: ` and a text.
fn check(rows: &[(&str, &str, &str)]) {
    for (patch, document, want) in rows {
        let want = match want.strip_prefix("error: ") {
            Some(text) => text.to_owned(),
            None => value(want).to_json(),
        };
        assert_eq!(patched(patch, document), want, "{patch} on {document}");
    }
}
