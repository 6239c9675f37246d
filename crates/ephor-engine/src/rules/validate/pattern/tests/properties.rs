//! Laws of matching.

use ephor_expr::budget::Budget;
use proptest::prelude::*;

use super::{Mismatch, Pattern, Value};

fn scalar(text: &'static str) -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..70).prop_map(Value::from),
        (-30i64..30).prop_map(|n| Value::from(n as f64 / 4.0)),
        text.prop_map(Value::from),
    ]
}

/// Trees of the scalars given, with keys like `key`.
fn tree(text: &'static str, key: &'static str) -> impl Strategy<Value = Value> {
    scalar(text).prop_recursive(4, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::array),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|members| Value::object(members.into_iter().map(|(k, v)| (k.into(), v)).collect())),
        ]
    })
}

const EXPRESSION: &str = r"[<>=!|&?*\- 0-9.a-cmhGi]{0,6}";
const ANCHORED: &str = r"[+<=X^]?\((a|b|metadata|labels)\)|a|b|metadata|labels|a\*|=\(\?\)";
const PLAIN: &str = "a|b|metadata|labels|ab";

proptest! {
    #[test]
    fn every_pattern_meets_every_resource_without_panic(
        pattern in tree(EXPRESSION, ANCHORED),
        resource in tree(EXPRESSION, PLAIN),
    ) {
        let pattern = Pattern::compile(&pattern);
        let result = pattern.matches(&resource, &Budget::default());
        prop_assert_eq!(pattern.is_match(&resource, &Budget::default()).unwrap(), result.is_ok());
        if let Err(Mismatch::Fail { path, .. }) = result {
            prop_assert!(path.starts_with('/') && path.ends_with('/'));
        }
    }

    #[test]
    fn any_text_is_a_pattern(pattern in ".*", resource in ".*") {
        let compiled = Pattern::compile(&Value::from(pattern.as_str()));
        let _ = compiled.matches(&Value::from(resource), &Budget::default());
        // The whole text always matches itself.
        prop_assert!(compiled.is_match(&Value::from(pattern), &Budget::default()).unwrap());
    }

    #[test]
    fn maps_of_scalars_match_themselves(value in tree("[a-z]{0,4}", PLAIN).prop_filter("maps only", no_lists)) {
        prop_assert!(Pattern::compile(&value).is_match(&value, &Budget::default()).unwrap(), "{}", value);
    }

    #[test]
    fn more_keys_do_not_matter(
        value in tree("[a-z]{0,4}", PLAIN).prop_filter("maps only", |v| v.as_object().is_some() && no_lists(v)),
        more in tree("[a-z]{0,4}", PLAIN),
    ) {
        let mut larger = value.clone();
        larger.as_object_mut().unwrap().insert("zz", more);
        prop_assert!(Pattern::compile(&value).is_match(&larger, &Budget::default()).unwrap());
    }
}

/// Lists do not match themselves: their first item speaks for all.
fn no_lists(value: &Value) -> bool {
    match value {
        Value::Array(_) => false,
        Value::Object(map) => map.values().all(no_lists),
        _ => true,
    }
}
