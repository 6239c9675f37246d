//! Bounds and properties that vectors do not show.

use super::*;
use crate::Value;
use crate::budget::Budget;

fn environment() -> Environment {
    profile::Kubernetes::Policy.environment()
}

struct Object<'v>(&'v Value);

impl<'v> Scope<'v> for Object<'v> {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        (name == "object").then(|| Ok(Val::from_json(self.0)))
    }
}

fn evaluate(text: &str, object: &str, budget: &Budget, limit: Option<u64>) -> Result<Value, EvalError> {
    let program = Program::compile(text, &environment()).unwrap();
    let object = Value::from_json_nested(object, 10_000).unwrap();
    let usage = Usage::new(limit);
    let run = Run { host: &NoHost, budget, usage: &usage };
    program.evaluate(&Object(&object), &run).map(|value| value.to_json().unwrap_or_default())
}

/// What `look` makes of the value of an expression, which must have one.
pub(super) fn evaluated<T>(text: &str, object: &str, environment: &Environment, look: impl FnOnce(&Val<'_>) -> T) -> T {
    let program = Program::compile(text, environment).unwrap();
    let object = Value::from_json(object).unwrap();
    let (budget, usage) = (Budget::default(), Usage::new(None));
    look(&program.evaluate(&Object(&object), &Run { host: &NoHost, budget: &budget, usage: &usage }).unwrap())
}

#[test]
fn hostile_texts_are_refused_without_a_stack_overflow() {
    let long_sum = format!("1{}", "+1".repeat(30_000));
    let parentheses = format!("{}1{}", "(".repeat(3_000), ")".repeat(3_000));
    let selects = format!("object{}", ".a".repeat(3_000));
    let lists = format!("{}{}", "[".repeat(3_000), "]".repeat(3_000));
    let nots = format!("{}true", "!".repeat(50_001));
    let calls = format!("{}1{}", "int(".repeat(3_000), ")".repeat(3_000));
    let maps = "[1].map(x, ".repeat(200) + "x" + &")".repeat(200);
    let chained = format!("optional.of(1){}", ".optMap(x, x)".repeat(200));
    let ternaries = format!("{}1", "true ? 1 : ".repeat(3_000));
    let unclosed = "(".repeat(50_000);
    let texts = [long_sum, parentheses, selects, lists, calls, ternaries, unclosed, "a".repeat(100_001)];
    for text in texts {
        assert!(Program::compile(&text, &environment()).is_err(), "{}", text.get(..20).unwrap_or_default());
    }
    for text in [nots, maps, chained, format!("true{}", " && true".repeat(12_000))] {
        let program = Program::compile(&text, &environment());
        if let Ok(program) = program {
            let (budget, usage) = (Budget::default(), Usage::new(Some(profile::COST_LIMIT)));
            let run = Run { host: &NoHost, budget: &budget, usage: &usage };
            let _ = program.evaluate(&Object(&Value::Null), &run);
        }
    }
}

#[test]
fn an_error_of_one_side_gives_way_to_the_other() {
    let budget = Budget::default();
    let value = |text: &str| evaluate(text, "{}", &budget, None).map(|value| value.to_json());
    assert_eq!(value("object.a == 1 || true").as_deref(), Ok("true"));
    assert_eq!(value("false && object.a").as_deref(), Ok("false"));
    assert_eq!(value("object.a || false"), Err(EvalError::NoSuchKey("a".into())));
    assert_eq!(value("[1, 2].exists(x, x / (x - 1) > 0 || x == 2)").as_deref(), Ok("true"));
}

#[test]
fn spent_budgets_and_costs_are_not_absorbed() {
    let list = format!("{{\"l\":[{}1]}}", "1,".repeat(999));
    let text = "object.l.all(a, object.l.all(b, a == b)) || true";
    assert_eq!(evaluate(text, &list, &Budget::new(1_000, 1 << 20), None).map_err(|e| e.is_fatal()), Err(true));
    assert_eq!(evaluate(text, &list, &Budget::default(), Some(1_000)), Err(EvalError::CostLimit));
}

/// The variables on which functions are called.
struct Contexts;

impl<'v> Scope<'v> for Contexts {
    fn variable(&self, name: &str) -> Option<Result<Val<'v>, EvalError>> {
        let (_, kind) = profile::CONTEXTS.iter().find(|(variable, _)| *variable == name)?;
        Some(Ok(library::context(kind)))
    }
}

