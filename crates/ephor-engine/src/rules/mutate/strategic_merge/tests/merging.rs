//! The merge of patches without anchors.

use std::sync::Arc;

use ephor_expr::Value;
use ephor_expr::budget::Budget;

use super::{check, check_containers, custom, outcome, pod, value};
use crate::rules::mutate::strategic_merge::{MergeSchema, apply_strategic_merge, merge};

const A_B: &str = "[{name: a, image: x}, {name: b, image: x}]";

#[test]
fn maps_merge_null_deletes_scalars_replace() {
    check(
        custom,
        &[
            ("{a: 2}", "{a: 1, b: 1}", "{a: 2, b: 1}"),
            ("{m: {q: 1}}", "{m: {p: 1}}", "{m: {p: 1, q: 1}}"),
            ("{m: null}", "{m: {x: 1}, k: 1}", "{k: 1}"),
            ("{m: {x: null}}", "{m: {x: 1}}", "{m: {}}"),
            ("{m: null}", "{k: 1}", "skip"),
            ("{m: {x: null}}", "{k: 1}", "{k: 1, m: {}}"),
            ("{m: {x: null, z: 1}}", "{k: 1}", "{k: 1, m: {z: 1}}"),
            ("{m: {x: 1}}", "{m: null}", "{m: {x: 1}}"),
            ("{m: [1]}", "{m: null}", "{m: [1]}"),
            ("{m: []}", "{m: [1]}", "{m: []}"),
            ("{m: [{a: null}]}", "{m: [1]}", "{m: [{a: null}]}"),
            ("{a: 1}", "{a: 1}", "skip"),
            ("{a: 1.0, l: [1]}", "{a: 1, l: [1]}", "skip"),
        ],
    );
}

#[test]
fn what_is_a_string_stays_one() {
    check(
        custom,
        &[
            ("{a: 5}", "{a: '4'}", "{a: '5'}"),
            ("{a: 5}", "{a: '5'}", "skip"),
            ("{a: true}", "{a: x}", "{a: 'true'}"),
            ("{a: 1.5}", "{a: ''}", "{a: '1.5'}"),
            ("{a: '5'}", "{a: 4}", "{a: '5'}"),
            ("{a: 5}", "{a: true}", "{a: 5}"),
            ("{a: [5]}", "{a: ['4']}", "{a: [5]}"),
        ],
    );
}

#[test]
fn empty_maps_of_a_patch_are_dropped() {
    check(
        custom,
        &[
            // 6.5
            ("{m: {p: {}, q: 1}}", "{a: 1}", "{a: 1, m: {q: 1}}"),
            ("{m: {p: {}}}", "{a: 1}", "skip"),
            ("{m: [{}, 1]}", "{}", "{m: [1]}"),
            ("{m: [{}]}", "{m: [2]}", "skip"),
            ("{m: {}}", "{m: {x: 1}}", "skip"),
            ("{m: [[]]}", "{}", "{m: [[]]}"),
            // The reference drops only the first of several empty items.
            ("{m: [{}, {}, 1, {}]}", "{}", "{m: [1]}"),
        ],
    );
    // 6.5
    check(pod, &[("{volumes: [{name: v, emptyDir: {}}]}", "{}", "{volumes: [{name: v}]}")]);
}

