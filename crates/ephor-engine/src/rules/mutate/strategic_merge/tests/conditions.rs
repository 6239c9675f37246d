//! What `(key): value` accepts.

use super::super::conditions::hold;
use super::value;
use ephor_expr::budget::Budget;

#[test]
fn scalars_are_compared_as_texts() {
    for (wanted, accepted, refused) in [
        ("5", &["5", "'5'", "[5]", "['5', 5]", "[]"][..], &["6", "{a: 5}", "[5, 6]"][..]),
        ("'5'", &["5", "5.0", "'5'"], &["'6'"]),
        ("true", &["true", "'true'"], &["false", "'True'"]),
        ("'false'", &["false"], &["null"]),
        ("null", &["null", "'null'"], &["''", "0", "false", "{}"]),
        ("'?*'", &["null", "5", "x"], &["''", "{a: 1}"]),
        ("'*'", &["''", "[1]"], &["{}", "{a: 1}"]),
        ("'<5'", &["4", "'4'"], &["null", "5"]),
        ("'7.*'", &["7.5"], &["75"]),
        ("'7.5E*'", &["7.5E9x"], &["7.5"]),
        ("'>1h'", &["2h"], &["30m"]),
    ] {
        for actual in accepted {
            assert!(hold(&value(wanted), &value(actual), &Budget::default()).unwrap(), "{wanted} accepts {actual}");
        }
        for actual in refused {
            assert!(!hold(&value(wanted), &value(actual), &Budget::default()).unwrap(), "{wanted} refuses {actual}");
        }
    }
}

#[test]
fn maps_and_lists_are_patterns() {
    for (wanted, accepted, refused) in [
        ("{x: 5}", &["{x: 5, z: 1}", "{x: '5'}"][..], &["{x: 6}", "{}", "5"][..]),
        ("{x: true}", &["{x: true}"], &["{x: 'true'}"]),
        ("{(x): 1, b: 2}", &["{x: 1, b: 2}"], &["{x: 1}", "{b: 2}", "{x: 2, b: 3}"]),
        ("{X(x): 1}", &["{b: 1}"], &["{x: 1}"]),
        ("{=(x): 1}", &["{b: 1}", "{x: 1}"], &["{x: 2}"]),
        ("{^(x): [{k: 1}]}", &["{x: [{k: 2}, {k: 1}]}"], &["{x: []}"]),
        ("[{a: 1}]", &["[{a: 1}, {a: 1, b: 1}]", "[]"], &["[{a: 1}, {a: 2}]", "{a: 1}"]),
        ("[]", &[], &["[]", "[1]"]),
        // Additions that are not directly inside a condition are no anchors there.
        ("{z: {+(x): 1}}", &["{z: {+(x): 1}}"], &["{z: {}}", "{z: {x: 1}}"]),
    ] {
        for actual in accepted {
            assert!(hold(&value(wanted), &value(actual), &Budget::default()).unwrap(), "{wanted} accepts {actual}");
        }
        for actual in refused {
            assert!(!hold(&value(wanted), &value(actual), &Budget::default()).unwrap(), "{wanted} refuses {actual}");
        }
    }
}