/// Each step holds the one before twice, so that few bytes stand for 2^40 parts.
#[test]
fn what_holds_its_parts_many_times_is_never_read_for_free() {
    let environment = profile::Kyverno::Validating.environment();
    let doubled = format!("[dyn(1)]{}", ".map(a, dyn([a, a]))".repeat(40));
    let maps = format!("[dyn(1)]{}", ".map(a, dyn({'x': a, 'y': a}))".repeat(40));
    for text in [
        format!("{doubled} == {doubled}"),
        format!("{maps} != {maps}"),
        format!("optional.of({doubled}) == optional.of({doubled})"),
        format!("{doubled} in [{doubled}]"),
        format!("[{doubled}].indexOf({doubled})"),
        format!("[{doubled}, {doubled}].distinct()"),
        format!("sets.contains([{doubled}], [{doubled}])"),
        format!("{doubled}.flatten(50)"),
        format!("json.marshal({doubled})"),
        format!("'%s'.format([{doubled}])"),
        format!("resource.Post('v1', 'pods', {{'a': {doubled}}})"),
    ] {
        let program = Program::compile(&text, &environment).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let (budget, usage) = (Budget::new(100_000, 1 << 20), Usage::new(None));
        let run = Run { host: &NoHost, budget: &budget, usage: &usage };
        let error = program.evaluate(&Contexts, &run).map(|value| value.type_name().into_owned());
        assert!(matches!(error, Err(EvalError::Budget(_))), "{error:?}: {}", text.get(..60).unwrap_or_default());
    }
}

#[test]
fn building_text_and_lists_is_charged() {
    let grow = "object.l.map(a, object.s + object.s + object.s)";
    let object = format!("{{\"l\":[{}1],\"s\":\"{}\"}}", "1,".repeat(999), "x".repeat(10_000));
    assert!(evaluate(grow, &object, &Budget::new(10_000_000, 1 << 20), None).is_err_and(|error| error.is_fatal()));
}

/// A policy of a namespace builds a text of any size and calls any function on it, as often as it likes.
#[test]
fn every_function_is_charged_for_the_length_of_its_texts() {
    let length = 700_000;
    let object = Value::from([("s", Value::from("1".repeat(length)))]);
    let environment = profile::Kyverno::Validating.environment();
    let mut called = std::collections::BTreeSet::new();
    for overload in library::all().flat_map(|library| library.overloads) {
        let is_name = overload.function.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
        if !is_name || overload.function.starts_with('_') || !overload.params.contains("string") {
            continue;
        }
        let arguments = vec!["object.s"; overload.params.split(',').count()];
        let text = match arguments.split_first() {
            Some((target, rest)) if overload.member => format!("{target}.{}({})", overload.function, rest.join(", ")),
            _ => format!("{}({})", overload.function, arguments.join(", ")),
        };
        let Ok(program) = Program::compile(&text, &environment) else { continue };
        let (budget, usage) = (Budget::new(1_000_000, 32 << 20), Usage::new(None));
        // What comes out does not matter: most functions refuse such a text.
        let _ = program.evaluate(&Object(&object), &Run { host: &NoHost, budget: &budget, usage: &usage });
        assert!(budget.steps_left() <= 1_000_000 - length as u64 / 16, "{text} left {}", budget.steps_left());
        called.insert(overload.function);
    }
    for function in ["isURL", "duration", "charAt", "isQuantity", "double", "isImage", "matches", "size"] {
        assert!(called.contains(function), "{function} was not called: {called:?}");
    }
    for text in ["object[object.s]", "object.s == object.s", "object.s in object", "object.s + '' < object.s"] {
        let (budget, usage) = (Budget::new(1_000_000, 32 << 20), Usage::new(None));
        let program = Program::compile(text, &environment).unwrap();
        let _ = program.evaluate(&Object(&object), &Run { host: &NoHost, budget: &budget, usage: &usage });
        assert!(budget.steps_left() <= 1_000_000 - length as u64 / 16, "{text} left {}", budget.steps_left());
    }
}

