//! Templates over hostile data: what a variable holds comes out as it is. The text is the data; what follows a line
//! `---` is a template of its own, which may fail but not panic or run on.

#![no_main]

use ephor_engine::fetch::Facts;
use ephor_engine::gate::Asker;
use ephor_engine::review::Review;
use ephor_engine::scope::{AtBase, Compiler, Scope, Seed, Template, World};
use ephor_expr::budget::Budget;
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};
use libfuzzer_sys::fuzz_target;

/// Templates that give the data back, with what they put before and after it.
const FAITHFUL: [(&str, &str, &str); 7] = [
    ("{{ request.object.x }}", "", ""),
    ("-{{ request.object.x }}-", "-", "-"),
    ("{{- request.object.x }}}}", "", "}}"),
    ("{{ 'a{{ request.object.x }}' }}", "a", ""),
    ("{{ `\"{{ request.object.x }}b\"` }}", "", "b"),
    ("{{ to_string('{{ to_string('{{ request.object.x }}') }}') }}", "", ""),
    ("{{ request.object.names.\"{{ request.object.x }}\" || request.object.x }}", "", ""),
];

/// A patch of one operation whose value is the data.
const PATCH: &str = "- op: add\n  path: /a\n  value: {k: \"{{ request.object.x }}\"}\n";

fn template(compile: impl FnOnce(&mut Compiler<'_>) -> Template) -> Option<Template> {
    let mut findings = Vec::new();
    let template = compile(&mut Compiler::new(AtBase::Object, &mut findings));
    findings.is_empty().then_some(template)
}

fuzz_target!(|text: &str| {
    let (data, free) = text.split_once("\n---\n").unwrap_or((text, ""));
    let names = Value::from([] as [(&str, Value); 0]);
    let object = Value::from([("x", Value::from(data)), ("names", names)]);
    let request = Value::from([("object", object.clone())]);
    let review = Review::of_object(object, jiff::Timestamp::UNIX_EPOCH);
    let facts = Facts::new();
    let resolve = |template: &Template| {
        let seed = Seed { policy: "p", rule: "r", review: 0 };
        let world = World::new(&facts, Asker::default(), review.now, seed, Budget::default());
        template.resolve(&mut Scope::new(&world, &review, request.clone(), "r", &[]))
    };
    for (written, before, after) in FAITHFUL {
        let compiled = template(|compiler| compiler.text(&Str::new(written), &Path::root())).expect("it compiles");
        let got = resolve(&compiled).expect("it has a value");
        assert_eq!(got.as_str(), Some(format!("{before}{data}{after}").as_str()), "{written}");
    }
    let patch = template(|compiler| compiler.patch_text(&Str::new(PATCH), &Path::root())).expect("it compiles");
    let got = resolve(&patch).expect("it has a value");
    let operations = got.as_array().expect("a list");
    assert_eq!(operations.len(), 1);
    assert_eq!(operations[0].at(&["value", "k"]).and_then(Value::as_str), Some(data));
    if let Some(template) = template(|compiler| compiler.text(&Str::new(free), &Path::root())) {
        drop(resolve(&template));
    }
    if let Some(template) = template(|compiler| compiler.patch_text(&Str::new(free), &Path::root())) {
        drop(resolve(&template));
    }
});
