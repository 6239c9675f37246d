//! Laws of JSON patches.

use ephor_expr::budget::Budget;
use ephor_expr::{Map, Value};
use proptest::prelude::*;

use crate::rules::mutate::arbitrary;
use crate::rules::mutate::json_patch::{JsonPatch, json_patch_between};

const KEYS: &[&str] = &["a", "b", "c/d", "e~f", "0", "-", ""];
const STEPS: &[&str] = &["a", "b", "c~1d", "e~0f", "0", "1", "2", "7", "-", "-1", "-2", "-9", "", "x", "99999999999"];
const OPS: &[&str] = &["add", "remove", "replace", "move", "copy", "test", "other"];

fn pointer() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(STEPS), 0..4)
        .prop_map(|steps| steps.iter().fold(String::new(), |text, step| text + "/" + step))
}

fn operation() -> impl Strategy<Value = Value> {
    (prop::sample::select(OPS), pointer(), pointer(), arbitrary::value(KEYS)).prop_map(|(op, path, from, value)| {
        let mut map = Map::new();
        map.insert("op", op);
        map.insert("path", path);
        map.insert("from", from);
        map.insert("value", value);
        Value::object(map)
    })
}

proptest! {
    #[test]
    fn the_difference_leads_from_one_document_to_the_other(
        old in arbitrary::object(KEYS),
        new in arbitrary::object(KEYS),
    ) {
        let ops = json_patch_between(&old, &new);
        let patch = JsonPatch { ops };
        prop_assert_eq!(patch.apply(&old, &Budget::default()).unwrap(), new.clone());
        prop_assert_eq!(JsonPatch::from_value(&patch.to_value()).unwrap(), patch);
        prop_assert_eq!(json_patch_between(&new, &new), vec![]);
    }

    #[test]
    fn any_patch_applies_or_fails_and_what_it_did_is_a_difference(
        ops in prop::collection::vec(operation(), 0..5),
        document in arbitrary::object(KEYS),
    ) {
        let patched = JsonPatch::from_value(&Value::array(ops)).and_then(|patch| patch.apply(&document, &Budget::default()));
        if let Ok(patched) = patched {
            let again = JsonPatch { ops: json_patch_between(&document, &patched) };
            prop_assert_eq!(again.apply(&document, &Budget::default()).unwrap(), patched);
        }
    }

    #[test]
    fn any_text_is_a_patch_or_an_error(text in "[-\\[{}\\]:, a-z/0\"]{0,60}") {
        let _ = JsonPatch::parse(&text);
    }
}