#[test]
fn issues_know_their_places_in_code_points() {
    let error = Program::compile("'é' +\n  nope", &environment()).unwrap_err();
    let CompileError::Issues { issues, .. } = error else { panic!("not issues") };
    assert_eq!(issues.first().and_then(|issue| issue.offset), Some(8));
}

#[test]
fn deep_objects_never_overflow_a_stack() {
    let depth = 9_000;
    let object = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    for text in [
        "object.a == object.a",
        "object == dyn({'a': object.a})",
        "object.a in [object.a]",
        "[object.a, dyn(1)].distinct().size() == 2",
        "object.a.flatten(1000) == []",
        "sets.contains([object], [object])",
        "[object].indexOf(object) == 0",
        "'%s'.format([object]) == ''",
    ] {
        let _ = evaluate(text, &object, &Budget::default(), None);
    }
}

#[test]
fn comparing_large_objects_takes_steps() {
    let object = format!("{{\"a\":{{\"b\":[{}1]}}}}", "1,".repeat(9_999));
    let text = "[1,2,3,4,5,6,7,8,9,10].all(x, object == object)";
    assert!(evaluate(text, &object, &Budget::new(50_000, 1 << 20), None).is_err_and(|error| error.is_fatal()));
}

#[test]
fn zones_have_the_names_of_the_database() {
    let hours = |zone: &str| {
        evaluate(&format!("timestamp('2024-07-01T00:00:00Z').getHours('{zone}')"), "{}", &Budget::default(), None)
    };
    assert_eq!(hours("Europe/Paris"), Ok(Value::Int(2)));
    assert_eq!(hours("+02:30"), Ok(Value::Int(2)));
    assert_eq!(hours("europe/paris"), Err(EvalError::Other("unknown time zone europe/paris".into())));
    assert_eq!(hours("../etc/localtime"), Err(EvalError::Other("unknown time zone ../etc/localtime".into())));
}

#[test]
fn few_compressed_bytes_do_not_become_many_for_free() {
    let environment = profile::Kyverno::Validating.environment();
    let run = |text: &str, budget: &Budget| {
        let program = Program::compile(text, &environment).unwrap();
        let usage = Usage::new(None);
        let object = Value::Null;
        let run = Run { host: &NoHost, budget, usage: &usage };
        program.evaluate(&Object(&object), &run).map(|value| value.to_json().unwrap_or_default())
    };
    let zeros = "[1,2,3,4,5,6,7,8,9,10,11,12].map(x, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').join('')";
    let text = format!("gzip.decompress(gzip.compress({zeros})) == {zeros}");
    assert_eq!(run(&text, &Budget::default()), Ok(Value::Bool(true)));
    assert!(run(&text, &Budget::new(1_500, 1 << 20)).is_err_and(|error| error.is_fatal()));
}

/// A rule of a definition: every variable has this value.
struct Rule(Val<'static>);

impl<'v> Scope<'v> for Rule {
    fn variable(&self, _: &str) -> Option<Result<Val<'v>, EvalError>> {
        Some(Ok(self.0.clone()))
    }
}

#[test]
fn sets_and_keyed_lists_of_schemas_compare_and_add_by_their_elements() {
    let schema = Value::from_json(
        r#"{"type":"object","properties":{
            "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}},
            "map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":
                {"type":"object","properties":{"name":{"type":"string"},"port":{"type":"integer"}}}}}}"#,
    )
    .unwrap();
    let object = Value::from_json(r#"{"set":[3,1],"map":[{"name":"a","port":1},{"name":"b","port":2}]}"#).unwrap();
    let environment = profile::definition_rule(&schema);
    for text in [
        "self.set == [1, 3]",
        "self.set != [1, 3, 3]",
        "(self.set + [1, 2]).size() == 3",
        "self.map == self.map.reverse()",
        "(self.map + self.map).size() == 2",
    ] {
        let program = Program::compile(text, &environment).unwrap();
        let (budget, usage) = (Budget::default(), Usage::new(None));
        let run = Run { host: &NoHost, budget: &budget, usage: &usage };
        let value = program.evaluate(&Rule(schema::typed(&object, &schema)), &run);
        assert!(matches!(value, Ok(Val::Bool(true))), "{text}: {value:?}");
    }
}

