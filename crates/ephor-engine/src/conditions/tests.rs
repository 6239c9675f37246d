//! The observed tables of engine.md 8.3 and 8.4.
//!
//! Operands are JSON; `~` marks data, as a variable gives it. Where the current upstream differs from the observed
//! release (string keys that measure something against strings that do not: never equal, so always `NotEquals`) the
//! tables here say what upstream does now.

use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::value::{Path, decode};
use ephor_expr::{Str, Value};

use super::*;
use crate::policy::Conditions;

fn operand(text: &str) -> Value {
    match text {
        "~big" => as_data(Value::Int(1_000_000)),
        "~list" => as_data(Value::from(vec![1, 2])),
        "~null" => Value::Null,
        json => Value::from_json(json).unwrap_or_else(|e| panic!("{json}: {e}")),
    }
}

/// `T` and `F` for each operator on one pair.
fn verdicts(operators: &[&str], key: &str, value: &str) -> String {
    verdicts_by(Author::Policy, operators, key, value)
}

fn verdicts_by(key_author: Author, operators: &[&str], key: &str, value: &str) -> String {
    let operands = Operands { key: operand(key), key_author, value: operand(value), value_author: Author::Policy };
    let verdict = |name: &&str| {
        let holds = evaluate(Operator::parse(name).unwrap(), &operands, &Budget::default()).unwrap();
        if holds { 'T' } else { 'F' }
    };
    operators.iter().map(verdict).collect()
}

#[track_caller]
fn check(operators: &[&str], rows: &[(&str, &str, &str)]) {
    for (key, value, expected) in rows {
        assert_eq!(verdicts(operators, key, value), *expected, "{key} {operators:?} {value}");
    }
}

