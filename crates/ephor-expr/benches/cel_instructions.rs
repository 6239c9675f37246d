//! One compilation and one evaluation of a CEL expression for callgrind, which counts instructions where time is noisy.
//!
//! `docs/performance.md` has the commands.

use std::hint::black_box;

use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::profile::Kubernetes;
use ephor_expr::cel::{Environment, EvalError, NoHost, Program, Run, Scope, Usage, Val};

const EXPRESSION: &str = "object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.privileged) && \
                          c.securityContext.privileged == false)";
const POD: &str = r#"{"metadata":{"name":"web"},"spec":{"containers":[
    {"name":"a","image":"ghcr.io/acme/app:v1","securityContext":{"privileged":false}},
    {"name":"a","image":"ghcr.io/acme/app:v1","securityContext":{"privileged":false}}]}}"#;

struct Object<'v>(&'v Value);

impl<'v> Scope<'v> for Object<'v> {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        (name == "object").then(|| Ok(Val::from_json(self.0)))
    }
}

/// A function of its own, so that callgrind can tell it from the preparations.
#[inline(never)]
fn measured_compilation(environment: &Environment) -> Program {
    Program::compile(black_box(EXPRESSION), environment).expect("the expression compiles")
}

#[inline(never)]
fn measured_evaluation(program: &Program, pod: &Value, run: &Run<'_>) -> bool {
    matches!(program.evaluate(&Object(black_box(pod)), run), Ok(Val::Bool(true)))
}

#[expect(clippy::print_stdout, reason = "its result")]
fn main() {
    let pod = Value::from_json(POD).expect("the Pod is JSON");
    let environment = Kubernetes::Policy.environment();
    let (budget, usage) = (Budget::new(u64::MAX, u64::MAX), Usage::new(None));
    let run = Run { host: &NoHost, budget: &budget, usage: &usage };
    // The first of each also pays for what is set up once in the life of a process.
    let first = Program::compile(EXPRESSION, &environment).expect("the expression compiles");
    let passed = matches!(first.evaluate(&Object(&pod), &run), Ok(Val::Bool(true)));
    let program = measured_compilation(&environment);
    println!("{}", passed && measured_evaluation(&program, &pod, &run));
}
