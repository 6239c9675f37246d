//! Single values (validate-mutate-autogen.md 6.1).

use super::super::Scalars;
use super::{Pattern, Value, json, verdict};

/// Stands for a resource without the key.
const MISSING: &str = "missing";

fn resource(a: &str) -> Value {
    let spec = if a == MISSING { json("{}") } else { Value::from([("a", json(a))]) };
    Value::from([("spec", spec)])
}

fn check(pattern: &str, scalars: Scalars, passes: &[&str], fails: &[&str], path: &str) {
    let compiled = Pattern::compile_with(&json(&format!(r#"{{"spec":{{"a":{pattern}}}}}"#)), scalars);
    for a in passes {
        assert_eq!(verdict(&compiled, &resource(a)), "P", "{pattern} against {a}");
    }
    for a in fails {
        assert_eq!(verdict(&compiled, &resource(a)), format!("F {path}"), "{pattern} against {a}");
    }
}

#[test]
fn typed_scalars() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("true", &["true"], &[r#""true""#, "false", MISSING]),
        ("5", &["5", "5.0", r#""5""#, r#""05""#, r#""+5""#], &["5.5", r#""5.0""#, r#""0x5""#, MISSING, "{}"]),
        ("0", &["0"], &[MISSING, "null"]),
        ("5.5", &["5.5", r#""5.5""#, r#""5.50""#, r#""5.5e0""#], &["5", MISSING]),
        ("5.0", &["5", r#""5.0""#], &["6"]),
        (
            "null",
            &[MISSING, "null", r#""""#, "0", "0.0", "false", "[]", r#"[0,"",null,false]"#],
            &[r#""0""#, "{}", r#"{"x":1}"#, "[1]", "true", "[[]]"],
        ),
    ];
    for (pattern, passes, fails) in rows {
        check(pattern, Scalars::Typed, passes, fails, "/spec/a/");
    }
}

#[test]
fn numbers_of_alternatives_are_floats() {
    check("5", Scalars::Floats, &["5", r#""5""#, r#""5.0""#], &["6", MISSING], "/spec/a/");
}

#[test]
fn texts_accept_what_prints_like_them() {
    check("true", Scalars::Texts, &["true", r#""true""#], &["false", MISSING], "/spec/a/");
    check("5", Scalars::Texts, &["5", r#""5.0""#], &["6"], "/spec/a/");
}

#[test]
fn a_star_under_a_plain_key_needs_any_value_and_fails_above() {
    check(r#""*""#, Scalars::Typed, &[r#""""#, "false", "{}", "[]", r#"{"b":1}"#], &[MISSING, "null"], "/spec/");
}

#[test]
fn a_star_under_an_anchor_is_a_text() {
    let pattern = Pattern::compile(&json(r#"{"spec":{"=(a)":"*"}}"#));
    assert_eq!(verdict(&pattern, &resource(r#"[1,"x"]"#)), "P");
    for a in [r#"{"b":1}"#, "null", r#"[{"x":1}]"#] {
        assert_eq!(verdict(&pattern, &resource(a)), "F /spec/a/", "{a}");
    }
}

#[test]
fn expressions() {
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("", &[r#""""#], &[MISSING, "null", r#""x""#]),
        ("?*", &["5", "false"], &[MISSING, r#""""#, r#"["x",""]"#, r#"{"b":1}"#]),
        ("0", &[MISSING], &[]),
        ("<5", &[MISSING], &[]),
        (">=0", &[MISSING], &[]),
        ("0-2", &[MISSING], &[]),
        ("5-10|<1", &[MISSING], &[]),
        ("!5", &[MISSING], &[]),
        ("!1h", &[MISSING], &[]),
        (">0", &[], &[MISSING]),
        ("!0", &[], &[MISSING]),
        ("!foo", &["1"], &[MISSING, "{}", "[{}]", "[[]]"]),
        ("!*", &[], &[MISSING]),
        ("!false", &["true"], &[MISSING, "false"]),
        ("5", &["5", "5.0", r#""5""#, r#""5.0""#], &[]),
        (">5", &["6", r#""6""#, r#""5.5""#], &["5", r#""x""#]),
        (">= 5", &["5"], &["4"]),
        (">x", &[], &[r#""y""#]),
        (">1.2.3", &[], &[r#""1.3.0""#]),
        (">=1.20", &[r#""1.3""#], &[]),
        ("1Gi", &[r#""1024Mi""#], &[]),
        ("1k", &[r#""1000""#], &[]),
        ("0.5", &[r#""500m""#, "0.5"], &["0.4"]),
        ("10", &[r#""1e1""#], &[]),
        ("<1Gi", &[r#""1G""#], &[]),
        ("1h", &[r#""60m""#, r#""3600s""#], &[]),
        ("<1m", &["0"], &["5"]),
        ("1-5", &["1", "3", "5"], &["6", r#""abc""#, MISSING]),
        ("1!-5", &["0", "6"], &["1", "3", "5"]),
        ("-5--1", &["-3"], &["-6", "0"]),
        ("1m-1h", &[r#""30m""#], &[r#""2h""#]),
        ("1Mi-1Gi", &[r#""512Mi""#], &[r#""2Gi""#]),
        ("1Mi - 1Gi", &[], &[r#""512Mi""#]),
        (">1-5", &[], &["3"]),
        ("!-5", &["5"], &["-5"]),
        ("2021-10", &[r#""2021-10""#], &["2021"]),
        ("5.10.84-1", &[r#""5.10.84-1""#], &["5"]),
        ("a|b", &[r#""b""#, r#""a|b""#], &[r#""c""#]),
        (">1&<5|9", &["9", "2"], &["7"]),
        (">1&<5", &[], &["7"]),
        ("a|", &[r#""""#], &[]),
        ("a&", &[], &[r#""a""#]),
        ("!a & !b", &[r#""c""#], &[r#""b""#]),
        ("!a | !b", &[r#""b""#], &[]),
        (" x", &[r#""x""#], &[]),
        ("x", &[], &[r#""x ""#]),
        ("!", &[r#""!""#], &[r#""a""#, r#""""#]),
        ("!!", &[r#""x""#], &[]),
        ("!?*", &[r#""""#], &[r#""x""#]),
        ("a**b", &[r#""ab""#], &[]),
        ("?", &[r#""a""#, r#""é""#], &[r#""ab""#]),
        ("a?", &[], &[r#""a""#]),
        ("a.c", &[], &[r#""abc""#]),
        ("[ab]", &[], &[r#""a""#]),
        ("FOO", &[], &[r#""foo""#]),
        ("true", &["true", r#""true""#], &["false"]),
        ("!true", &["false"], &["true"]),
        ("7.5E*", &["7.5"], &[]),
        ("7*", &["7.5"], &[]),
        ("*.5", &[], &["7.5"]),
    ];
    for (pattern, passes, fails) in rows {
        check(&Value::from(*pattern).to_json(), Scalars::Typed, passes, fails, "/spec/a/");
    }
}

#[test]
fn integers_read_as_integers_everywhere() {
    for (pattern, passes) in [("?0", true), ("50*", true), ("5E*", false)] {
        let (yes, no): (&[&str], &[&str]) = if passes { (&["50", "50.0"], &[]) } else { (&[], &["50", "50.0"]) };
        check(&format!("{pattern:?}"), Scalars::Typed, yes, no, "/spec/a/");
    }
}
