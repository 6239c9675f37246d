//! Random texts against the expressions they are made from.

use crate::budget::{Budget, BudgetError};
use crate::jmespath::{EvalError, Expression, FixedRuntime};
use crate::value::Value;

fn random(pattern: &str, seed: u64) -> Result<String, String> {
    let document = Value::from([("re", pattern.into())]);
    let runtime = FixedRuntime::new(jiff::Timestamp::UNIX_EPOCH, seed).with_budget(Budget::new(100_000, 1 << 20));
    let value = Expression::compile("random(re)").unwrap().evaluate(&document, &runtime);
    value.map(|v| v.as_str().unwrap().to_owned()).map_err(|e| e.to_string())
}

#[test]
fn texts_match_their_expression() {
    for pattern in [
        "[a-z0-9]{4,6}",
        "(ab|cd|[[:upper:]])-[^a-z]",
        ".{3}",
        "[]a-]{9}",
        r"\x41\x{42}\.\t[\]\x30-9]",
        "[[:alpha:][:digit:]]{20}",
        "a+b?c{2,}",
    ] {
        let whole = regex::Regex::new(&format!("^(?:{})$", pattern.replace("[]", "[\\]"))).unwrap();
        for seed in 0..50 {
            let text = random(pattern, seed).unwrap();
            assert!(whole.is_match(&text), "{pattern}: {text:?}");
        }
    }
}

#[test]
fn the_strict_dialect_is_read_as_in_the_reference() {
    for (pattern, want) in [
        ("^a$", "a"),
        (r"\a\f\n\r\t\v\12\0", "\x07\x0c\n\r\t\x0b\n\0"),
        ("a{1}{2}{3}", "aaaaaa"),
        ("{", "{"),
        ("a{,3}", "a{,3}"),
        ("a{2", "a{2"),
        ("a{02}", "a{02}"),
        ("]}", "]}"),
        ("a{0}", ""),
        ("()", ""),
        ("(|)", ""),
        ("((((a))))", "a"),
        (" a #", " a #"),
        ("[a]{3}é", "aaaé"),
    ] {
        assert_eq!(random(pattern, 1).as_deref(), Ok(want), "{pattern}");
    }
}

#[test]
fn refusals_are_in_the_words_of_the_reference() {
    for (pattern, want) in [
        (r"\d", r"invalid escape sequence: `\d`"),
        (r"[\w]", r"invalid escape sequence: `\w`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\x{}", r"invalid escape sequence: `\x{}`"),
        (r"\é", r"invalid escape sequence: `\é`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("(?i)a", "missing argument to repetition operator: `?`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("{2}", "missing argument to repetition operator: `{2}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,1}", "invalid repeat count: `{3,1}`"),
        ("[a]{1000000000}", "invalid repeat count: `{1000000000}`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("[a-c-e]", "invalid character class range: `-e`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("x[a", "missing closing ]: `[a`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
    ] {
        assert_eq!(random(pattern, 1), Err(format!("error parsing regexp: {want}")), "{pattern}");
    }
    assert_eq!(random("", 1), Err("no pattern provided".to_owned()));
    for deep in ["(".repeat(100_000), format!("a{}", "*".repeat(100_000))] {
        assert!(random(&deep, 1).unwrap_err().starts_with("error parsing regexp: expression nests too deeply"));
    }
}

#[test]
fn nested_repetitions_end_at_the_budget() {
    for (pattern, want) in [
        ("((([a-z]{1000}){1000}){1000})", EvalError::Budget(BudgetError::Bytes)),
        ("(((()*)*)*)*", EvalError::Budget(BudgetError::Steps)),
    ] {
        let runtime = FixedRuntime::default().with_budget(Budget::new(50_000, 10_000));
        let expression = Expression::compile(&format!("random('{pattern}')")).unwrap();
        assert_eq!(expression.evaluate(&Value::Null, &runtime), Err(want), "{pattern}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(pattern in r"[a\[\]()|*+?{}1,0^:\-\\.é]{0,20}") {
        let _ = random(&pattern, 1);
    }
}
