//! Anchors in maps.

use super::{check, custom, outcome, pod, value};
use crate::rules::mutate::strategic_merge::preprocess;
use ephor_expr::budget::Budget;

#[test]
fn additions_leave_what_is_there() {
    check(
        custom,
        &[
            ("{+(b): 2}", "{a: 1}", "{a: 1, b: 2}"),
            ("{+(a): 2}", "{a: 1}", "skip"),
            ("{+(a): 2}", "{a: null}", "skip"),
            ("{m: {+(a): 2}}", "{}", "{m: {a: 2}}"),
            ("{+(m): {+(a): 2}}", "{}", "{m: {a: 2}}"),
            ("{+(m): {+(a): 2}}", "{m: {}}", "skip"),
            ("{+(m): {}}", "{}", "skip"),
            ("{+(a): 1, a: 2}", "{}", "{a: 1}"),
            ("{+(a): 1, a: 2}", "{a: 3}", "{a: 2}"),
            ("{' +(a) ': 2}", "{}", "{a: 2}"),
        ],
    );
}

#[test]
fn an_unmet_condition_empties_the_whole_patch() {
    check(
        custom,
        &[
            // 6.5
            ("{(a): 99, +(b): 2, c: 3}", "{a: 1}", "skip"),
            ("{(m): {(x): 1, z: 2}}", "{m: {x: 1}}", "skip"),
            ("{(m): {x: 1}, b: 3}", "{m: {x: 1}}", "{m: {x: 1}, b: 3}"),
            ("{(m): {x: 1}, b: 3}", "{m: {x: 2}}", "skip"),
            ("{<(z): 2, b: 3}", "{a: 1}", "skip"),
            ("{(a): 1, b: 3}", "{a: 1}", "{a: 1, b: 3}"),
            ("{<(a): 1, b: 3}", "{a: 1}", "{a: 1, b: 3}"),
            ("{(a): 1, b: 3}", "{}", "skip"),
            ("{(a): null, b: 3}", "{}", "skip"),
            ("{m: {(a): 1}}", "{m: 5}", "skip"),
            ("{m: {(a): 1}, b: 3}", "{m: {a: 2}}", "skip"),
        ],
    );
    // 6.5: also what stands beside, far away.
    let patch = value("{metadata: {labels: {l: '1'}}, spec: {m: {(x): 1, z: 2}}}");
    assert_eq!(outcome(&patch, &custom("{m: {x: 2}}")), "skip");
    assert_ne!(outcome(&patch, &custom("{m: {x: 1}}")), "skip");
}

#[test]
fn additions_directly_inside_a_condition_take_its_place() {
    check(
        custom,
        &[
            // 6.5
            ("{(m): {+(z): 2, x: 99}, b: 3}", "{m: {x: 1}}", "{b: 3, m: {x: 99, z: 2}}"),
            ("{(m): {+(z): 2, x: 99}}", "{m: {x: 1, z: 7}}", "{m: {x: 99, z: 7}}"),
            ("{(m): {+(z): 2, (x): 99}}", "{m: {x: 1}}", "{m: {x: 1, z: 2}}"),
            ("{(m): {+(z): 2}}", "{}", "skip"),
            ("{(m): {+(z): 2}, b: 3}", "{m: null}", "{m: {z: 2}, b: 3}"),
            ("{(m): {z: {+(x): 2}}, b: 3}", "{m: {z: {}}}", "skip"),
        ],
    );
}

#[test]
fn conditions_on_maps_and_lists_are_merged_without_their_anchors() {
    check(
        custom,
        &[
            ("{(m): {x: '1'}}", "{m: {x: 1}}", "{m: {x: '1'}}"),
            ("{(m): {(x): 1, z: '*'}}", "{m: {x: 1, z: 2}}", "{m: {x: 1, z: '*'}}"),
            ("{(m): {x: {(p): 3, z: '1'}}, k: 1}", "{m: {x: {z: 1, p: 3}}}", "{m: {x: {z: '1', p: 3}}, k: 1}"),
            ("{(m): ['?*'], k: 1}", "{m: [a, b]}", "{m: ['?*'], k: 1}"),
            ("{(m): [{(x): 3, z: 1}], k: 1}", "{m: [{x: 3, z: 1}]}", "{m: [{x: 3, z: 1}], k: 1}"),
            ("{(m): {=(x): 2, z: 3}, k: 1}", "{m: {z: 3}}", "{m: {=(x): 2, z: 3}, k: 1}"),
        ],
    );
    // At the root they keep their parentheses.
    let patched = preprocess(&value("{(spec): {a: 1}, b: 1}"), &custom("{a: 1}"), &Budget::default()).unwrap().unwrap();
    assert_eq!(patched, value("{(spec): {a: 1}, b: 1}"));
}

#[test]
fn other_anchors_are_ordinary_keys() {
    check(
        custom,
        &[
            // 6.5
            ("{=(a): 5}", "{a: 1}", "{=(a): 5, a: 1}"),
            ("{X(a): 5}", "{b: 1}", "{X(a): 5, b: 1}"),
            ("{^(a): [5]}", "{b: 1}", "{^(a): [5], b: 1}"),
            ("{(): 5}", "{b: 1}", "{(): 5, b: 1}"),
        ],
    );
}

#[test]
fn anchored_texts_in_lists_are_dropped() {
    check(
        custom,
        &[
            // 3.2
            ("{m: ['(x)', k]}", "{}", "{m: [k]}"),
            ("{m: ['<(x)', k]}", "{}", "{m: [k]}"),
            ("{m: ['+(x)', k]}", "{}", "{m: ['+(x)', k]}"),
            ("{m: ['=(x)', k]}", "{}", "{m: ['=(x)', k]}"),
            ("{m: ['(x)']}", "{m: [1]}", "skip"),
            ("{m: '(x)'}", "{}", "{m: '(x)'}"),
            // The reference drops the whole item.
            ("{m: [{a: '(x)', b: ['(x)', 1]}]}", "{}", "{m: [{a: '(x)', b: [1]}]}"),
            // The reference drops the wrong ones of several.
            ("{m: ['(x)', '(z)', k, '(w)']}", "{}", "{m: [k]}"),
        ],
    );
}

#[test]
fn a_patch_must_be_a_map() {
    let wrong = |actual: &str, contents: &str| {
        format!(
            "error: failed to preProcess rule: wrong node kind: expected MappingNode but got {actual}: node \
             contents:\n{contents}\n"
        )
    };
    assert_eq!(outcome(&value("5"), &pod("{}")), wrong("ScalarNode", "5"));
    assert_eq!(outcome(&value("[]"), &pod("{}")), wrong("SequenceNode", "[]"));
    assert_eq!(outcome(&value("null"), &pod("{}")), "error: filter cannot create or delete objects");
    assert_eq!(outcome(&value("{}"), &pod("{}")), "skip");
}
