//! Operations one by one.

use std::sync::Arc;

use ephor_expr::Value;
use ephor_expr::budget::Budget;

use super::{check, value};
use crate::rules::mutate::json_patch::JsonPatch;

#[test]
fn add_puts_members_and_items() {
    check(&[
        ("[{op: add, path: /a, value: 2}]", "{a: 1}", "{a: 2}"),
        ("[{op: add, path: /b, value: null}]", "{a: 1}", "{a: 1, b: null}"),
        ("[{op: add, path: /m/0, value: 2}]", "{m: {x: 1}}", "{m: {x: 1, '0': 2}}"),
        ("[{op: add, path: /m/-, value: 2}]", "{m: {x: 1}}", "{m: {x: 1, '-': 2}}"),
        ("[{op: add, path: /, value: 2}]", "{a: 1}", "{a: 1, '': 2}"),
        ("[{op: add, path: /a~1b~0c, value: 2}]", "{}", "{a/b~c: 2}"),
        ("[{op: add, path: /l/0, value: 9}]", "{l: [1, 2]}", "{l: [9, 1, 2]}"),
        ("[{op: add, path: /l/2, value: 9}]", "{l: [1, 2]}", "{l: [1, 2, 9]}"),
        ("[{op: add, path: /l/+1, value: 9}]", "{l: [1, 2]}", "{l: [1, 9, 2]}"),
        ("[{op: add, path: /l/-, value: 9}]", "{l: [1, 2]}", "{l: [1, 2, 9]}"),
        ("[{op: add, path: '', value: {b: 1}}]", "{a: 1}", "{b: 1}"),
    ]);
}

#[test]
fn add_counts_negative_indexes_from_behind_the_last_item() {
    check(&[
        // 6.6
        ("[{op: add, path: /spec/l/-1, value: v}]", "{spec: {l: [1, 5]}}", "{spec: {l: [1, 5, v]}}"),
        ("[{op: add, path: /spec/l/-2, value: v}]", "{spec: {l: [1, 5]}}", "{spec: {l: [1, v, 5]}}"),
        ("[{op: add, path: /l/-3, value: v}]", "{l: [1, 5]}", "{l: [v, 1, 5]}"),
        (
            "[{op: add, path: /l/-4, value: v}]",
            "{l: [1, 5]}",
            "error: error in add for path: '/l/-4': Unable to access invalid index: -4: invalid index referenced",
        ),
    ]);
}

#[test]
fn add_creates_missing_and_null_parents() {
    check(&[
        // 6.6
        ("[{op: add, path: /spec/l/2, value: v}]", "{spec: {}}", "{spec: {l: [null, null, v]}}"),
        ("[{op: add, path: /spec/l/3/x, value: v}]", "{spec: {l: [{}]}}", "{spec: {l: [{}, null, null, {x: v}]}}"),
        ("[{op: add, path: /spec/m/0, value: v}]", "{spec: {m: null}}", "{spec: {m: [v]}}"),
        ("[{op: add, path: /spec/m/x, value: v}]", "{spec: {m: null}}", "{spec: {m: {x: v}}}"),
        ("[{op: add, path: /z/-, value: v}]", "{}", "{z: [v]}"),
        ("[{op: add, path: /z/-1, value: v}]", "{}", "{z: [v]}"),
        ("[{op: add, path: /z/-1/q, value: v}]", "{}", "{z: [{q: v}]}"),
        ("[{op: add, path: /z/01, value: v}]", "{}", "{z: [null, v]}"),
        ("[{op: add, path: /z/1x, value: v}]", "{}", "{z: {1x: v}}"),
        ("[{op: add, path: /z/x/0/y, value: v}]", "{}", "{z: {x: [{'y': v}]}}"),
        ("[{op: add, path: /z/0/0, value: v}]", "{}", "{z: [[v]]}"),
        ("[{op: add, path: /z/2/x, value: v}]", "{}", "{z: [null, null, {x: v}]}"),
        ("[{op: add, path: /l/9/2, value: v}]", "{l: [1]}", "{l: [1, ~, ~, ~, ~, ~, ~, ~, ~, [~, ~, v]]}"),
        ("[{op: add, path: /l/1/x, value: v}]", "{l: [1, null]}", "{l: [1, {x: v}]}"),
        ("[{op: add, path: /l/-2/x, value: v}]", "{l: [{}, 1]}", "{l: [{x: v}, 1]}"),
        ("[{op: add, path: /z/9999999999999999999, value: v}]", "{}", "{z: {'9999999999999999999': v}}"),
        (
            "[{op: add, path: /z/-2, value: v}]",
            "{}",
            "error: Unable to ensure path for negative index other than -1: -2: invalid index referenced",
        ),
    ]);
}

