//! Anchors in lists of maps.

use super::{check, check_containers, outcome, pod, value};

const A_B: &str = "[{name: a, image: x}, {name: b, image: x}]";
const A_BB: &str = "[{name: a, image: x}, {name: b, image: zz}]";
const A_BB_C: &str = "[{name: a, image: x}, {name: b, image: zz}, {name: c, image: zq}]";

#[test]
fn conditional_items_apply_to_the_items_that_meet_them() {
    check_containers(&[
        // 6.5
        (
            "[{(image): 'z*', tty: true}]",
            A_BB_C,
            "[{name: b, image: zz, tty: true}, {name: c, image: zq, tty: true}, {name: a, image: x}]",
        ),
        // The condition's own item is gone, whatever stands around it.
        (
            "[{name: k}, {(image): 'z*', tty: true}, {name: l}]",
            A_BB,
            "[{name: k}, {name: l}, {name: b, image: zz, tty: true}, {name: a, image: x}]",
        ),
        ("[{(image): 'z*', name: q, tty: true}]", A_BB, "[{name: b, image: zz, tty: true}, {name: a, image: x}]"),
        // Nothing but conditions: nothing to merge.
        ("[{(image): 'z*'}]", A_BB, "skip"),
        ("[{(image): 'z*', tty: true}]", "[{image: zz}]", "skip"),
        ("[{(image): 'z*', tty: true}]", "{}", "skip"),
        ("[{(image): 'z*', tty: true}]", "{containers: null}", "skip"),
        (
            "[{(image): 'z*', tty: true}]",
            "{containers: 5}",
            "error: failed to preProcess rule: wrong node kind: expected SequenceNode but got ScalarNode: node \
             contents:\n5\n",
        ),
    ]);
}

