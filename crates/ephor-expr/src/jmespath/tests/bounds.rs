//! Hostile expressions end early.

use super::super::{EvalError, Expression, FixedRuntime};
use crate::budget::{Budget, BudgetError};
use crate::value::Value;

fn run(expression: &str, root: &Value, steps: u64, bytes: u64) -> Result<Value, EvalError> {
    let runtime = FixedRuntime::default().with_budget(Budget::new(steps, bytes));
    Expression::compile(expression).unwrap().evaluate(root, &runtime)
}

#[test]
fn deep_nesting_does_not_compile() {
    for (open, close) in
        [("(", ")"), ("[", "]"), ("!", ""), ("{a:", "}"), ("to_array(", ")"), ("map(&", ",@)"), ("a[?", "]")]
    {
        let nested = |n: usize| format!("{}@{}", open.repeat(n), close.repeat(n));
        assert!(Expression::compile(&nested(50)).is_ok(), "{open}");
        let error = Expression::compile(&nested(10_000)).unwrap_err();
        assert_eq!(error.message, "the expression nests deeper than 128 levels", "{open}");
    }
    for link in [".a", "[0]", "[]", "[*]", " | a", " || a", " == a", ".*", "[?a]"] {
        let chain = |n: usize| format!("a{}", link.repeat(n));
        assert!(Expression::compile(&chain(60)).is_ok(), "{link}");
        assert!(Expression::compile(&chain(10_000)).is_err(), "{link}");
    }
}

#[test]
fn the_deepest_expressions_evaluate_on_a_small_stack() {
    let nested = format!("{}a{}", "map(&[@][?@].{k: ".repeat(20), "}, @)".repeat(20));
    let list = format!("{}@{}", "[".repeat(120), "]".repeat(120));
    for expression in [nested, list] {
        let work =
            move || run(&expression, &Value::from(vec![Value::from_json("[[1]]").unwrap()]), 10_000, 1 << 20).is_ok();
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap();
        thread.join().unwrap();
    }
}

#[test]
fn doubling_ends_at_the_budget() {
    let doubling = format!("@{}", " | [@, @]".repeat(60));
    assert_eq!(run(&doubling, &Value::from("x"), 1_000_000, 1 << 20), Err(BudgetError::Steps.into()));
    let doubling = format!("@{}", " | {a: @, b: @}".repeat(60));
    assert_eq!(run(&doubling, &Value::from("x"), 1_000_000, 1 << 20), Err(BudgetError::Steps.into()));
    let joining = format!("@{}", " | join(@, [@, @])".repeat(60));
    assert_eq!(run(&joining, &Value::from("xy"), 1_000_000, 1 << 20), Err(BudgetError::Bytes.into()));
    let quoting = format!("@{}", " | to_string([@])".repeat(60));
    assert!(run(&quoting, &Value::from("\""), 1_000_000, 1 << 20).is_err());
}

#[test]
fn nested_loops_end_at_the_budget() {
    let numbers = Value::from((0..1000).collect::<Vec<i64>>());
    let root = Value::from([("n", numbers)]);
    let loops = "map(&[@, @], n) | map(&[@, @], @) | map(&[@, @], @)";
    assert!(run(loops, &root, 100_000, 1 << 20).is_ok());
    assert_eq!(run(loops, &root, 1_000, 1 << 20), Err(BudgetError::Steps.into()));
    assert_eq!(run("n[?@ == `5`]", &root, 500, 1 << 20), Err(BudgetError::Steps.into()));
    assert_eq!(run("n[*].[@]", &root, 1_000_000, 100), Err(BudgetError::Bytes.into()));
}
