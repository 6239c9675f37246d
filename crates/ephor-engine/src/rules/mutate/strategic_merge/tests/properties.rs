//! Laws of strategic merge patches.

use ephor_expr::budget::Budget;
use ephor_expr::{Map, Value};
use proptest::prelude::*;

use super::pod;
use crate::rules::mutate::arbitrary;
use crate::rules::mutate::strategic_merge::{MergeSchema, apply_strategic_merge, merge, preprocess};

const KEYS: &[&str] =
    &["a", "b", "(a)", "<(b)", "+(a)", "name", "(name)", "containers", "env", "ports", "$patch", "containerPort"];
const PLAIN_KEYS: &[&str] = &["a", "b", "c"];

/// An object of a kind with keyed lists around a random `spec`.
fn resource() -> impl Strategy<Value = Value> {
    arbitrary::object(KEYS).prop_map(|spec| {
        let mut resource = pod("{}");
        if let Some(map) = resource.as_object_mut() {
            map.insert("spec", spec);
        }
        resource
    })
}

fn container(name: &str, image: i64, env: &[(String, i64)]) -> Value {
    let env = env.iter().map(|(name, value)| {
        Value::from([("name", Value::from(name.as_str())), ("value", Value::from(value.to_string()))])
    });
    let mut map = Map::new();
    map.insert("name", name);
    map.insert("image", image);
    map.insert("env", Value::array(env.collect()));
    Value::object(map)
}

/// Containers with the keys that Kubernetes asks for, each once.
fn containers() -> impl Strategy<Value = Value> {
    let env = prop::collection::btree_map("[E-H]", 0i64..3, 0..4).prop_map(|env| env.into_iter().collect::<Vec<_>>());
    prop::collection::btree_map("[a-d]", (0i64..3, env), 0..4)
        .prop_map(|all| Value::array(all.iter().map(|(name, (image, env))| container(name, *image, env)).collect()))
        .prop_map(|containers| Value::from([("spec", Value::from([("containers", containers)]))]))
}

/// The lists that the law of the next strategy is about, with their keys; `s` is a member without meaning.
const KEYED: &[(&str, &str, &str)] = &[
    ("containers", "name", "s"),
    ("hostAliases", "ip", "s"),
    ("topologySpreadConstraints", "topologyKey", "whenUnsatisfiable"),
];

/// Items that have any of the two keys, or null for them.
fn items(primary: &'static str, secondary: &'static str) -> impl Strategy<Value = Vec<Value>> {
    let key = || prop_oneof![Just(None), Just(Some(Value::Null)), "[ab]".prop_map(|key| Some(Value::from(key)))];
    prop::collection::vec((key(), key(), 0i64..2), 0..4).prop_map(move |items| {
        let item = |(first, second, other): (Option<Value>, Option<Value>, i64)| {
            let mut map = Map::new();
            map.insert("other", other);
            for (name, value) in [(primary, first), (secondary, second)] {
                if let Some(value) = value {
                    map.insert(name, value);
                }
            }
            Value::object(map)
        };
        items.into_iter().map(item).collect()
    })
}

/// Name, keys, the items of the resource and those of the patch.
fn keyed_lists() -> impl Strategy<Value = (&'static str, [&'static str; 2], Vec<Value>, Vec<Value>)> {
    prop::sample::select(KEYED).prop_flat_map(|(list, primary, secondary)| {
        (Just(list), Just([primary, secondary]), items(primary, secondary), items(primary, secondary))
    })
}

proptest! {
    #[test]
    fn every_item_of_the_resource_is_found_after_the_merge((list, keys, old, patch) in keyed_lists()) {
        let with = |items: &[Value]| Value::from([("spec", Value::from([(list, Value::array(items.to_vec()))]))]);
        let merged = merge(&with(&patch), &with(&old), MergeSchema::of("v1", "Pod")).unwrap();
        let merged = merged.at(&["spec", list]).and_then(Value::as_array).unwrap();
        let two_keys = keys[1] != "s";
        let key = |item: &Value| {
            let key = |name: &str| item.get(name).filter(|key| !key.is_null()).cloned();
            (key(keys[0]), if two_keys { key(keys[1]) } else { None })
        };
        for item in &old {
            let found = if key(item) == (None, None) {
                merged.contains(item)
            } else {
                // The patch may change the item; the key tells it from the others.
                merged.iter().any(|other| key(other) == key(item))
            };
            prop_assert!(found, "{item} of {} under {}: {merged:?}", with(&old), with(&patch));
        }
    }

    #[test]
    fn any_patch_applies_or_fails(patch in arbitrary::value(KEYS), resource in resource()) {
        if let Ok(Some(patched)) = apply_strategic_merge(&patch, &resource, &Budget::default()) {
            prop_assert_ne!(patched, resource);
        }
    }

    #[test]
    fn a_patch_of_keyed_lists_changes_nothing_the_second_time(patch in containers(), resource in containers()) {
        let schema = MergeSchema::of("v1", "Pod");
        let once = merge(&patch, &resource, schema).unwrap();
        prop_assert_eq!(merge(&patch, &once, schema).unwrap(), once);
    }

    #[test]
    fn a_patch_without_lists_and_anchors_changes_nothing_the_second_time(
        patch in arbitrary::object(PLAIN_KEYS),
        resource in arbitrary::object(PLAIN_KEYS),
    ) {
        if let Ok(once) = merge(&patch, &resource, MergeSchema::UNKNOWN) {
            prop_assert_eq!(merge(&patch, &once, MergeSchema::UNKNOWN).unwrap(), once);
        }
    }

    #[test]
    fn merging_a_resource_into_itself_or_nothing_gives_the_resource(resource in containers()) {
        let schema = MergeSchema::of("v1", "Pod");
        prop_assert_eq!(merge(&resource, &resource, schema).unwrap(), resource.clone());
        prop_assert_eq!(merge(&resource, &Value::object(Map::new()), schema).unwrap(), resource);
    }

    #[test]
    fn preprocessing_leaves_patches_without_anchors_and_empty_maps_alone(patch in containers(), resource in containers()) {
        prop_assert_eq!(preprocess(&patch, &resource, &Budget::default()).unwrap(), Some(patch));
    }
}
