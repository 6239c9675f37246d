//! Functions of CEL that read texts in languages of their own: regular expressions, formats, times, quantities,
//! versions, addresses, URLs, compressed data. Arguments come from strangers, expressions do not.

#![no_main]

use std::sync::LazyLock;

use ephor_expr::budget::Budget;
use ephor_expr::cel::profile::{COST_LIMIT, Kyverno};
use ephor_expr::cel::{EvalError, NoHost, Program, Run, Scope, Type, Usage, Val};
use libfuzzer_sys::fuzz_target;

const CALLS: [&str; 22] = [
    "a.matches(b)",
    "a.find(b)",
    "a.findAll(b)",
    "a.replace(b, a)",
    "a.split(b)",
    "a.format([dyn(b), dyn(1), dyn(2.5), dyn([b]), dyn({b: 1}), dyn(duration('1h')), dyn(true)])",
    "duration(a)",
    "timestamp(a)",
    "timestamp('2024-01-01T00:00:00Z').getHours(a)",
    "int(a)",
    "double(a)",
    "quantity(a).compareTo(quantity(b))",
    "semver(a).isLessThan(semver(b))",
    "ip(a).family()",
    "cidr(a).containsIP(b)",
    "url(a).getHost()",
    "format.named(a).value().validate(b)",
    "format.qualifiedName().validate(a)",
    "image(a).registry()",
    "json.unmarshal(a)",
    "yaml.parse(a)",
    "gzip.decompress(base64.decode(a)) == x509.decode(b)",
];

static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let mut environment = Kyverno::Validating.environment();
    environment.declare("a", Type::String);
    environment.declare("b", Type::String);
    CALLS.iter().map(|text| Program::compile(text, &environment).expect("it compiles")).collect()
});

struct Arguments<'v>(&'v str, &'v str);

impl<'v> Scope<'v> for Arguments<'v> {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        match name {
            "a" => Some(Ok(Val::text(self.0))),
            "b" => Some(Ok(Val::text(self.1))),
            "json" => Some(Ok(ephor_expr::cel::library::context("json.Json"))),
            "yaml" => Some(Ok(ephor_expr::cel::library::context("yaml.Yaml"))),
            _ => None,
        }
    }
}

fuzz_target!(|input: (u8, &str, &str)| {
    let (number, a, b) = input;
    let Some(program) = PROGRAMS.get(usize::from(number) % PROGRAMS.len()) else { return };
    let (budget, usage) = (Budget::new(100_000, 1 << 20), Usage::new(Some(COST_LIMIT)));
    let _ = program.evaluate(&Arguments(a, b), &Run { host: &NoHost, budget: &budget, usage: &usage });
});