#[test]
fn wildcards_of_data_are_in_no_list_of_allowed_values() {
    let operators = ["AnyIn", "AllIn", "In", "AnyNotIn", "AllNotIn", "NotIn"];
    for (key, value, of_policy, of_data) in [
        (r#""*""#, r#"["get", "list"]"#, "TTTFFF", "TTTTTT"),
        (r#""g?t""#, r#"["get", "list"]"#, "TTTFFF", "TTTTTT"),
        (r#""get""#, r#"["g*", "list"]"#, "TTTFFF", "TTTFFF"),
        (r#"["*"]"#, r#"["get", "list"]"#, "TTFFFT", "TTFTTT"),
        (r#"["get", "*"]"#, r#"["get", "list"]"#, "TTFFFT", "TTFTFT"),
        (r#"["*"]"#, r#""get""#, "TTFFFF", "TTFTTF"),
        (r#"["*"]"#, r#""[\"get\"]""#, "TTFFFT", "TTFTTT"),
        (r#"["*"]"#, r#"["*"]"#, "TTTFFF", "TTTFFF"),
        (r#""x""#, r#"["get", "list"]"#, "FFFTTT", "FFFTTT"),
    ] {
        assert_eq!(verdicts_by(Author::Policy, &operators, key, value), of_policy, "{key} in {value}");
        assert_eq!(verdicts_by(Author::Data, &operators, key, value), of_data, "{key} of data in {value}");
    }
}

#[test]
fn a_value_of_the_request_is_equal_to_itself_alone_where_absence_is_asked_for() {
    let operators = ["Equals", "AnyIn", "AllIn", "In", "NotEquals", "AnyNotIn", "AllNotIn", "NotIn"];
    for (key, value, of_policy, of_data) in [
        // Upstream: `NotIn` a text that is no list is false.
        (r#""prod""#, r#""*""#, "TTTTFFFF", "TTTTTTTF"),
        (r#""prod""#, r#""pr?d""#, "TTTTFFFF", "TTTTTTTF"),
        (r#""prod""#, r#"["p*"]"#, "FTTTTFFF", "FTTTTTTT"),
        (r#"["prod"]"#, r#""p*""#, "FTTFTFFF", "FTTFTTTF"),
        (r#""prod""#, r#""prod""#, "TTTTFFFF", "TTTTFFFF"),
        (r#""*""#, r#""*""#, "TTTTFFFF", "TTTTFFFF"),
    ] {
        let verdicts = |value_author| -> String {
            let operands =
                Operands { key: operand(key), key_author: Author::Policy, value: operand(value), value_author };
            let holds = |name: &&str| evaluate(Operator::parse(name).unwrap(), &operands, &Budget::default()).unwrap();
            operators.iter().map(|name| if holds(name) { 'T' } else { 'F' }).collect()
        };
        assert_eq!(verdicts(Author::Policy), of_policy, "{key} {value}");
        assert_eq!(verdicts(Author::Data), of_data, "{key} {value} of data");
    }
}

#[test]
fn equality() {
    let rows = [
        ("5", r#""5""#, "TF"),
        ("5", r#""5.0""#, "TF"),
        (r#""5""#, "5", "FT"),
        (r#""5.0""#, r#""5""#, "TF"),
        ("1.5", r#""x""#, "FT"),
        ("true", r#""true""#, "FT"),
        ("true", "true", "TF"),
        (r#""1Ki""#, r#""1024""#, "TF"),
        (r#""1h""#, r#""60m""#, "TF"),
        (r#""1h""#, "3600", "TF"),
        ("3600", r#""1h""#, "FT"),
        (r#""3600""#, r#""1h""#, "FT"),
        (r#""1s""#, "1.9", "TF"),
        (r#""1.5s""#, "1.5", "FT"),
        (r#""0s""#, r#""0""#, "FT"),
        (r#""0""#, r#""0s""#, "FT"),
        (r#""0s""#, "0", "TF"),
        (r#""1m""#, r#""0.001""#, "TF"),
        (r#""1m""#, r#""60""#, "FT"),
        (r#""10""#, r#""1*""#, "FT"),
        (r#""10""#, r#""*""#, "FT"),
        (r#""10""#, r#""""#, "FT"),
        (r#""1h""#, r#""1*""#, "TF"),
        (r#""1.5.2""#, r#""1.5.*""#, "TF"),
        (r#""a*""#, r#""abc""#, "FT"),
        (r#""""#, r#""*""#, "TF"),
        ("~list", "[1, 2]", "FT"),
        ("[1, 2]", "[1, 2]", "TF"),
        ("[1, 2]", "[2, 1]", "FT"),
        ("~list", "~list", "TF"),
        (r#"["a*"]"#, r#"["abc"]"#, "FT"),
        (r#"{"a": [1]}"#, r#"{"a": [1]}"#, "TF"),
        (r#"{"a": [1]}"#, r#"{"a": [1.0]}"#, "FT"),
        ("~null", r#""x""#, "FF"),
        (r#""x""#, "~null", "FT"),
        ("~null", "~null", "FF"),
        ("~big", r#""1e6""#, "TF"),
        ("~big", "1000000", "TF"),
    ];
    check(&["Equals", "NotEquals"], &rows);
    check(&["Equal", "NotEqual"], &rows);
}

#[test]
fn order() {
    let rows = [
        ("5", r#""4.5""#, "TF"),
        (r#""5""#, "4", "TF"),
        (r#""10""#, r#""9""#, "TF"),
        (r#""1Gi""#, r#""1000Mi""#, "TF"),
        (r#""1Gi""#, "1000", "FF"),
        ("2000", r#""1Ki""#, "FF"),
        (r#""1h""#, r#""59m""#, "TF"),
        (r#""1h""#, "3599", "TF"),
        (r#""1h""#, "3600.9", "FT"),
        ("3601", r#""1h""#, "TF"),
        ("3600.5", r#""1h""#, "FT"),
        (r#""3601""#, r#""1h""#, "TF"),
        (r#""1.10""#, r#""1.9""#, "FT"),
        (r#""1.10.0""#, r#""1.9.0""#, "TF"),
        (r#""v2.0.0""#, r#""1.0.0""#, "FF"),
        (r#""1.2.3""#, r#""1.2""#, "FF"),
        (r#""2.0.0""#, r#""2.0.0-rc1""#, "TF"),
        (r#""b""#, r#""a""#, "FF"),
        ("true", "false", "FF"),
        (r#""1e3""#, "999", "TF"),
        (r#""1m""#, r#""59s""#, "TF"),
        (r#""1m""#, r#""1""#, "FT"),
        ("~null", "0", "FF"),
        (r#""""#, r#""""#, "FF"),
        ("[2]", "[1]", "FF"),
    ];
    check(&["GreaterThan", "LessThanOrEquals"], &rows);
}

#[test]
fn order_at_the_limit() {
    let operators = ["GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals"];
    for (key, value) in
        [("5", r#""5.0""#), (r#""1h""#, "3600"), (r#""1Ki""#, r#""1024""#), (r#""1.2.3""#, r#""1.2.3""#)]
    {
        check(&operators, &[(key, value, "FTFT")]);
    }
    check(&operators, &[("1", "2", "FFTT"), (r#""1m""#, r#""2m""#, "FFTT"), (r#""1.2.3""#, r#""1.2.4""#, "FFTT")]);
}

#[test]
fn deprecated_duration_operators() {
    let operators =
        ["DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals"];
    check(
        &operators,
        &[
            (r#""1h""#, "3600", "FTFT"),
            ("3601", "3600", "TTFF"),
            ("3600", r#""1h1s""#, "FFTT"),
            (r#""1h""#, r#""x""#, "FFFF"),
            (r#""60""#, r#""1m""#, "FFFF"),
            ("true", "1", "FFFF"),
            ("~null", "1", "FFFF"),
        ],
    );
}

#[test]
fn membership() {
    let operators = ["AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "In", "NotIn"];
    check(
        &operators,
        &[
            (r#""a""#, r#"["a*"]"#, "TTFFTF"),
            (r#""a*""#, r#"["abc"]"#, "TTFFTF"),
            (r#""abc""#, r#""a*""#, "TTFFTF"),
            (r#""a*""#, r#""abc""#, "FFTTFF"),
            (r#""a""#, "[]", "FFTTFT"),
            (r#""456""#, r#""123""#, "FFFFFF"),
            (r#""123""#, r#""123""#, "TTFFTF"),
            (r#""a""#, r#""[\"a\",\"b\"]""#, "TTFFTF"),
            (r#""abc""#, r#""[\"a*\"]""#, "FFTTFT"),
            (r#""a""#, r#""[1]""#, "FFFFFF"),
            (r#""a""#, r#""\"a\"""#, "FFFFFF"),
            (r#""x""#, r#""null""#, "FFTTFT"),
            (r#""""#, r#""[null]""#, "TTFFTF"),
            ("5", "6", "FFFFFF"),
            ("5", r#""5""#, "TTFFTF"),
            ("5", "[5]", "TTFFTF"),
            ("1000000", r#"["1000000"]"#, "FFTTFT"),
            ("1000000", r#"["1e+06"]"#, "TTFFTF"),
            (r#""1000000""#, "[1000000]", "TTFFTF"),
            ("~big", "[1000000]", "FFTTFT"),
            ("true", "true", "FFFFFF"),
            (r#""5""#, r#""1-10""#, "TTFFFF"),
            (r#""5""#, r#""10-1""#, "FFTTFF"),
            (r#""5""#, r#""1 - 10""#, "FFTTFF"),
            (r#""5""#, r#""1!-10""#, "FFTTFF"),
            (r#""-9""#, r#""-10--8""#, "TTFFFF"),
            (r#""500m""#, r#""0-1""#, "TTFFFF"),
            (r#""90m""#, r#""1h-2h""#, "TTFFFF"),
            ("3700", r#""1h-2h""#, "FFTTFF"),
            (r#""a""#, r#""a-b""#, "FFTTFF"),
            (r#"["a", "x"]"#, r#"["a", "b"]"#, "TFTFFT"),
            (r#"["abc"]"#, r#"["a*"]"#, "TTFFFT"),
            ("[]", r#"["a"]"#, "FTFTTF"),
            ("[]", "[]", "FTFTTF"),
            (r#"["a"]"#, "[]", "FFTTFT"),
            (r#"["a"]"#, r#""a""#, "TTFFTT"),
            (r#"["a", "b"]"#, r#""a""#, "TFTFFF"),
            (r#"["a*"]"#, r#""abc""#, "TTFFFF"),
            (r#"["456"]"#, r#""123""#, "FFFFFF"),
            (r#"["abc"]"#, r#""[\"a*\"]""#, "TTFFFT"),
            (r#"["5", "15"]"#, r#""1-10""#, "TFTFFF"),
            (r#"["15", "16"]"#, r#""1-10""#, "FFTTFF"),
            (r#"["-9"]"#, r#""-10--8""#, "TTTFFF"),
            (r#"["5"]"#, "[5]", "TTFFFF"),
            (r#""a""#, r#"{"a": 1}"#, "FFFFFF"),
            (r#"["a"]"#, r#"{"a": 1}"#, "FFFFFF"),
            (r#"{"a": 1}"#, r#"["a"]"#, "FFFFFF"),
            (r#"["true"]"#, "true", "TFFFFF"),
            (r#"["a"]"#, "true", "FFTFFF"),
            ("~null", r#"["a"]"#, "FFFFFF"),
            ("~null", "~null", "FFFFFF"),
        ],
    );
}

/// Upstream these crash for `In` and `NotIn`; elements count by their text.
#[test]
fn deprecated_membership_of_lists_that_hold_other_than_strings() {
    let operators = ["AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "In", "NotIn"];
    check(
        &operators,
        &[
            ("[1000000]", r#"["1000000"]"#, "TTFFTF"),
            ("[null]", r#"["<nil>"]"#, "TTFFTF"),
            ("[5]", "5", "TFFFFF"),
            ("[5, 6]", "5", "TFTFFF"),
            ("[5]", "6", "FFTFFF"),
        ],
    );
}

/// Upstream all are false, so that an exemption for what is absent exempts everything.
#[test]
fn a_null_value_holds_nothing() {
    let operators = ["AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "In", "NotIn"];
    check(
        &operators,
        &[
            (r#""a""#, "~null", "FFTTFT"),
            ("5", "~null", "FFTTFT"),
            (r#"["a"]"#, "~null", "FFTTFT"),
            ("[]", "~null", "FFFTFF"),
            (r#"{"a": 1}"#, "~null", "FFFFFF"),
        ],
    );
}

/// What a block of `t1`, `f1` and `x` conditions came to: whether it holds, and the messages.
fn outcome(block: &str) -> Result<(bool, Option<Str>), &'static str> {
    #[derive(Debug)]
    struct Unresolved;
    impl From<BudgetError> for Unresolved {
        fn from(error: BudgetError) -> Self {
            panic!("{error}")
        }
    }
    let mut json = block.to_owned();
    for name in ["t1", "t2", "t3", "t4", "f1", "f2", "f3", "f4", "x"] {
        let condition = format!(r#"{{"key":"{name}","operator":"Equals","value":"t*","message":"{name}"}}"#);
        json = json.replace(&format!("<{name}>"), &condition);
    }
    let block: Conditions = decode(&operand(&json)).unwrap_or_else(|e| panic!("{json}: {e:?}"));
    let block = CompiledConditions::compile(&block, &Path::root(), |value, _| value.clone()).unwrap();
    let resolve = |condition: &CompiledCondition<Value>| {
        let (key, value) = (condition.key.clone(), condition.value.clone());
        let operands = Operands { key, key_author: Author::Policy, value, value_author: Author::Policy };
        if operands.key.as_str() == Some("x") { Err(Unresolved) } else { Ok(operands) }
    };
    let outcome =
        evaluate_block(&block, &Budget::default(), resolve, |_, _, _| {}).map_err(|Unresolved| "unresolved")?;
    Ok((outcome.holds, outcome.message()))
}

#[test]
fn blocks() {
    let some = |text: &'static str| Some(Str::new_static(text));
    for (block, expected) in [
        (r#"{"any": []}"#, Ok((false, None))),
        (r#"{"all": []}"#, Ok((true, None))),
        ("[]", Ok((true, None))),
        ("{}", Ok((true, None))),
        (r#"{"any": [], "all": [<t1>]}"#, Ok((false, None))),
        (r#"{"any": [<f1>, <t1>, <t2>], "all": [<t3>, <t4>]}"#, Ok((true, some("t1; t3; t4")))),
        ("[<t1>, <t2>]", Ok((true, some("t1;t2")))),
        (r#"{"any": [<f1>, <f2>], "all": [<f3>, <f4>]}"#, Ok((false, some("f1; f2; f3")))),
        (r#"{"any": [<t1>], "all": [<f1>]}"#, Ok((false, some("f1")))),
        (r#"{"any": [<t1>, <x>]}"#, Ok((true, some("t1")))),
        (r#"{"any": [<x>, <t1>]}"#, Err("unresolved")),
        (r#"{"all": [<f1>, <x>]}"#, Ok((false, some("f1")))),
        (r#"{"any": [<f1>], "all": [<x>]}"#, Err("unresolved")),
    ] {
        assert_eq!(outcome(block), expected, "{block}");
    }
}

#[test]
fn a_faulty_condition_is_refused_with_its_place() {
    for (block, path, message, nearest) in [
        (
            r#"{"any":[{"key":1,"operator":"equals","value":1}]}"#,
            "any[0].operator",
            "unknown operator `equals`",
            Some("Equals"),
        ),
        (r#"[{"key":1,"operator":"Equals","value":1},{"key":1}]"#, "[1]", "missing field `operator`", None),
    ] {
        let block: Conditions = decode(&operand(block)).unwrap();
        let error = CompiledConditions::compile(&block, &Path::root(), |value, _| value.clone()).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.path().to_string(), path);
        if let ConditionError::UnknownOperator { operator, .. } = error {
            assert_eq!(operator.nearest, nearest);
        }
    }
}

#[test]
fn templates_learn_where_they_stand() {
    let block: Conditions =
        decode(&operand(r#"{"all":[{"key":"k","operator":"In","value":null}],"any":[{"operator":"Equals"}]}"#))
            .unwrap();
    let block = CompiledConditions::compile(&block, &Path::root().key("deny"), |value, path| format!("{path}={value}"))
        .unwrap();
    let parts: Vec<_> = block.iter().map(|c| format!("{} {} {}", c.path, c.key, c.value)).collect();
    assert_eq!(
        parts,
        [
            "deny.any[0] deny.any[0].key=null deny.any[0].value=null",
            r#"deny.all[0] deny.all[0].key="k" deny.all[0].value=null"#,
        ]
    );
}

#[test]
fn values_are_compared_as_deep_as_an_api_server_reads_them() {
    let nest = |leaf: Value| (0..10_000).fold(leaf, |inner, _| Value::array(vec![inner]));
    let judged = |operator, key: &Value, value: &Value| {
        let operands = Operands {
            key: key.clone(),
            key_author: Author::Policy,
            value: value.clone(),
            value_author: Author::Policy,
        };
        evaluate(operator, &operands, &Budget::default()).unwrap()
    };
    let (one, other) = (nest(Value::Int(1)), nest(Value::Int(2)));
    assert!(judged(Operator::Equals, &one, &nest(Value::Int(1))));
    assert!(!judged(Operator::Equals, &one, &other));
    assert!(judged(Operator::Equals, &as_data(one.clone()), &nest(Value::Float(1.0))));
    assert!(!judged(Operator::AnyIn, &one, &Value::from("x")));
    let evil = nest(Value::from("evil"));
    assert!(judged(Operator::AnyIn, &evil, &Value::array(vec!["*evil*".into()])));
}
