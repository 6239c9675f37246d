//! The work of hostile objects, counted in steps: whatever an operator, a function or a pattern is given, the rule ends
//! within its budget, and a rule that does not finish is an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ephor_engine::evaluation::{Evaluation, Step};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::fetch::Facts;
use ephor_engine::outcome::{Outcome, Phase, Verdict};
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::Value;
use ephor_expr::budget::{Budget, Interrupt};

use crate::support::{policy, policy_of_rule, review, set, value};

/// Counts steps, and is due after some.
struct Counter {
    taken: AtomicU64,
    most: u64,
}

impl Counter {
    fn until(most: u64) -> Arc<Self> {
        Arc::new(Self { taken: AtomicU64::new(0), most })
    }

    fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Interrupt for Counter {
    fn is_due(&self, steps: u64) -> bool {
        self.taken.fetch_add(steps, Ordering::Relaxed) + steps >= self.most
    }
}

fn outcomes(set: &PolicySet, review: Review, phase: Phase, counter: Arc<Counter>) -> Vec<Outcome> {
    let exceptions = ExceptionSet::default();
    let mut evaluation = Evaluation::new(set, &exceptions, review, phase).interrupted_by(counter);
    assert!(matches!(evaluation.step(&Facts::new()), Step::Done));
    evaluation.finish().outcomes
}

/// The one outcome of a rule that is ended after `most` steps, and how many steps it reported.
fn run_until(most: u64, rule: &str, object: &Value) -> (Outcome, u64) {
    let counter = Counter::until(most);
    let set = set(&[policy_of_rule(&value(rule))]);
    for phase in [Phase::Validate, Phase::Mutate] {
        if let Some(outcome) = outcomes(&set, review(object), phase, Arc::clone(&counter)).pop() {
            return (outcome, counter.taken());
        }
    }
    panic!("the rule has no outcome: {rule}");
}

fn deny(key: &str, operator: &str, operand: &str) -> String {
    format!("validate: {{deny: {{conditions: {{all: [{{key: {key}, operator: {operator}, value: {operand}}}]}}}}}}")
}

/// The one outcome of a rule, and how many steps it reported.
fn run(rule: &str, object: &Value) -> (Outcome, u64) {
    run_until(u64::MAX, rule, object)
}

/// A condition on the value of an expression.
fn of(expression: &str) -> String {
    deny(&format!("\"{{{{ {expression} }}}}\""), "Equals", "never")
}

/// An object with these data.
fn data(members: &[(&str, Value)]) -> Value {
    Value::from([("data", Value::object(members.iter().map(|(k, v)| ((*k).into(), v.clone())).collect()))])
}

fn texts(count: usize, text: impl Fn(usize) -> String) -> Value {
    Value::array((0..count).map(|i| Value::from(text(i))).collect())
}

/// Steps of a rule that ends by itself; far below a budget.
const FEW: u64 = 3_000_000;

/// More steps than what is linear in these objects needs.
const ENOUGH: u64 = 400_000;

#[test]
fn work_that_is_linear_ends_by_itself() {
    let (a, b) = ("'{{ request.object.data.a }}'", "'{{ request.object.data.b }}'");
    let text = || Value::from("a".repeat(1 << 20));
    for (name, rule, object) in [
        ("stars", deny(a, "Equals", b), data(&[("a", text()), ("b", Value::from("*a*a*a*a*b"))])),
        ("stars in a list", deny(a, "AnyIn", b), data(&[("a", text()), ("b", texts(3, |_| "*a*a*b".to_owned()))])),
        ("many stars", deny(a, "Equals", b), data(&[("a", text()), ("b", Value::from("*a".repeat(100_000) + "b"))])),
        ("regex", of("regex_match(request.object.data.b, request.object.data.a)"), {
            data(&[("a", text()), ("b", Value::from("(a|aa)+$"))])
        }),
        (
            "durations",
            deny(a, "DurationGreaterThan", b),
            data(&[("a", text()), ("b", Value::from("1".repeat(1 << 20)))]),
        ),
        ("versions", deny(a, "GreaterThan", b), {
            data(&[("a", Value::from("1.".repeat(1 << 19))), ("b", Value::from("1".repeat(1 << 20)))])
        }),
        ("a pattern", "validate: {message: m, pattern: {data: {a: '*a*b | >5 & <7 | 1-9'}}}".to_owned(), {
            data(&[("a", text())])
        }),
        ("an existence anchor", "validate: {message: m, pattern: {data: {^(a): [{x: '?*b'}]}}}".to_owned(), {
            data(&[("a", Value::array((0..50_000).map(|_| Value::from([("x", Value::from("aaa"))])).collect()))])
        }),
    ] {
        let (outcome, steps) = run(&rule, &object);
        assert_ne!(outcome.verdict, Verdict::Error, "{name}: {}", outcome.message);
        assert!(steps < FEW, "{name} takes {steps} steps");
    }
}

#[test]
fn work_that_grows_faster_is_counted_while_it_is_done() {
    let (a, b) = ("'{{ request.object.data.a }}'", "'{{ request.object.data.b }}'");
    let list = || texts(100_000, |i| format!("a{i}"));
    let lists = data(&[("a", list()), ("b", texts(100_000, |i| format!("b{i}")))]);
    let call = |call: &str| of(&call.replace('A', "request.object.data.a").replace('B', "request.object.data.b"));
    let text = || Value::from("a".repeat(1 << 20));
    let long = |pattern: &str| data(&[("a", text()), ("b", Value::from(pattern))]);
    let mut trials: Vec<(String, String, Value)> = Vec::new();
    for operator in ["AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "In", "NotIn"] {
        let all_in = data(&[("a", list()), ("b", texts(100_000, |i| format!("a{}", 99_999 - i)))]);
        let object = if matches!(operator, "AllIn" | "In" | "AnyNotIn" | "NotIn") { all_in } else { lists.clone() };
        trials.push((operator.to_owned(), deny(a, operator, b), object));
    }
    for (name, rule, object) in [
        ("question marks", deny(a, "Equals", b), long(&format!("*{}b*", "?".repeat(1_000)))),
        ("replacement by regex", call("regex_replace_all(B, A, 'x')"), long(".*[^a]|a")),
        ("literal replacement by regex", call("regex_replace_all_literal(B, A, 'x')"), long(".*[^a]|a")),
        ("a heavy regex", call("regex_match(B, A)"), long(r"(a|b)*a(a|b){300}$")),
        ("trim", call("trim(A, B)"), long(&("b".repeat(100_000) + "a"))),
        ("pattern_match", call("pattern_match(B, A)"), long(&format!("*{}b*", "?".repeat(1_000)))),
        ("sort", call("[sort(A), sort(A), sort(A), sort(A), sort(A), sort(A), sort(A), sort(A)]"), {
            data(&[("a", list())])
        }),
        (
            "contains",
            call("[contains(A, 'x'), contains(A, 'y'), contains(A, 'z'), contains(B, 'x'), contains(B, 'y')]"),
            lists.clone(),
        ),
        (
            "a foreach with a pattern",
            {
                "validate: {message: m, foreach: [{list: request.object.data.a, elementScope: false, pattern: \
             {data: {a: '!x*y'}}}]}"
                    .to_owned()
            },
            data(&[("a", list())]),
        ),
        (
            "alternatives from data",
            { "validate: {message: m, pattern: {data: {a: '{{ request.object.data.b }}'}}}".to_owned() },
            data(&[("a", texts(10_000, |_| "a".to_owned())), ("b", Value::from("b|".repeat(10_000) + "a"))]),
        ),
        (
            "JSON patches",
            {
                "mutate: {foreach: [{list: request.object.data.a, patchesJson6902: '[{op: add, path: /data/a/0, value: 1}]'}]}"
                .to_owned()
            },
            data(&[("a", list())]),
        ),
    ] {
        trials.push((name.to_owned(), rule, object));
    }
    for (name, rule, object) in trials {
        let (outcome, steps) = run_until(ENOUGH, &rule, &object);
        assert_eq!(outcome.verdict, Verdict::Error, "{name}: {} after {steps} steps", outcome.message);
        assert!(outcome.message.contains("evaluation takes too "), "{name}: {}", outcome.message);
    }
}

#[test]
fn work_without_an_end_ends_at_the_budget() {
    let object = data(&[("a", texts(10_000, |i| format!("a{i}"))), ("b", texts(10_000, |i| format!("b{i}")))]);
    let rule = deny("'{{ request.object.data.a }}'", "AnyIn", "'{{ request.object.data.b }}'");
    let (outcome, steps) = run(&rule, &object);
    assert_eq!(outcome.verdict, Verdict::Error);
    assert!(outcome.message.contains("evaluation takes too many steps"), "{}", outcome.message);
    assert!(steps <= Budget::DEFAULT_STEPS, "{steps}");
}

#[test]
fn a_condition_anchor_that_cannot_be_judged_does_not_skip_the_rule() {
    let pattern = "b|".repeat(10_000) + "a";
    let object =
        data(&[("a", texts(10_000, |_| "a".to_owned())), ("b", Value::from(pattern)), ("c", Value::from("bad"))]);
    for anchor in ["(a)", "<(a)", "=(a)"] {
        let rule = format!(
            "validate: {{message: m, pattern: {{data: {{{anchor}: '{{{{ request.object.data.b }}}}', c: good}}}}}}"
        );
        let (outcome, _) = run(&rule, &object);
        assert_eq!(outcome.verdict, Verdict::Error, "{anchor}: {}", outcome.message);
    }
}

#[test]
fn an_interrupt_makes_every_unfinished_rule_an_error() {
    let object = data(&[("a", texts(100_000, |i| format!("a{i}"))), ("b", texts(100_000, |i| format!("b{i}")))]);
    let slow = deny("'{{ request.object.data.a }}'", "AnyIn", "'{{ request.object.data.b }}'");
    let quick = "validate: {message: m, pattern: {metadata: {name: '?*'}}}";
    let rules: Vec<Value> = [("first", quick), ("slow", slow.as_str()), ("last", quick)]
        .map(|(name, rule)| {
            let mut rule = value(rule);
            rule.as_object_mut().unwrap().insert("name", name);
            rule
        })
        .into();
    let policy = policy(&Value::from([("spec", Value::from([("rules", Value::array(rules))]))]));
    let counter = Counter::until(50_000);
    let outcomes = outcomes(&set(&[policy]), review(&object), Phase::Validate, Arc::clone(&counter));
    let verdicts: Vec<_> = outcomes.iter().map(|o| (o.rule.as_str(), o.verdict)).collect();
    assert_eq!(verdicts, [("first", Verdict::Pass), ("slow", Verdict::Error), ("last", Verdict::Error)]);
    assert!(outcomes[1].message.contains("evaluation takes too long"), "{}", outcomes[1].message);
    assert!(counter.taken() < 300_000, "{}", counter.taken());
}

/// Objects as deep as an API server accepts them, judged on the small stack of a test's thread.
#[test]
fn the_depth_of_an_object_does_not_matter_to_rules() {
    let nested = |shape: fn(Value) -> Value| (0..10_000).fold(Value::from("x"), |inner, _| shape(inner));
    let shapes: [fn(Value) -> Value; 2] = [|inner| Value::array(vec![inner]), |inner| Value::from([("a", inner)])];
    for deep in shapes.map(nested) {
        let object = data(&[("deep", deep.clone()), ("same", deep), ("a", Value::from("bad"))]);
        let whole = "request.object.data.deep";
        for (rule, verdict) in [
            ("validate: {message: m, pattern: {data: {a: good}}}".to_owned(), Verdict::Fail),
            ("validate: {message: m, pattern: {data: {deep: '?*'}}}".to_owned(), Verdict::Fail),
            (deny("'{{ request.object.data.a }}'", "Equals", "bad"), Verdict::Fail),
            (of(&format!("length(to_string({whole}))")), Verdict::Pass),
            (of(&format!("{whole} == request.object.data.same")), Verdict::Pass),
            (of("length(items(request.object.data, 'k', 'v'))"), Verdict::Pass),
            (of(&format!("contains([{whole}], request.object.data.same)")), Verdict::Pass),
            (of("length(to_string(@))"), Verdict::Pass),
            (of(&format!("{whole}[]")), Verdict::Pass),
            ("mutate: {patchStrategicMerge: {data: {a: good}}}".to_owned(), Verdict::Pass),
            ("mutate: {patchesJson6902: '[{op: replace, path: /data/a, value: good}]'}".to_owned(), Verdict::Pass),
            ("mutate: {patchesJson6902: '[{op: remove, path: /data/deep}]'}".to_owned(), Verdict::Pass),
            ("mutate: {patchesJson6902: '[{op: copy, from: /data/deep, path: /data/b}]'}".to_owned(), Verdict::Pass),
            (deny(&format!("'{{{{ {whole} }}}}'"), "Equals", "'{{ request.object.data.same }}'"), Verdict::Fail),
        ] {
            let (outcome, _) = run(&rule, &object);
            assert_eq!(outcome.verdict, verdict, "{rule}: {}", outcome.message);
        }
    }
}

/// How many policies of the whole cluster and of the namespace of the review have these outcomes, with the bytes of
/// their messages.
fn kept(rule: &str, count: usize, phase: Phase, size: usize) -> (Vec<Outcome>, usize) {
    let rules: Vec<String> = (0..count)
        .map(|n| format!("{{name: r{n}, match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, {rule}}}"))
        .collect();
    let spec = format!("spec: {{rules: [{}]}}", rules.join(", "));
    let policies = [
        value(&format!("{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: wide}}, {spec}}}")),
        value(&format!("{{apiVersion: kyverno.io/v1, kind: Policy, metadata: {{name: own, namespace: a}}, {spec}}}")),
    ];
    let mut object = data(&[("b", Value::from("z".repeat(size)))]);
    let header = value("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a}}");
    for (key, member) in header.as_object().unwrap().iter() {
        object.as_object_mut().unwrap().insert(key.clone(), member.clone());
    }
    let set = set(&policies.map(|document| policy(&document)));
    let outcomes = outcomes(&set, review(&object), phase, Counter::until(u64::MAX));
    let bytes = outcomes.iter().map(|outcome| outcome.message.len()).sum();
    (outcomes, bytes)
}

#[test]
fn messages_are_cut_so_that_many_rules_keep_little() {
    let (outcomes, bytes) =
        kept("validate: {message: '{{ request.object.data.b }}', deny: {}}", 150, Phase::Validate, 900_000);
    assert_eq!(outcomes.len(), 300);
    assert!(outcomes.iter().all(|outcome| outcome.verdict == Verdict::Fail && outcome.message.ends_with("z…")));
    assert!(bytes <= 300 * 5 * 1024, "{bytes}");
}

#[test]
fn what_rules_of_a_namespace_keep_leaves_room_for_rules_of_the_cluster() {
    let rule = "mutate: {patchStrategicMerge: {metadata: {annotations: {'a-{{ random(''[a-z]{8}'') }}': \"{{ join('', [request.object.data.b, 'x']) }}\"}}}}";
    let (outcomes, _) = kept(rule, 20, Phase::Mutate, 900_000);
    let passed = |policy: usize| outcomes.iter().filter(|o| o.policy == policy && o.verdict == Verdict::Pass).count();
    let failed = |policy: usize| outcomes.iter().filter(|o| o.policy == policy && o.verdict == Verdict::Error).count();
    // The pots hold 64 and 16 MiB.
    assert!(passed(0) == 20 && failed(0) == 0, "{} {}", passed(0), failed(0));
    assert!(failed(1) > 5 && failed(1) < 20, "{}", failed(1));
}
