//! JMESPath: compiling refuses or gives an expression whose evaluation ends within its budget.

#![no_main]

use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::jmespath::{Expression, FixedRuntime};
use libfuzzer_sys::fuzz_target;

const DATA: &str = r#"{"a":{"b":[1,2.5,"x",null,true],"c":"10Mi"},"items":[{"k":"v","n":3},{"k":"w","n":-1}],
    "time":"2026-11-21T10:00:00Z","image":"ghcr.io/a/b:1@sha256:00","text":"a-b-c","deep":[[[1],[2]],[[3]]]}"#;

fuzz_target!(|text: &str| {
    let Ok(expression) = Expression::compile(text) else { return };
    let data = Value::from_json(DATA).expect("the data is JSON");
    let runtime = FixedRuntime::default().with_budget(Budget::new(100_000, 1 << 20));
    if let Ok(value) = expression.evaluate(&data, &runtime) {
        drop(value.to_json());
    }
    drop(expression.dump());
});
