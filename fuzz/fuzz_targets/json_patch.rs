//! JSON patches: two documents, a patch and an object. The differences found between before and after lead there again.

#![no_main]

use ephor_engine::rules::mutate::json_patch::{JsonPatch, PatchOp, json_patch_between};
use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::yaml::{Limits, parse_values};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    drop(JsonPatch::parse(text));
    let Ok(values) = parse_values(text, &Limits::default()) else { return };
    let [patch, before, ..] = values.as_slice() else { return };
    let Ok(patch) = JsonPatch::from_value(patch) else { return };
    let Ok(after) = patch.apply(before, &Budget::default()) else { return };
    let operations = json_patch_between(before, &after).iter().map(PatchOp::to_value).collect();
    let between = JsonPatch::from_value(&Value::array(operations)).expect("differences are a patch");
    assert_eq!(between.apply(before, &Budget::default()).expect("differences apply"), after);
});