/// The parts of an expression and their values, in order.
fn parts(text: &str, object: &str) -> Vec<String> {
    let program = Program::compile(text, &environment()).unwrap();
    let object = Value::from_json(object).unwrap();
    let (budget, usage) = (Budget::default(), Usage::new(None));
    let run = Run { host: &NoHost, budget: &budget, usage: &usage };
    let seen = std::cell::RefCell::new(Vec::new());
    let watch = |place: std::ops::Range<usize>, value: &Result<Val<'_>, EvalError>| {
        let value = match value {
            Ok(value) => value.to_json().unwrap_or_default().to_json(),
            Err(error) => error.to_string(),
        };
        seen.borrow_mut().push(format!("{} -> {value}", text.get(place).unwrap()));
    };
    let watched = program.evaluate_watched(&Object(&object), &run, &watch);
    // Watching changes neither the value nor the cost.
    let cost = usage.spent();
    let usage = Usage::new(None);
    let unwatched = program.evaluate(&Object(&object), &Run { host: &NoHost, budget: &budget, usage: &usage });
    assert_eq!((format!("{watched:?}"), cost), (format!("{unwatched:?}"), usage.spent()), "{text}");
    seen.take()
}

#[test]
fn each_part_of_an_expression_is_heard_with_its_place() {
    let object = r#"{"a": 1, "k": "é", "m": {"é": 2}, "l": [{"n": "x"}, {}]}"#;
    let table: [(&str, &[&str]); 12] = [
        (
            "'é' == object.k && (object.a + 2) * 3 == 9",
            &[
                "object.k -> \"é\"",
                "'é' == object.k -> true",
                "object.a -> 1",
                "(object.a + 2) -> 3",
                "(object.a + 2) * 3 -> 9",
                "(object.a + 2) * 3 == 9 -> true",
                "'é' == object.k && (object.a + 2) * 3 == 9 -> true",
            ],
        ),
        (
            "object.a == 2 && object.b == 1",
            &["object.a -> 1", "object.a == 2 -> false", "object.a == 2 && object.b == 1 -> false"],
        ),
        (
            "object.m[object.k] == 2",
            &["object.k -> \"é\"", "object.m[object.k] -> 2", "object.m[object.k] == 2 -> true"],
        ),
        (
            "object.l.all(c, has(c.n))",
            &[
                "object.l -> [{\"n\":\"x\"},{}]",
                "has(c.n) -> true",
                "has(c.n) -> false",
                "object.l.all(c, has(c.n)) -> false",
            ],
        ),
        (
            "!has(object.b) ? object.a : object.b",
            &[
                "has(object.b) -> false",
                "!has(object.b) -> true",
                "object.a -> 1",
                "!has(object.b) ? object.a : object.b -> 1",
            ],
        ),
        ("object.?b.orValue(5)", &["object.?b -> null", "object.?b.orValue(5) -> 5"]),
        (
            "object.b == 1 || true",
            &["object.b -> no such key: b", "object.b == 1 -> no such key: b", "object.b == 1 || true -> true"],
        ),
        ("int(object.a) in [1, 2]", &["object.a -> 1", "int(object.a) -> 1", "int(object.a) in [1, 2] -> true"]),
        (
            "object.l.filter(c, has(c.n)).map(c, c.n)",
            &[
                "object.l -> [{\"n\":\"x\"},{}]",
                "has(c.n) -> true",
                "c -> {\"n\":\"x\"}",
                "has(c.n) -> false",
                "object.l.filter(c, has(c.n)) -> [{\"n\":\"x\"}]",
                "c.n -> \"x\"",
                "object.l.filter(c, has(c.n)).map(c, c.n) -> [\"x\"]",
            ],
        ),
        ("!!(object.a == 1)", &["object.a -> 1", "(object.a == 1) -> true"]),
        (
            "true && true && object.a == 1 // a remark",
            &[
                "true && true -> true",
                "object.a -> 1",
                "object.a == 1 -> true",
                "true && true && object.a == 1 -> true",
            ],
        ),
        ("'a'", &[]),
    ];
    for (text, expected) in table {
        assert_eq!(parts(text, object), expected, "{text}");
    }
}
