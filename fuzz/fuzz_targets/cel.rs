//! CEL: compiling refuses a text or gives a program whose evaluation ends within its budget. The first byte chooses
//! where the expression stands; variables have types, so that the checker has something to say.

#![no_main]

use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::profile::{COST_LIMIT, Kubernetes, Kyverno};
use ephor_expr::cel::{EvalError, NoHost, Program, Run, Scope, Type, Usage, Val};
use libfuzzer_sys::fuzz_target;

const OBJECT: &str = r#"{"a":{"b":[1,2.5,"x",null,true],"c":"10Mi"},"items":[{"k":"v","n":3},{"k":"w","n":-1}],
    "time":"2026-11-21T10:00:00Z","image":"ghcr.io/a/b:1@sha256:00","text":"a-b-c","deep":[[[1],[2]],[[3]]]}"#;

/// Names and types of variables, whose values are parts of the object.
const TYPED: [(&str, &str, &str); 4] = [
    ("s", "string", "text"),
    ("l", "list(map(string, dyn))", "items"),
    ("m", "map(string, dyn)", "a"),
    ("t", "string", "time"),
];

struct Variables<'v>(&'v Value);

impl<'v> Scope<'v> for Variables<'v> {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        if name == "object" {
            return Some(Ok(Val::from_json(self.0)));
        }
        let (_, _, part) = TYPED.iter().find(|(typed, _, _)| *typed == name)?;
        self.0.get(part).map(|value| Ok(Val::from_json(value)))
    }
}

fuzz_target!(|input: (u8, &str)| {
    let (place, text) = input;
    let mut environment = match place % 4 {
        0 => Kubernetes::Policy.environment(),
        1 => Kubernetes::Mutation.environment(),
        2 => Kubernetes::Policy136.environment(),
        _ => Kyverno::Validating.environment(),
    };
    for (name, kind, _) in TYPED {
        environment.declare(name, Type::parse(kind).expect("a type"));
    }
    let Ok(program) = Program::compile(text, &environment) else { return };
    let object = Value::from_json(OBJECT).expect("the object is JSON");
    let (budget, usage) = (Budget::new(100_000, 1 << 20), Usage::new(Some(COST_LIMIT)));
    if let Ok(value) = program.evaluate(&Variables(&object), &Run { host: &NoHost, budget: &budget, usage: &usage }) {
        drop(value.to_json());
    }
});
