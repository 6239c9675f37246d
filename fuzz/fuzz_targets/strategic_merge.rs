//! Strategic merges with anchors: two documents, a patch and a resource.

#![no_main]

use ephor_engine::rules::mutate::apply_strategic_merge;
use ephor_expr::budget::Budget;
use ephor_expr::yaml::{Limits, parse_values};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(values) = parse_values(text, &Limits::default()) else { return };
    let [patch, resource, ..] = values.as_slice() else { return };
    if let Ok(Some(after)) = apply_strategic_merge(patch, resource, &Budget::default()) {
        drop(apply_strategic_merge(patch, &after, &Budget::default()));
    }
});
