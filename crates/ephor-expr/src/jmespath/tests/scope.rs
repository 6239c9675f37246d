//! What expressions ask of their root.

use std::cell::RefCell;

use super::super::{EvalError, Expression, FixedRuntime, Root};
use crate::value::{Str, Value};

/// A root that notes what it is asked for.
#[derive(Default)]
struct Noted {
    asked: RefCell<Vec<String>>,
}

impl Root for Noted {
    fn field(&self, name: &str) -> Result<Option<Value>, EvalError> {
        self.asked.borrow_mut().push(name.to_owned());
        match name {
            "missing" => Ok(None),
            "pending" => Err(EvalError::Pending),
            "broken" => Err(EvalError::Other("no such config map".to_owned())),
            _ => Ok(Some(Value::from_json(r#"{"b":{"c":1}}"#).unwrap())),
        }
    }

    fn whole(&self) -> Result<Value, EvalError> {
        self.asked.borrow_mut().push("@".to_owned());
        Ok(Value::from_json(r#"{"a":{"b":{"c":1}}}"#).unwrap())
    }

    fn keys(&self) -> Vec<Str> {
        vec![Str::new("a")]
    }
}

fn asked(expression: &str) -> (Result<Value, EvalError>, Vec<String>) {
    let root = Noted::default();
    let result = Expression::compile(expression).unwrap().evaluate(&root, &FixedRuntime::default());
    (result, root.asked.into_inner())
}

#[test]
fn only_the_fields_in_use_are_asked_for() {
    for (expression, want) in [
        ("a.b.c", &["a"][..]),
        ("@.a.b", &["a"]),
        ("[a, {k: d.b}]", &["a", "d"]),
        ("to_string(a) || z", &["a"]),
        ("missing || a.b", &["missing", "a"]),
        ("a | b", &["a"]),
        ("a.b.[c, @]", &["a"]),
        ("map(&c, to_array(a))", &["a"]),
        ("a[?z]", &["a"]),
        ("@", &["@"]),
        ("@ | a", &["a"]),
        ("*", &["@"]),
        ("[0]", &["@"]),
        ("[*].a", &["@"]),
        ("keys(@)", &["@"]),
    ] {
        assert_eq!(asked(expression).1, want, "{expression}");
    }
}

#[test]
fn identifiers_of_the_root_are_known_without_evaluation() {
    let expression = Expression::compile(r#"a.b[?c == d].e || "x y".z | q || to_string(f)"#).unwrap();
    let found: Vec<_> = expression.root_identifiers().iter().map(|i| (i.name.as_str(), i.offset)).collect();
    assert_eq!(found, [("a", 0), ("x y", 18)]);
    assert!(!expression.reads_whole_root());
    assert!(Expression::compile("a || @").unwrap().reads_whole_root());
}

#[test]
fn missing_members_name_those_that_exist() {
    let unknown =
        |key: &str, known: &str| Err(EvalError::UnknownKey { key: Str::new(key), known: vec![Str::new(known)] });
    assert_eq!(asked("missing").0, unknown("missing", "a"));
    assert_eq!(asked("a.b.x.y").0, unknown("x", "c"));
    assert_eq!(asked("a.b | {k: @} | k.x[0]").0, Ok(Value::Null));
}

#[test]
fn failures_of_the_root_pass_all_operators() {
    for expression in [
        "pending || a",
        "[pending]",
        "!pending",
        "a[?@] || to_string(pending)",
        "pending | @",
        "pending[]",
        "pending.*",
        "to_string(pending)[?a]",
    ] {
        assert_eq!(asked(expression).0, Err(EvalError::Pending), "{expression}");
    }
    assert!(asked("broken == a").0.is_err());
}

#[test]
fn a_null_root_selects_nothing() {
    let runtime = FixedRuntime::default();
    for expression in ["[a]", "{k: a}", "a", "*"] {
        let value = Expression::compile(expression).unwrap().evaluate(&Value::Null, &runtime);
        assert_eq!(value, Ok(Value::Null), "{expression}");
    }
}
