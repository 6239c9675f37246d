//! Texts of patches.

use super::{check, value};
use crate::rules::mutate::json_patch::JsonPatch;

#[test]
fn yaml_and_json_are_read() {
    check(&[
        ("- op: add\n  path: /q\n  value: [a, {b: c}]\n- {op: remove, path: /a}", "{a: 1}", "{q: [a, {b: c}]}"),
        (r#"[{"op":"add","path":"/q","value":1}]"#, "{}", "{q: 1}"),
        ("\n# a comment\n- op: add\n  path: /q\n  value: yes\n  more: 1\n", "{}", "{q: true}"),
        ("", "{a: 1}", "{a: 1}"),
        ("[]", "{a: 1}", "{a: 1}"),
        ("null", "{a: 1}", "{a: 1}"),
    ]);
}

#[test]
fn what_is_no_patch_is_refused() {
    let invalid = |operation: &str, fault: &str| {
        format!("error: failed to decode patches: invalid operation {operation}: {fault}")
    };
    let no_list = |found| {
        format!("error: failed to decode patches: json: cannot unmarshal {found} into Go value of type jsonpatch.Patch")
    };
    let no_operation = |found| {
        format!(
            "error: failed to decode patches: json: cannot unmarshal {found} into Go value of type jsonpatch.Operation"
        )
    };
    check(&[
        ("5", "{}", &no_list("number")),
        ("x", "{}", &no_list("string")),
        ("{op: add}", "{}", &no_list("object")),
        ("[true]", "{}", &no_operation("bool")),
        ("[[]]", "{}", &no_operation("array")),
        ("[null]", "{}", &invalid("null", "unsupported operation")),
        ("[{op: bogus, path: /a}]", "{}", &invalid(r#"{"op":"bogus","path":"/a"}"#, "unsupported operation")),
        ("[{op: Add, path: /a}]", "{}", &invalid(r#"{"op":"Add","path":"/a"}"#, "unsupported operation")),
        ("[{path: /a}]", "{}", &invalid(r#"{"path":"/a"}"#, "unsupported operation")),
        (
            "[{op: add, value: 1}]",
            "{}",
            &invalid(
                r#"{"op":"add","value":1}"#,
                "failed to decode 'path': operation missing path field: missing value",
            ),
        ),
        (
            "[{op: add, path: 5, value: 1}]",
            "{}",
            &invalid(
                r#"{"op":"add","path":5,"value":1}"#,
                "failed to decode 'path': json: cannot unmarshal number into Go value of type string",
            ),
        ),
        (
            "[{op: replace, path: /a}]",
            "{}",
            &invalid(
                r#"{"op":"replace","path":"/a"}"#,
                "failed to decode 'value': operation, missing value field: missing value",
            ),
        ),
        (
            "[{op: move, path: /a}]",
            "{}",
            &invalid(
                r#"{"op":"move","path":"/a"}"#,
                "failed to decode 'from': operation, missing from field: missing value",
            ),
        ),
    ]);
    let broken = JsonPatch::parse("[").unwrap_err().to_string();
    assert!(broken.starts_with("failed to convert patchesJSON6902 to JSON: "), "{broken}");
}

#[test]
fn operations_print_as_they_are_written() {
    let text = "[{op: add, path: /a~1b, value: [1]}, {op: remove, path: ''}, {op: replace, path: /c, value: null}, \
                {op: move, from: /c, path: /d}, {op: copy, from: /d, path: /e}, {op: test, path: /e, value: 1}]";
    assert_eq!(JsonPatch::parse(text).unwrap().to_value(), value(text));
}