#[test]
fn add_fails_where_there_is_no_place() {
    check(&[
        // 6.6
        (
            "[{op: add, path: /spec/l/3, value: v}]",
            "{spec: {l: [1]}}",
            "error: error in add for path: '/spec/l/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        ("[{op: add, path: /spec/a/x, value: v}]", "{spec: {a: 1}}", "error: invalid state detected"),
        ("[{op: add, path: /a/b/c, value: v}]", "{a: 1}", "error: invalid state detected"),
        ("[{op: add, path: /l/0/x, value: v}]", "{l: [1]}", "error: invalid state detected"),
        // 3.4
        (
            "[{op: add, path: /spec/l/-/x, value: v}]",
            "{spec: {l: [1]}}",
            r#"error: add operation does not apply: doc is missing path: "/spec/l/-/x": missing value"#,
        ),
        (
            "[{op: add, path: /z/-/x, value: v}]",
            "{}",
            r#"error: add operation does not apply: doc is missing path: "/z/-/x": missing value"#,
        ),
        (
            "[{op: add, path: /l/x/y, value: v}]",
            "{l: [1]}",
            r#"error: add operation does not apply: doc is missing path: "/l/x/y": missing value"#,
        ),
        (
            "[{op: add, path: x, value: v}]",
            "{x: 1}",
            r#"error: add operation does not apply: doc is missing path: "x": missing value"#,
        ),
        (
            "[{op: add, path: /l/x, value: v}]",
            "{l: [1]}",
            "error: error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \
             \"x\": invalid syntax",
        ),
        (
            "[{op: add, path: /l/99999999999999999999, value: v}]",
            "{l: [1]}",
            "error: error in add for path: '/l/99999999999999999999': value was not a proper array index: \
             '99999999999999999999': strconv.Atoi: parsing \"99999999999999999999\": value out of range",
        ),
        ("[{op: add, path: '', value: 5}]", "{}", "error: add operation value must be object or array"),
    ]);
}

#[test]
fn remove_of_what_is_missing_does_nothing() {
    check(&[
        // 6.6
        ("[{op: remove, path: /spec/l/5}]", "{spec: {l: [1]}}", "{spec: {l: [1]}}"),
        ("[{op: remove, path: /spec/l/-5}]", "{spec: {l: [1]}}", "{spec: {l: [1]}}"),
        ("[{op: remove, path: /spec/z/y/x}]", "{spec: {l: [1]}}", "{spec: {l: [1]}}"),
        (
            "[{op: remove, path: /spec/l/-}]",
            "{spec: {l: [1]}}",
            "error: error in remove for path: '/spec/l/-': strconv.Atoi: parsing \"-\": invalid syntax",
        ),
        ("[{op: remove, path: /a}]", "{a: 1, b: 2}", "{b: 2}"),
        ("[{op: remove, path: /l/0}]", "{l: [1, 2]}", "{l: [2]}"),
        ("[{op: remove, path: /l/-1}]", "{l: [1, 2]}", "{l: [1]}"),
        ("[{op: remove, path: /l/-2/q}]", "{l: [{q: 1}, 2]}", "{l: [{}, 2]}"),
        ("[{op: remove, path: /a/b}]", "{a: 1}", "{a: 1}"),
        ("[{op: remove, path: /l/x/y}]", "{l: [1]}", "{l: [1]}"),
        ("[{op: remove, path: ''}]", "{a: 1}", "{a: 1}"),
        ("[{op: remove, path: a}]", "{a: 1}", "{a: 1}"),
    ]);
}

#[test]
fn replace_needs_something_to_replace() {
    check(&[
        // 6.6
        ("[{op: replace, path: /spec/l/-1, value: v}]", "{spec: {l: [1, 2]}}", "{spec: {l: [1, v]}}"),
        ("[{op: replace, path: /a, value: null}]", "{a: 1}", "{a: null}"),
        ("[{op: replace, path: /o, value: 1}]", "{o: null}", "{o: 1}"),
        ("[{op: replace, path: '', value: [1]}]", "{o: null}", "[1]"),
        (
            "[{op: replace, path: /z, value: v}]",
            "{}",
            "error: replace operation does not apply: doc is missing key: /z: missing value",
        ),
        (
            "[{op: replace, path: /z/y, value: v}]",
            "{}",
            "error: replace operation does not apply: doc is missing path: /z/y: missing value",
        ),
        (
            "[{op: replace, path: /o/y, value: v}]",
            "{o: null}",
            "error: replace operation does not apply: doc is missing path: /o/y: missing value",
        ),
        (
            "[{op: replace, path: /l/-, value: v}]",
            "{l: [1]}",
            "error: replace operation does not apply: doc is missing key: /l/-: missing value",
        ),
    ]);
}

#[test]
fn move_and_copy_need_both_ends() {
    check(&[
        ("[{op: move, from: /a, path: /b}]", "{a: 1}", "{b: 1}"),
        ("[{op: move, from: /a, path: /a}]", "{a: 1}", "{a: 1}"),
        ("[{op: move, from: /l/-1, path: /l/0}]", "{l: [1, 2]}", "{l: [2, 1]}"),
        ("[{op: move, from: /l/0, path: /l/-}]", "{l: [1, 2]}", "{l: [2, 1]}"),
        ("[{op: copy, from: /m, path: /m/y}]", "{m: {x: 1}}", "{m: {x: 1, 'y': {x: 1}}}"),
        ("[{op: copy, from: '', path: /b}]", "{a: 1}", "{a: 1, b: {a: 1}}"),
        ("[{op: copy, from: /l/-1, path: /l/-3}]", "{l: [1, 2]}", "{l: [2, 1, 2]}"),
        (
            "[{op: move, from: /m, path: /m/y}]",
            "{m: {x: 1}}",
            "error: move operation does not apply: doc is missing destination path: /m/y: missing value",
        ),
        (
            "[{op: copy, from: /a, path: /z/y}]",
            "{a: 1}",
            "error: copy operation does not apply: doc is missing destination path: /z/y: missing value",
        ),
        (
            "[{op: move, from: /q, path: /b}]",
            "{}",
            "error: error in move for path: 'q': unable to get nonexistent key: q: missing value",
        ),
        (
            "[{op: copy, from: /q, path: /b}]",
            "{}",
            "error: error in copy for from: '/q': unable to get nonexistent key: q: missing value",
        ),
        (
            "[{op: move, from: /q/r, path: /b}]",
            "{}",
            "error: move operation does not apply: doc is missing from path: /q/r: missing value",
        ),
        (
            "[{op: copy, from: /q/r, path: /b}]",
            "{}",
            r#"error: copy operation does not apply: doc is missing from path: "/q/r": missing value"#,
        ),
        (
            "[{op: copy, from: /l/9, path: /b}]",
            "{l: [1]}",
            "error: error in copy for from: '/l/9': Unable to access invalid index: 9: invalid index referenced",
        ),
        (
            "[{op: move, from: /a, path: /l/5}]",
            "{a: 1, l: [1]}",
            "error: error in move for path: '/l/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            "[{op: copy, from: /a, path: /l/5}]",
            "{a: 1, l: [1]}",
            "error: error while adding value during copy: Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            "[{op: move, from: '', path: /b}]",
            "{}",
            "error: unable to move entire document to another path: invalid state detected",
        ),
    ]);
}

#[test]
fn test_takes_a_missing_member_for_null() {
    check(&[
        // 6.6
        ("[{op: test, path: /spec/z, value: null}]", "{spec: {a: 1}}", "{spec: {a: 1}}"),
        (
            "[{op: test, path: /spec/z/y, value: null}]",
            "{spec: {a: 1}}",
            "error: test operation does not apply: is missing path: /spec/z/y: missing value",
        ),
        // 3.4
        ("[{op: test, path: /spec/a, value: 2}]", "{spec: {a: 1}}", "error: testing value /spec/a failed: test failed"),
        ("[{op: test, path: /z}]", "{a: 1}", "{a: 1}"),
        ("[{op: test, path: /a, value: 1}]", "{a: 1}", "{a: 1}"),
        ("[{op: test, path: /a, value: '1'}]", "{a: 1}", "error: testing value /a failed: test failed"),
        ("[{op: test, path: /l/-1, value: 2}]", "{l: [1, 2]}", "{l: [1, 2]}"),
        ("[{op: test, path: '', value: {a: 1}}]", "{a: 1}", "{a: 1}"),
        (
            "[{op: test, path: /l/9, value: null}]",
            "{l: [1]}",
            "error: error in test for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
        ),
    ]);
}

#[test]
fn a_failing_operation_leaves_no_result() {
    let document = value("{a: 1}");
    let patch = JsonPatch::parse("[{op: add, path: /b, value: 1}, {op: test, path: /a, value: 2}]").unwrap();
    assert!(patch.apply(&document, &Budget::default()).is_err());
    assert_eq!(document, value("{a: 1}"));
}

#[test]
fn operations_see_what_those_before_them_did() {
    check(&[(
        "[{op: add, path: /l/-, value: 1}, {op: copy, from: /l/0, path: /l/-}, {op: remove, path: /l/0}]",
        "{}",
        "{l: [1]}",
    )]);
}

#[test]
fn small_patches_cannot_build_huge_documents() {
    let too_large = "error: the patch builds too large a document";
    let doubling = (0..64).fold(String::new(), |text, i| text + &format!("- {{op: copy, from: '', path: /m{i}}}\n"));
    let many = "- {op: add, path: /a, value: 1}\n".repeat(10_001);
    let long = format!("[{{op: add, path: {}, value: 1}}]", "/a".repeat(20_001));
    check(&[
        ("[{op: add, path: /spec/l/1000000000, value: 1}]", "{}", too_large),
        ("[{op: add, path: /spec/l/1000000000/x, value: 1}]", "{spec: {l: [1]}}", too_large),
        ("[{op: add, path: /l/9223372036854775807/x, value: 1}]", "{l: [1]}", too_large),
        (&doubling, "{a: 1}", "error: the `copy` operations of the patch add more than 3145728 bytes"),
        (&many, "{}", "error: the patch has more than 10000 operations"),
        (&long, "{}", "error: the patched document nests deeper than 20000 levels"),
    ]);
}

#[test]
fn untouched_parts_stay_shared() {
    let document = value("{a: {x: 1}, b: {z: [1, 2]}}");
    let patch = JsonPatch::parse("[{op: replace, path: /a/x, value: 2}]").unwrap();
    let patched = patch.apply(&document, &Budget::default()).unwrap();
    let (Some(Value::Object(old)), Some(Value::Object(new))) = (document.get("b"), patched.get("b")) else {
        panic!("b is a map")
    };
    assert!(Arc::ptr_eq(old, new));
}

/// The texts are those of API server 1.34.
#[test]
fn api_servers_create_no_parents_and_add_what_they_should_replace() {
    for (patch, want) in [
        (
            "[{op: add, path: /b/c, value: 1}]",
            r#"add operation does not apply: doc is missing path: "/b/c": missing value"#,
        ),
        (
            "[{op: remove, path: /m/y}]",
            "error in remove for path: '/m/y': Unable to remove nonexistent key: y: missing value",
        ),
        (
            "[{op: remove, path: /b/c}]",
            r#"remove operation does not apply: doc is missing path: "/b/c": missing value"#,
        ),
        ("[{op: replace, path: /m/y, value: 1}, {op: add, path: /m/z, value: 2}]", r#"{"m":{"x":1,"y":1,"z":2}}"#),
        ("[{op: remove, path: /m/x}]", r#"{"m":{}}"#),
    ] {
        let patched = JsonPatch::parse(patch)
            .and_then(|patch| patch.apply_as_api_server(&value("{m: {x: 1}}"), &Budget::default()));
        assert_eq!(patched.map_or_else(|error| error.to_string(), |value| value.to_json()), want, "{patch}");
    }
}
