//! Maps, lists, anchors and their order (validate-mutate-autogen.md 6.2).

use super::{Mismatch, Pattern, Value, json, verdict};
use ephor_expr::budget::Budget;

/// Rows of pattern, then resources with their verdicts; both stand under `spec`.
type Rows = &'static [(&'static str, &'static [(&'static str, &'static str)])];

/// Expands the tables' short forms: `C(found,wanted,path)` and `G(…)` for anchor mismatches, `C0` for a missing
/// condition key.
fn expand(want: &str) -> String {
    let mut out =
        want.replace("C0", "conditional anchor mismatch: conditional anchor key doesn't exist in the resource");
    for (short, name) in [("C(", "conditional"), ("G(", "global")] {
        while let Some((before, rest)) = out.split_once(short) {
            let (inner, after) = rest.split_once(')').unwrap();
            let parts: Vec<_> = inner.split(',').collect();
            out = format!(
                "{before}{name} anchor mismatch: resource value '{}' does not match '{}' at path {}{after}",
                parts[0], parts[1], parts[2]
            );
        }
    }
    out
}

fn check(rows: Rows) {
    for (pattern, cases) in rows {
        let compiled = Pattern::compile(&Value::from([("spec", json(pattern))]));
        for (resource, want) in *cases {
            let got = verdict(&compiled, &Value::from([("spec", json(resource))]));
            assert_eq!(got, expand(want), "{pattern} against {resource}");
        }
    }
}

fn check_root(rows: Rows) {
    for (pattern, cases) in rows {
        let compiled = Pattern::compile(&json(pattern));
        for (resource, want) in *cases {
            assert_eq!(verdict(&compiled, &json(resource)), expand(want), "{pattern} against {resource}");
        }
    }
}

