//! `validate` patterns: two documents, a pattern and a resource; a pattern fails as `is_match` says.

#![no_main]

use ephor_engine::rules::references;
use ephor_engine::rules::validate::pattern::Pattern;
use ephor_expr::budget::Budget;
use ephor_expr::yaml::{Limits, parse_values};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(values) = parse_values(text, &Limits::default()) else { return };
    let [pattern, resource, ..] = values.as_slice() else { return };
    let resolved = references::resolve(pattern).unwrap_or_else(|_| pattern.clone());
    let pattern = Pattern::compile(&resolved);
    assert_eq!(
        pattern.matches(resource, &Budget::default()).is_ok(),
        pattern.is_match(resource, &Budget::default()).is_ok_and(|fits| fits)
    );
});