#[test]
fn shapes_must_agree() {
    let wrong = |expected: &str, actual: &str, contents: &str| {
        format!("error: wrong node kind: expected {expected} but got {actual}: node contents:\n{contents}\n")
    };
    check(
        custom,
        &[
            // 3.3
            ("{m: 5}", "{m: {x: 1}}", &wrong("MappingNode", "ScalarNode", "5")),
            ("{m: 5}", "{m: [1]}", &wrong("SequenceNode", "ScalarNode", "5")),
            ("{m: [1]}", "{m: 5}", &wrong("ScalarNode", "SequenceNode", "[1]")),
            ("{m: [1]}", "{m: {x: 1}}", &wrong("MappingNode", "SequenceNode", "[1]")),
            ("{m: {a: 1}}", "{m: [1]}", &wrong("SequenceNode", "MappingNode", r#"{"a": 1}"#)),
            (
                "{m: {a: x, b: [1, {c: null}]}}",
                "{m: 5}",
                &wrong("ScalarNode", "MappingNode", r#"{"a": "x", "b": [1, {"c": null}]}"#),
            ),
            ("{m: \"<a> \\\"b\\\"\\n\"}", "{m: {x: 1}}", &wrong("MappingNode", "ScalarNode", r#""<a> \"b\"\n""#)),
            (
                "{m: [{a: 1}]}",
                "{m: 5}",
                "error: failed to preProcess rule: wrong node kind: expected SequenceNode but got ScalarNode: node \
                 contents:\n5\n",
            ),
        ],
    );
}

#[test]
fn directives_replace_and_delete() {
    check(
        custom,
        &[
            ("{x: {$patch: delete}}", "{x: {a: 1}, z: 1}", "{z: 1}"),
            ("{x: {$patch: delete, b: 1}}", "{x: {a: 1}, z: 1}", "{z: 1}"),
            ("{x: {$patch: replace, b: 1}}", "{x: {a: 1}}", "{x: {b: 1}}"),
            ("{x: {$patch: replace}}", "{x: {a: 1}}", "{x: {}}"),
            ("{x: {$patch: merge, b: 1}}", "{x: {a: 1}}", "{x: {a: 1, b: 1}}"),
            ("{x: {$patch: delete}}", "{z: 1}", "skip"),
            ("{x: {$patch: replace, b: 1}}", "{z: 1}", "{x: {b: 1}, z: 1}"),
            ("{x: {b: {$patch: delete}, c: 1}}", "{z: 1}", "{x: {c: 1}, z: 1}"),
            ("{x: {$patch: other}}", "{x: {a: 1}}", "error: unknown patch strategy 'other'"),
            ("{x: {$patch: 5}}", "{x: {a: 1}}", "error: unknown patch strategy '5'"),
            // In lists that are replaced, and with other names, they are ordinary members.
            ("{x: [{$patch: delete}]}", "{x: [1]}", "{x: [{$patch: delete}]}"),
            ("{x: {$retainKeys: [a], b: 1}}", "{x: {c: 1}}", "{x: {$retainKeys: [a], b: 1, c: 1}}"),
        ],
    );
    check_containers(&[
        // 6.5
        ("[{name: a, $patch: delete}]", A_B, "[{name: b, image: x}]"),
        ("[{$patch: replace}, {name: k}]", A_B, "[{name: k}]"),
        ("[{name: k}, {$patch: replace}]", A_B, "[{name: k}]"),
        ("[{$patch: delete}, {name: k}]", A_B, "{}"),
        ("[{$patch: merge}, {name: a, tty: true}]", A_B, "[{name: a, image: x, tty: true}, {name: b, image: x}]"),
        ("[{name: z, $patch: delete}]", A_B, "skip"),
        ("[{name: b, $patch: delete}]", "{}", "{containers: []}"),
        ("[{name: z, $patch: replace, k: 1}]", A_B, "[{name: z, k: 1}, {name: a, image: x}, {name: b, image: x}]"),
        ("[{name: b, $patch: replace, k: 1}]", A_B, "[{name: b, image: x}, {name: a, image: x}]"),
        ("[{name: a, $patch: other}]", A_B, "error: unknown patch strategy 'other'"),
    ]);
    let whole = |patch| outcome(&value(patch), &custom("{a: 1}"));
    assert_eq!(whole("{$patch: delete}"), "error: filter cannot create or delete objects");
    assert_eq!(whole("{$patch: replace, a: 1}"), r#"{"a":1}"#);
}

#[test]
fn items_of_a_patch_come_first() {
    check_containers(&[
        // 6.5
        ("[{name: b, image: z}]", A_B, "[{name: b, image: z}, {name: a, image: x}]"),
        (
            "[{name: b, tty: true}, {name: a, tty: true}]",
            "[{name: a, image: x}, {name: b, image: x}, {name: c, image: x}]",
            "[{name: b, image: x, tty: true}, {name: a, image: x, tty: true}, {name: c, image: x}]",
        ),
        ("[{name: k, image: z}]", A_B, "[{name: k, image: z}, {name: a, image: x}, {name: b, image: x}]"),
        (
            "[{name: a, env: [{name: E2}, {name: E1, value: '1'}]}]",
            "[{name: a, env: [{name: E0}, {name: E1, value: old}]}]",
            "[{name: a, env: [{name: E2}, {name: E1, value: '1'}, {name: E0}]}]",
        ),
        ("[{name: b}]", A_B, "[{name: b, image: x}, {name: a, image: x}]"),
        ("[{name: a}]", A_B, "skip"),
        ("[]", A_B, "skip"),
        ("[{name: a, image: null}]", A_B, "[{name: a}, {name: b, image: x}]"),
        ("[{name: k, image: null}]", "[]", "[{name: k}]"),
        ("[{name: 5, k: 1}]", "[{name: '5'}]", "[{name: '5', k: 1}]"),
    ]);
}

#[test]
fn lists_without_key_are_replaced() {
    check(
        pod,
        &[
            // 6.5
            ("{tolerations: [{key: k}]}", "{tolerations: [{key: o}]}", "{tolerations: [{key: k}]}"),
            (
                "{containers: [{name: a, args: [k], envFrom: [{prefix: k}]}]}",
                "{containers: [{name: a, args: [o], envFrom: [{prefix: o}]}]}",
                "{containers: [{name: a, args: [k], envFrom: [{prefix: k}]}]}",
            ),
        ],
    );
    let role = Value::from([("apiVersion", "rbac.authorization.k8s.io/v1".into()), ("kind", "Role".into())]);
    let role = outcome(
        &value("{rules: [{verbs: [get]}]}"),
        &merge(&value("{rules: [1]}"), &role, MergeSchema::UNKNOWN).unwrap(),
    );
    assert!(role.contains(r#""rules":[{"verbs":["get"]}]"#), "{role}");
    check(
        custom,
        &[
            // 6.5
            (
                "{containers: [{(name): a, tty: true}]}",
                "{containers: [{name: a, image: x}, {name: b, image: x}]}",
                "{containers: [{name: a, tty: true}]}",
            ),
        ],
    );
}

#[test]
fn a_patch_item_without_key_is_added() {
    // The reference loses the items that no item before this one names.
    check_containers(&[
        ("[{image: z}]", A_B, "[{image: z}, {name: a, image: x}, {name: b, image: x}]"),
        (
            "[{name: a, tty: true}, {image: z}]",
            A_B,
            "[{name: a, image: x, tty: true}, {image: z}, {name: b, image: x}]",
        ),
        (
            "[{image: z}, {name: a, tty: true}]",
            A_B,
            "[{image: z}, {name: a, image: x, tty: true}, {name: b, image: x}]",
        ),
        ("[{image: y}, {image: z}]", A_B, "[{image: y}, {image: z}, {name: a, image: x}, {name: b, image: x}]"),
    ]);
    check(
        pod,
        &[
            // 6.5
            ("{volumes: [{secret: {a: 1}}]}", "{}", "{volumes: [{secret: {a: 1}}]}"),
            // The reference loses the volume of the resource.
            ("{volumes: [{secret: {a: 1}}]}", "{volumes: [{name: v}]}", "{volumes: [{secret: {a: 1}}, {name: v}]}"),
            // The reference keeps only the item without key.
            ("{volumes: [{name: v}, {secret: {a: 1}}]}", "{}", "{volumes: [{name: v}, {secret: {a: 1}}]}"),
        ],
    );
}

#[test]
fn a_patch_item_with_a_null_key_has_no_effect() {
    check_containers(&[("[{name: null}]", A_B, "skip"), ("[null]", A_B, "skip")]);
    check(
        pod,
        &[
            ("{hostAliases: [{ip: null}]}", "{}", "{hostAliases: []}"),
            ("{hostAliases: [{ip: null, hostnames: [h]}]}", "{}", "{hostAliases: []}"),
            // The reference loses what is beside it.
            ("{hostAliases: [{ip: null}, {ip: b}]}", "{}", "{hostAliases: [{ip: b}]}"),
            ("{hostAliases: [{ip: null}]}", "{hostAliases: [{ip: a}]}", "skip"),
        ],
    );
    let service = |ports: &str| super::object("v1", "Service", ports);
    check(
        service,
        &[
            // One key is enough.
            ("{ports: [{port: null, protocol: TCP}]}", "{}", "{ports: [{protocol: TCP}]}"),
            ("{ports: [{port: null, protocol: TCP}]}", "{ports: [{port: 8}]}", "{ports: [{protocol: TCP}, {port: 8}]}"),
            ("{ports: [{port: 8, protocol: null, name: y}]}", "{ports: [{port: 8}]}", "{ports: [{port: 8, name: y}]}"),
        ],
    );
}

#[test]
fn items_that_are_no_maps_fail() {
    let error = "error: wrong node kind: expected MappingNode but got ScalarNode: node contents:\n5\n";
    check(pod, &[("{volumes: [5]}", "{}", error), ("{volumes: [{name: w}, 5]}", "{volumes: [{name: v}]}", error)]);
}

#[test]
fn items_with_equal_keys_collapse() {
    let env = |items: &str| format!("[{{name: a, env: {items}}}]");
    let row = |patch: &str, resource: &str, want: &str| {
        check_containers(&[(&env(patch), &env(resource), &env(want))]);
    };
    // 6.5
    check_containers(&[(
        "[{name: a, env: [{name: E, value: '1'}, {name: E, value: '2'}]}]",
        "[{name: a}]",
        "[{name: a, env: [{name: E, value: '2'}]}]",
    )]);
    row(
        "[{name: E, value: '1'}, {name: E, value: '2'}]",
        "[{name: E, value: '0'}, {name: F}]",
        "[{name: E, value: '1'}, {name: F}]",
    );
    row(
        "[{name: G}]",
        "[{name: E, value: '0'}, {name: F}, {name: E, value: '5'}]",
        "[{name: G}, {name: E, value: '5'}, {name: F}]",
    );
    // The reference loses the patch here.
    row(
        "[{name: E, value: '1'}]",
        "[{name: E, value: '0', k: 1}, {name: F}, {name: E, value: '5'}]",
        "[{name: E, value: '1'}, {name: F}]",
    );
    // The reference loses the items after the one without key.
    row("[{name: F, value: '1'}]", "[{value: '0'}, {name: F}]", "[{name: F, value: '1'}, {value: '0'}]");
}

#[test]
fn lists_with_two_keys_match_on_both() {
    let ports = |items: &str| format!("[{{name: a, ports: {items}}}]");
    for (patch, resource, want) in [
        // 6.5
        (
            "[{containerPort: 80, name: k}]",
            "[{containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: UDP}]",
            "skip",
        ),
        (
            "[{containerPort: 80, name: k}]",
            "[{containerPort: 80}, {containerPort: 81}]",
            "[{containerPort: 80, name: k}, {containerPort: 81}]",
        ),
        ("[{containerPort: 80, protocol: TCP, name: k}]", "[{containerPort: 80}, {containerPort: 81}]", "skip"),
        (
            "[{containerPort: 80, protocol: TCP, name: k}]",
            "[{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]",
            "[{containerPort: 80, protocol: TCP, name: k}, {containerPort: 80, protocol: UDP}]",
        ),
        (
            "[{containerPort: 90}]",
            "[{containerPort: 80, protocol: TCP}]",
            "[{containerPort: 90}, {containerPort: 80, protocol: TCP}]",
        ),
        // Items stay in their places, unless no item has the second key.
        (
            "[{containerPort: 80, protocol: UDP, name: k}]",
            "[{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]",
            "[{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP, name: k}]",
        ),
        (
            "[{containerPort: 80, protocol: SCTP}, {containerPort: 81, protocol: TCP, name: k}]",
            "[{containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: TCP}]",
            "[{containerPort: 80, protocol: SCTP}, {containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: TCP, name: k}]",
        ),
        (
            "[{containerPort: 81, name: k}]",
            "[{containerPort: 80}, {containerPort: 81}]",
            "[{containerPort: 81, name: k}, {containerPort: 80}]",
        ),
        ("[{containerPort: '80', name: k}]", "[{containerPort: 80}]", "[{containerPort: '80', name: k}]"),
        (
            "[{containerPort: 80, protocol: TCP, $patch: delete}]",
            "[{containerPort: 80, protocol: TCP}, {containerPort: 81, protocol: TCP}]",
            "[{containerPort: 81, protocol: TCP}]",
        ),
        // The reference loses the items of the resource.
        ("[{name: k}]", "[{containerPort: 80, protocol: TCP}]", "[{name: k}, {containerPort: 80, protocol: TCP}]"),
        // Only the second key: added, unless an item has it together with the first.
        ("[{protocol: TCP, name: k}]", "[{containerPort: 80}]", "[{protocol: TCP, name: k}, {containerPort: 80}]"),
        ("[{protocol: TCP, name: k}]", "[{containerPort: 80, protocol: TCP}]", "skip"),
        (
            "[{protocol: TCP, name: k}]",
            "[{containerPort: 80, protocol: UDP}]",
            "[{protocol: TCP, name: k}, {containerPort: 80, protocol: UDP}]",
        ),
        ("[{protocol: TCP, name: k}]", "[{protocol: TCP, name: o}]", "[{protocol: TCP, name: k}]"),
        (
            "[{protocol: TCP, name: k}, {containerPort: 80, name: y}]",
            "[{containerPort: 80}]",
            "[{protocol: TCP, name: k}, {containerPort: 80, name: y}]",
        ),
    ] {
        let want = if want == "skip" { want.to_owned() } else { ports(want) };
        check_containers(&[(&ports(patch), &ports(resource), &want)]);
    }
}

#[test]
fn untouched_parts_stay_shared() {
    let resource = pod("{containers: [{name: a, args: [x]}, {name: b, image: x}], volumes: [{name: v}]}");
    let patched =
        apply_strategic_merge(&value("{spec: {containers: [{name: a, image: z}]}}"), &resource, &Budget::default())
            .unwrap()
            .unwrap();
    let shared = |path: &[&str], items: &[usize]| {
        let find =
            |root: &Value| items.iter().try_fold(root.at(path)?.clone(), |value, i| value.as_array()?.get(*i).cloned());
        match (find(&resource), find(&patched)) {
            (Some(Value::Array(a)), Some(Value::Array(b))) => Arc::ptr_eq(&a, &b),
            (Some(Value::Object(a)), Some(Value::Object(b))) => Arc::ptr_eq(&a, &b),
            _ => false,
        }
    };
    assert!(shared(&["spec", "volumes"], &[]));
    assert!(shared(&["spec", "containers"], &[1]));
    assert!(!shared(&["spec", "containers"], &[0]));
}

#[test]
fn deep_patches_fail_instead_of_overflowing() {
    let mut patch = Value::from(1);
    for _ in 0..1000 {
        patch = Value::from([("a", patch)]);
    }
    assert_eq!(
        outcome(&patch, &custom("{}")),
        "error: failed to preProcess rule: the patch nests deeper than 256 levels"
    );
    assert!(merge(&patch, &custom("{}"), MergeSchema::UNKNOWN).is_err());
}