#[test]
fn an_item_that_nothing_meets_only_loses_itself() {
    // 6.5
    let patch = value("{metadata: {labels: {l: '1'}}, spec: {containers: [{(image): 'q*', tty: true}]}}");
    let labelled = outcome(&patch, &pod("{containers: [{name: a, image: x}]}"));
    assert!(labelled.contains(r#""metadata":{"labels":{"l":"1"}}"#), "{labelled}");
    assert!(labelled.contains(r#""containers":[{"image":"x","name":"a"}]"#), "{labelled}");
    check(
        pod,
        &[
            // 6.5: no conditions on items without name.
            ("{tolerations: [{(key): k, operator: Exists}]}", "{tolerations: [{key: k}]}", "skip"),
        ],
    );
}

#[test]
fn global_items_only_guard() {
    check(
        pod,
        &[
            // 6.5
            (
                "{containers: [{<(image): 'z*', name: b, tty: true}], hostNetwork: true}",
                "{containers: [{name: a, image: x}, {name: b, image: zz}]}",
                "{containers: [{name: a, image: x}, {name: b, image: zz}], hostNetwork: true}",
            ),
            ("{containers: [{<(image): 'q*'}], hostNetwork: true}", "{containers: [{name: a, image: x}]}", "skip"),
            ("{initContainers: [{<(image): 'q*'}], hostNetwork: true}", "{}", "skip"),
            (
                "{initContainers: [{<(image): 'q*'}], hostNetwork: true}",
                "{initContainers: []}",
                "{initContainers: [], hostNetwork: true}",
            ),
            // Where another condition fails first, the item is lost and the rest applies.
            (
                "{containers: [{<(image): 'z*', (name): q}], hostNetwork: true}",
                "{containers: [{name: b, image: zz}]}",
                "{containers: [{name: b, image: zz}], hostNetwork: true}",
            ),
            (
                "{containers: [{<(image): 'z*', (name): q}], hostNetwork: true}",
                "{containers: [{name: a, image: x}, {name: b, image: zz}]}",
                "skip",
            ),
            // Deeper ones as well.
            (
                "{containers: [{name: a, m: {<(p): 1}}], hostNetwork: true}",
                "{containers: [{name: a, m: {p: 2}}]}",
                "skip",
            ),
        ],
    );
}

#[test]
fn items_with_additions_apply_to_all_named_items() {
    check_containers(&[
        // 6.5
        ("[{name: a, +(tty): true}]", A_B, "[{name: a, image: x, tty: true}, {name: b, image: x, tty: true}]"),
        (
            "[{name: k, m: {+(tty): true}}]",
            A_B,
            "[{name: a, image: x, m: {tty: true}}, {name: b, image: x, m: {tty: true}}]",
        ),
        ("[{name: k, +(tty): true}]", "{}", "skip"),
    ]);
    check(
        pod,
        &[
            // 6.5
            (
                "{volumes: [{name: v, secret: {+(secretName): z}}]}",
                "{volumes: [{name: w}]}",
                "{volumes: [{name: w, secret: {secretName: z}}]}",
            ),
        ],
    );
}

#[test]
fn decisions_for_one_item_hold_for_those_after_it() {
    check_containers(&[
        // 6.5
        (
            "[{(name): '*', +(tty): true}]",
            "[{name: a}, {name: b, tty: false}]",
            "[{name: a, tty: true}, {name: b, tty: true}]",
        ),
        ("[{(name): '*', +(tty): true}]", "[{name: a, tty: false}, {name: b}]", "skip"),
        (
            "[{(name): '*', resources: {limits: {+(cpu): 1, +(memory): 2}}}]",
            "[{name: a, resources: {limits: {cpu: 9}}}, {name: b}]",
            "[{name: a, resources: {limits: {cpu: 9, memory: 2}}}, {name: b, resources: {limits: {memory: 2}}}]",
        ),
        // Even if the condition is not met for the first.
        (
            "[{(image): 'z*', +(tty): true, k: 1}]",
            "[{name: a, image: x, tty: false}, {name: b, image: zz}]",
            "[{name: b, image: zz, k: 1}, {name: a, image: x, tty: false}]",
        ),
        // Items of nested lists that the first matched are added to the second.
        (
            "[{(image): 'z*', env: [{(name): 'E*', value: '1'}]}]",
            "[{name: b, image: zz, env: [{name: E1}, {name: F}]}, {name: c, image: zq, env: [{name: E2}]}]",
            "[{name: b, image: zz, env: [{name: E1, value: '1'}, {name: F}]}, \
              {name: c, image: zq, env: [{name: E1, value: '1'}, {name: E2, value: '1'}]}]",
        ),
    ]);
}

#[test]
fn all_anchored_items_are_dropped_however_many_there_are() {
    // 6.5 has what the reference makes of these: lost containers, and a crash.
    check_containers(&[
        (
            "[{(name): a, tty: true}, {(name): b, stdin: true}]",
            A_B,
            "[{name: a, image: x, tty: true}, {name: b, image: x, stdin: true}]",
        ),
        ("[{(name): q, tty: true}, {(name): r, stdin: true}]", A_B, "skip"),
        (
            "[{(name): q, tty: true}, {name: k}, {(name): b, stdin: true}, {(name): r}]",
            A_B,
            "[{name: k}, {name: b, image: x, stdin: true}, {name: a, image: x}]",
        ),
    ]);
}

#[test]
fn conditions_on_maps_of_items_are_merged() {
    check_containers(&[
        ("[{(r): {a: '1'}, k: 1}]", "[{name: a, r: {a: 1}}, {name: b}]", "[{name: a, r: {a: '1'}, k: 1}, {name: b}]"),
        ("[{(r): {(a): 1}, k: 1}]", "[{name: a, r: {a: 1}}]", "[{name: a, r: {a: 1}, k: 1}]"),
        ("[{(r): {+(a): 1}}]", "[{name: a}, {name: b, r: {z: 3}}]", "[{name: b, r: {z: 3, a: 1}}, {name: a}]"),
    ]);
}

#[test]
fn expansion_is_bounded() {
    // Each item of the outer list leaves its inner items to those after it.
    let inner: Vec<String> = (0..100).map(|i| format!("{{name: i{i}}}")).collect();
    let outer: Vec<String> = (0..100).map(|i| format!("{{name: o{i}, l: [{}]}}", inner.join(", "))).collect();
    let resource = super::custom(&format!("{{l: [{}]}}", outer.join(", ")));
    assert_eq!(
        outcome(&value("{spec: {l: [{+(k): 1, l: [{+(k): 1}]}]}}"), &resource),
        "error: failed to preProcess rule: the patch expands to too many parts"
    );
}
