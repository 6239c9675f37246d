//! Differences as patches.

use super::value;
use crate::rules::mutate::json_patch::{JsonPatch, json_patch_between};
use ephor_expr::budget::Budget;

#[test]
fn differences_are_the_smallest_changes_in_key_order() {
    for (old, new, want) in [
        ("{a: 1}", "{a: 1}", "[]"),
        ("{a: 1}", "{a: 1.0}", "[]"),
        ("{a: 1, c: 1}", "{b: 2, c: 2}", "[remove /a, replace /c 2, add /b 2]"),
        ("{a: null}", "{}", "[remove /a]"),
        ("{}", "{a: null}", "[add /a null]"),
        ("{a: {b: {c: 1}}}", "{a: {b: {c: 1, d: 1}}}", "[add /a/b/d 1]"),
        ("{a/b~c: 1}", "{}", "[remove /a~1b~0c]"),
        ("{a: {b: 1}}", "{a: [1]}", "[replace /a [1]]"),
        ("[1, 2, 3]", "[1, 3]", "[remove /1]"),
        ("[1, 2, 3, 4, 5]", "[1, 5]", "[remove /3, remove /2, remove /1]"),
        ("[1, 3]", "[1, 2, 3]", "[add /1 2]"),
        ("[]", "[1, 2]", "[add /0 1, add /1 2]"),
        ("[1, 2, 3]", "[1, 9, 3]", "[replace /1 9]"),
        ("[{k: a, x: 1}, {k: b}]", "[{k: a, x: 2}, {k: b}]", "[replace /0/x 2]"),
        ("[1, 1]", "[1, 1, 1]", "[add /2 1]"),
        ("{a: 1}", "[1]", "[replace  [1]]"),
    ] {
        let (old, new) = (value(old), value(new));
        let ops = json_patch_between(&old, &new);
        let text = |op: &super::super::PatchOp| match op.to_value().get("value") {
            Some(value) => format!("{} {} {value}", op.name(), op.path()),
            None => format!("{} {}", op.name(), op.path()),
        };
        assert_eq!(format!("[{}]", ops.iter().map(text).collect::<Vec<_>>().join(", ")), want, "{old} to {new}");
        assert_eq!(JsonPatch { ops }.apply(&old, &Budget::default()).unwrap(), new);
    }
}
