//! What a CEL expression may cost in memory, counted: one evaluation allocates nothing if its result is a scalar.

use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_expr::cel::profile::Kubernetes;
use ephor_expr::cel::{EvalError, NoHost, Program, Run, Scope, Usage, Val};

const POD: &str = r#"{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":3,"containers":[
    {"name":"a","image":"ghcr.io/acme/a:v1","securityContext":{"privileged":false}},
    {"name":"b","image":"ghcr.io/acme/b:v1","securityContext":{"privileged":false}}]}}"#;

struct Object<'v>(&'v Value);

impl<'v> Scope<'v> for Object<'v> {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        (name == "object").then(|| Ok(Val::from_json(self.0)))
    }
}

#[test]
fn expressions_with_a_scalar_result_allocate_nothing() {
    let pod = Value::from_json(POD).unwrap();
    let environment = Kubernetes::Policy.environment();
    let (budget, usage) = (Budget::new(u64::MAX, u64::MAX), Usage::new(None));
    let run = Run { host: &NoHost, budget: &budget, usage: &usage };
    for text in [
        "object.metadata.name == 'web'",
        "object.spec.replicas * 2 + 1 == 7",
        "object.spec.replicas in [1, 2, 3]",
        "has(object.metadata.labels.app) && object.metadata.labels['app'] == 'web'",
        "object.metadata.name.startsWith('w') && object.metadata.name.size() < 63",
        "object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.privileged) && \
         c.securityContext.privileged == false)",
        "object.spec.containers.exists(c, c.image.startsWith('ghcr.io/'))",
        "object.spec.replicas > 1 ? true : false",
        "!(object.?spec.missing.orValue(false))",
    ] {
        let program = Program::compile(text, &environment).unwrap();
        let counted = allocation_counter::measure(|| {
            let value = program.evaluate(&Object(&pod), &run).unwrap();
            assert!(matches!(value, Val::Bool(true)), "{text}");
        });
        assert_eq!(counted.count_total, 0, "{text}");
    }
}

/// A text with so many parts.
type Text = fn(usize) -> String;

#[test]
fn compiling_takes_memory_as_the_text_is_long() {
    let environment = Kubernetes::Policy.environment();
    let bytes = |text: String| {
        allocation_counter::measure(|| {
            let _ = Program::compile(&text, &environment);
        })
        .bytes_total
    };
    let texts: [(&str, Text); 3] = [
        ("calls", |n| format!("[{}].size() > 0", vec!["object.a + 'b'"; n].join(","))),
        ("empty lists", |n| format!("[{}].size() > 0", vec!["[]"; n].join(","))),
        ("undeclared names", |n| format!("[{}].size() > 0", vec!["unknown"; n].join(","))),
    ];
    for (name, text) in texts {
        let (short, long) = (bytes(text(250)), bytes(text(2_000)));
        assert!(long < 12 * short, "{name}: {short} bytes for 250, {long} for 2,000");
    }
}