#[test]
fn maps_and_lists() {
    check(&[
        (r#"{"a":{}}"#, &[(r#"{"a":{"q":1}}"#, "P"), (r#"{"z":1}"#, "F /spec/a/")]),
        (r#"{"a":[]}"#, &[(r#"{"a":[]}"#, "F /spec/a/")]),
        (
            r#"{"a":[{"b":1},{"b":2}]}"#,
            &[(r#"{"a":[{"b":1},{"b":1}]}"#, "P"), (r#"{"a":[{"b":1},{"b":2}]}"#, "F /spec/a/1/b/")],
        ),
        (
            r#"{"a":[{"b":1}]}"#,
            &[
                (r#"{"a":[]}"#, "P"),
                (r#"{"a":["x"]}"#, "F /spec/a/0/"),
                (r#"{"a":{}}"#, "F /spec/a/"),
                ("{}", "F /spec/a/"),
            ],
        ),
        (
            r#"{"a":["x","y"]}"#,
            &[
                (r#"{"a":["x","x"]}"#, "P"),
                (r#"{"a":["x","y"]}"#, "F /spec/a/"),
                (r#"{"a":[]}"#, "P"),
                (r#"{"a":"x"}"#, "F /spec/a/"),
            ],
        ),
        (
            r#"{"a":[["x"],["y"]]}"#,
            &[
                (r#"{"a":[["x"],["z"]]}"#, "F /spec/a/1/"),
                (r#"{"a":[["x"],["y"],["z"]]}"#, "P"),
                (
                    r#"{"a":[["x"]]}"#,
                    "E validate Array failed, array length mismatch, resource Array len is 1 and pattern Array len is 2",
                ),
            ],
        ),
    ]);
    check_root(&[
        (r#"{"foo":"*"}"#, &[("{}", "F /")]),
        (r#"{"foo":{"a":1}}"#, &[("{}", "F /foo/")]),
        ("{}", &[("{}", "P"), ("1", "F /")]),
    ]);
}

#[test]
fn single_anchors() {
    check(&[
        (
            r#"{"(k)":"x","b":1}"#,
            &[
                (r#"{"b":2}"#, "S C0"),
                (r#"{"k":"y","b":2}"#, "S C(y,x,/spec/k/)"),
                (r#"{"k":"x","b":2}"#, "F /spec/b/"),
            ],
        ),
        (r#"{"(k)":"x"}"#, &[(r#"{"k":null}"#, "S C(<nil>,x,/spec/k/)")]),
        (
            r#"{"<(k)":"x","b":1}"#,
            &[(r#"{"b":2}"#, "F /spec/b/"), (r#"{"b":1}"#, "P"), (r#"{"k":"y","b":2}"#, "S G(y,x,/spec/k/)")],
        ),
        (r#"{"=(k)":"x"}"#, &[("{}", "P"), (r#"{"k":"y"}"#, "F /spec/k/")]),
        (r#"{"=(k)":{"(q)":1,"z":1}}"#, &[(r#"{"k":{"q":2}}"#, "S C(2,1,/spec/k/q/)")]),
        (
            r#"{"^(k)":[{"n":1}]}"#,
            &[
                ("{}", "P"),
                (r#"{"k":[]}"#, "F /spec/k/"),
                (r#"{"k":null}"#, "F /spec/k/"),
                (r#"{"k":[{"n":2},{"n":1}]}"#, "P"),
            ],
        ),
        (r#"{"^(k)":[{"n":1},{"n":2}]}"#, &[(r#"{"k":[{"n":1}]}"#, "F /spec/k/")]),
        (r#"{"^(k)":[{"(n)":1,"m":5}]}"#, &[(r#"{"k":[{"n":2,"m":5}]}"#, "F /spec/k/")]),
        (r#"{"^(k)":["x"]}"#, &[(r#"{"k":["y","x"]}"#, "P"), (r#"{"k":["y"]}"#, "F /spec/k/")]),
        (r#"{"X(k)":"null"}"#, &[("{}", "P"), (r#"{"k":null}"#, "F /spec/k/")]),
        (r#"{"k":[{"X(q)":"null"}]}"#, &[(r#"{"k":[{"a":1},{"q":1}]}"#, "F /spec/k/1/q/")]),
    ]);
}

#[test]
fn a_condition_key_that_never_occurs_turns_failure_into_error() {
    check(&[
        (
            r#"{"^(k)":[{"n":1}],"b":1}"#,
            &[
                (r#"{"b":2}"#, "E resource value '2' does not match '1' at path /spec/b/"),
                (r#"{"b":2,"k":[{"n":1}]}"#, "F /spec/b/"),
            ],
        ),
        (
            r#"{"=(m)":{"(q)":1},"=(n)":1,"b":1}"#,
            &[(r#"{"m":{},"n":1,"b":2}"#, "E resource value '2' does not match '1' at path /spec/b/")],
        ),
        (r#"{"=(m)":{"(q)":1},"=(n)":{"(q)":1},"b":1}"#, &[(r#"{"m":{},"n":{"q":1},"b":2}"#, "F /spec/b/")]),
        (r#"{"<(k)":1,"b":1}"#, &[(r#"{"b":2}"#, "F /spec/b/")]),
        (r#"{"=(k)":1,"b":1}"#, &[(r#"{"b":2}"#, "F /spec/b/")]),
        (r#"{"l":[{"(n)":"a","v":1}],"b":1}"#, &[(r#"{"l":[],"b":2}"#, "F /spec/b/")]),
    ]);
}

#[test]
fn skips_and_failures_in_their_order() {
    check(&[
        (r#"{"(a)":"x","=(b)":1}"#, &[(r#"{"a":"y","b":2}"#, "S C(y,x,/spec/a/)")]),
        (r#"{"(k)":"x","X(a)":1}"#, &[(r#"{"k":"y","a":2}"#, "S C(y,x,/spec/k/)")]),
        (r#"{"X(a)":1,"<(k)":"x"}"#, &[(r#"{"k":"y","a":2}"#, "F /spec/a/")]),
        (r#"{"m":{"(k)":"x","q":1},"b":1}"#, &[(r#"{"m":{"k":"y"},"b":2}"#, "S C(y,x,/spec/m/k/)")]),
        (r#"{"m":{"(k)":"x","q":1},"z":{"=(r)":1}}"#, &[(r#"{"m":{"k":"y"},"z":{"r":2}}"#, "F /spec/z/r/")]),
        (r#"{"m":{"(k)":"x","q":1},"a":{"=(r)":1}}"#, &[(r#"{"m":{"k":"y"},"a":{"r":2}}"#, "S C(y,x,/spec/m/k/)")]),
        (r#"{"=(m)":{"(k)":"x","q":1},"b":1}"#, &[(r#"{"m":{"k":"y"},"b":2}"#, "S C(y,x,/spec/m/k/)")]),
        (r#"{"=(m)":{"(k)":"x","q":1},"=(z)":1,"b":1}"#, &[(r#"{"m":{"k":"y"},"b":2}"#, "F /spec/b/")]),
        (r#"{"=(m)":{"<(k)":"x"},"=(z)":1,"b":1}"#, &[(r#"{"m":{"k":"y"},"b":2}"#, "S G(y,x,/spec/m/k/)")]),
        (
            r#"{"=(m)":{"n":{"<(k)":"x"}},"=(z)":1,"b":1}"#,
            &[(r#"{"m":{"n":{"k":"y"}},"b":2}"#, "S G(y,x,/spec/m/n/k/)")],
        ),
        (r#"{"=(l)":[{"<(k)":"x"}],"=(z)":1,"b":1}"#, &[(r#"{"l":[{"k":"y"}],"b":2}"#, "F /spec/b/")]),
        (r#"{"=(a)":{"(k)":"x"},"=(b)":1}"#, &[(r#"{"a":{"k":"y"},"b":2}"#, "F /spec/b/")]),
        (r#"{"=(a)":{"<(k)":"x"},"=(b)":1}"#, &[(r#"{"a":{"k":"y"},"b":2}"#, "S G(y,x,/spec/a/k/)")]),
        (
            r#"{"(m)":{"(k)":"x"},"=(z)":1,"b":1}"#,
            &[(r#"{"m":{"k":"y"},"b":2}"#, "S conditional anchor mismatch: C(y,x,/spec/m/k/)")],
        ),
        (
            r#"{"l":[{"(n)":"a","v":1}]}"#,
            &[
                (r#"{"l":[{"n":"b"},{"n":"a","v":1}]}"#, "P"),
                (r#"{"l":[{"n":"b"},{"n":"a","v":2}]}"#, "F /spec/l/1/v/"),
                (r#"{"l":[{"n":"b"},{"n":"c","v":2}]}"#, "S C(b,a,/spec/l/0/n/); C(c,a,/spec/l/1/n/)"),
            ],
        ),
        (r#"{"l":[{"<(n)":"a","v":1}]}"#, &[(r#"{"l":[{"n":"a","v":1},{"n":"b","v":2}]}"#, "P")]),
        (r#"{"(l)":[{"v":1}],"b":1}"#, &[(r#"{"l":[{"v":2},{"v":1}],"b":2}"#, "S C(2,1,/spec/l/0/v/)")]),
        (r#"{"y":{"=(q)":1},"z":{"=(q)":1}}"#, &[(r#"{"y":{"q":2},"z":{"q":2}}"#, "F /spec/z/q/")]),
    ]);
}

#[test]
fn values_that_quote_an_anchor_message_fail_like_others() {
    for text in ["conditional anchor mismatch", "global anchor mismatch", "negation anchor matched in resource"] {
        let pattern = Pattern::compile(&json(r#"{"a":"x"}"#));
        assert_eq!(verdict(&pattern, &Value::from([("a", Value::from(text))])), "F /a/");
    }
}

#[test]
fn wildcards_in_labels_and_annotations() {
    check_root(&[
        (
            r#"{"metadata":{"labels":{"app.*":"?*"}}}"#,
            &[
                (r#"{"metadata":{"labels":{"app.x":"1"}}}"#, "P"),
                (r#"{"metadata":{"labels":{"bpp.x":"1"}}}"#, "F /metadata/labels/app.*/"),
                (r#"{"metadata":{}}"#, "F /metadata/labels/"),
            ],
        ),
        (
            r#"{"metadata":{"=(labels)":{"X(app.*)":"null"}}}"#,
            &[
                (r#"{"metadata":{"labels":{"app.x":"2"}}}"#, "F /metadata/labels/app.x/"),
                (r#"{"metadata":{"labels":{"bpp.x":"2"}}}"#, "P"),
            ],
        ),
        (
            r#"{"=(metadata)":{"annotations":{"a*":"1","=(b?)":"1"}}}"#,
            &[
                (r#"{"metadata":{"annotations":{"ab":"1","bc":"1"}}}"#, "P"),
                (r#"{"metadata":{"annotations":{"ab":"1","bc":"2"}}}"#, "F /metadata/annotations/bc/"),
                // The first key in order is taken, and no other.
                (r#"{"metadata":{"annotations":{"ab":"2","ac":"1"}}}"#, "F /metadata/annotations/ab/"),
            ],
        ),
        // Elsewhere the star is a character.
        (r#"{"data":{"a*":"1"}}"#, &[(r#"{"data":{"ab":"1"}}"#, "F /data/a*/"), (r#"{"data":{"a*":"1"}}"#, "P")]),
    ]);
    check(&[
        (r#"{"t":{"metadata":{"labels":{"a":5,"b":"x"}}}}"#, &[(r#"{"t":{"metadata":{"labels":{"b":"x"}}}}"#, "P")]),
        (
            r#"{"t":{"metadata":{"labels":{"a":5}}}}"#,
            &[(r#"{"t":{"metadata":{"labels":{}}}}"#, "P"), (r#"{"t":{"metadata":{}}}"#, "F /spec/t/metadata/labels/")],
        ),
        (
            r#"{"l":[{"metadata":{"labels":{"a*":"1"}}}]}"#,
            &[(
                r#"{"l":[{"metadata":{"labels":{"ab":"1"}}},{"metadata":{"labels":{"ac":"2"}}}]}"#,
                "F /spec/l/1/metadata/labels/ab/",
            )],
        ),
    ]);
}

#[test]
fn each_match_starts_from_the_pattern_as_written() {
    let pattern = Pattern::compile(&json(r#"{"metadata":{"labels":{"a*":"1"}}}"#));
    for label in ["ab", "ac"] {
        let resource = json(&format!(r#"{{"metadata":{{"labels":{{"{label}":"1"}}}}}}"#));
        assert_eq!(verdict(&pattern, &resource), "P");
    }
}

#[test]
fn messages_quote_values_as_go_prints_them() {
    for (pattern, resource, want) in [
        ("1", "2", "resource value '2' does not match '1' at path /a/"),
        (r#""x""#, "null", "resource value '<nil>' does not match 'x' at path /a/"),
        ("1.5", "2.5", "resource value '2.5' does not match '1.5' at path /a/"),
        (
            "true",
            r#"{"b":1,"c":[true,null]}"#,
            "resource value 'map[b:1 c:[true <nil>]]' does not match 'true' at path /a/",
        ),
        (r#"["x"]"#, r#"["x","y"]"#, "resource value '[x y]' does not match 'x' at path /a/"),
        (
            "{}",
            r#""s""#,
            "pattern and resource have different structures. Path: /a/. Expected map[string]interface {}, found string",
        ),
    ] {
        let pattern = Pattern::compile(&Value::from([("a", json(pattern))]));
        match pattern.matches(&Value::from([("a", json(resource))]), &Budget::default()) {
            Err(Mismatch::Fail { path, message }) => assert_eq!((path.as_str(), message.as_str()), ("/a/", want)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_pattern_deeper_than_the_limit_never_matches() {
    let nested = (0..400).fold(Value::from("x"), |inner, _| Value::from([("a", inner)]));
    let pattern = Pattern::compile(&nested);
    assert!(verdict(&pattern, &nested).starts_with("F /a/a/"));
}
