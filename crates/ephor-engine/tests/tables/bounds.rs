//! What a policy or an object cannot make the engine do: ask without end, grow without end, loop without end.

use ephor_engine::fetch::{Fact, Fetch};
use ephor_expr::Value;

use crate::support::{Trial, policy_of_rule, review, run_rule, value};

fn only(lines: &[String]) -> &str {
    let [line] = lines else { panic!("{lines:?}") };
    line
}

/// A rule whose context reads `count` maps, the name of each in the one before.
fn chain(count: usize) -> String {
    let entries: Vec<String> = (0..count)
        .map(|i| {
            let name = if i == 0 { "c0".to_owned() } else { format!("'{{{{ e{}.data.next }}}}'", i - 1) };
            format!("{{name: e{i}, configMap: {{namespace: a, name: {name}}}}}")
        })
        .collect();
    let last = count - 1;
    format!(
        "context: [{}]\nvalidate: {{deny: {{conditions: {{all: [{{key: '{{{{ e{last}.data.next }}}}', operator: Equals, \
         value: c{count}, message: m}}]}}}}}}",
        entries.join(", ")
    )
}

fn run_chain(count: usize) -> Vec<String> {
    let mut trial = Trial::new(&[policy_of_rule(&value(&chain(count)))], review(&value("{}")));
    trial.answers = (0..count)
        .map(|i| {
            let fetch = Fetch::ConfigMap { namespace: "a".into(), name: format!("c{i}").into() };
            (fetch, Fact::Found(value(&format!("data: {{next: c{}}}", i + 1))))
        })
        .collect();
    trial.run().lines()
}

#[test]
fn questions_may_follow_from_answers_but_not_without_end() {
    assert_eq!(run_chain(60), ["r fail m"]);
    assert_eq!(run_chain(70), ["r error the rule asks for data without end"]);
}

#[test]
fn entries_that_need_one_another_are_an_error() {
    let rule = "
        context: [{name: a, variable: {value: '{{ b }}'}}, {name: b, variable: {value: '{{ a }}'}}]
        validate: {deny: {conditions: {all: [{key: '{{ a }}', operator: Equals, value: x}]}}}";
    assert!(only(&run_rule(rule, "{}")).starts_with("r error failed to check deny conditions: "));
}

/// Entries `a0` to `a60`, each made of the one before twice.
fn doubled(first: &str, twice: impl Fn(&str) -> String) -> String {
    let mut entries = vec![format!("{{name: a0, variable: {{value: {first}}}}}")];
    for i in 1..=60 {
        entries.push(format!("{{name: a{i}, variable: {{value: {}}}}}", twice(&format!("{{{{ a{} }}}}", i - 1))));
    }
    // Entries load in the order of declaration only if earlier ones are mentioned too.
    format!(
        "context: [{}]\nvalidate: {{deny: {{conditions: {{all: [{{key: '{{{{ to_string(a60) }}}}', operator: Equals, \
         value: x}}]}}}}}}",
        entries.join(", ")
    )
}

#[test]
fn what_doubles_ends_at_the_budget() {
    for (name, rule) in [
        ("text", doubled("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", |a| format!("'{a}{a}'"))),
        ("list", doubled("[1]", |a| format!("['{a}', '{a}']"))),
        ("map", doubled("{a: b}", |a| format!("{{l: '{a}', r: '{a}'}}"))),
        ("text of a list", doubled("[1, 2]", |a| format!("['-{a}', '-{a}']"))),
    ] {
        let lines = run_rule(&rule, "{}");
        assert!(only(&lines).contains("evaluation "), "{name}: {lines:?}");
    }
}

fn numbers(count: usize) -> String {
    (0..count).map(|i| i.to_string()).collect::<Vec<_>>().join(", ")
}

#[test]
fn loops_end_at_the_budget() {
    let object = format!("spec: {{l: [{}]}}", numbers(2000));
    let inner = "{list: request.object.spec.l, deny: {conditions: {any: []}}}";
    let rule = format!(
        "validate: {{foreach: [{{list: request.object.spec.l, foreach: [{{list: request.object.spec.l, foreach: [{inner}]}}]}}]}}"
    );
    assert_eq!(
        run_rule(&rule, &object),
        ["r error validation failure: validation failure: evaluation takes too many steps"]
    );
    let rule = "mutate: {foreach: [{list: request.object.spec.l, foreach: [{list: request.object.spec.l, \
                patchStrategicMerge: {metadata: {labels: {x: z}}}}]}]}";
    assert_eq!(run_rule(rule, &object), ["r error failed to mutate elements: evaluation takes too many steps"]);
    assert_eq!(
        run_rule("validate: {foreach: [{list: request.object.spec.l, pattern: {spec: {l: '<5000'}}}]}", &object),
        ["r pass rule passed"]
    );
}

#[test]
fn a_spent_budget_lets_nothing_through() {
    // The first loop's list is too much work; that the second applies does not make the rule pass.
    let object = format!("spec: {{l: [{}]}}", numbers(5000));
    let work = format!("length(request.object.spec.l{})", " | [@,@,@,@,@,@,@,@,@,@]".repeat(5));
    let rule = format!(
        "validate: {{foreach: [{{list: '{work}', deny: {{}}}}, {{list: request.object.metadata.name, deny: {{conditions: \
         {{any: []}}}}}}]}}"
    );
    let lines = run_rule(&rule, &object);
    assert!(only(&lines).starts_with("r error "), "{lines:?}");
    // Nor does an element whose preconditions are too much work.
    let rule = format!(
        "validate: {{foreach: [{{list: request.object.metadata.name, preconditions: {{all: [{{key: '{{{{ {work} }}}}', \
         operator: Equals, value: 1}}]}}, deny: {{}}}}]}}"
    );
    let lines = run_rule(&rule, &object);
    assert!(only(&lines).starts_with("r error "), "{lines:?}");
    // Nor an alternative or a default.
    let rule = format!(
        "context: [{{name: c, variable: {{jmesPath: '{work}', default: 0}}}}]\nvalidate: {{deny: {{conditions: {{all: \
         [{{key: '{{{{ c || `0` }}}}', operator: Equals, value: 1}}]}}}}}}"
    );
    let lines = run_rule(&rule, &object);
    assert!(only(&lines).starts_with("r error "), "{lines:?}");
}

#[test]
fn long_lists_are_not_compared_pair_by_pair_without_end() {
    let object = format!("spec: {{l: [{}]}}", numbers(20_000));
    let list = "'{{ request.object.spec.l }}'";
    let rule =
        format!("validate: {{deny: {{conditions: {{all: [{{key: {list}, operator: AllNotIn, value: {list}}}]}}}}}}");
    let lines = run_rule(&rule, &object);
    assert!(only(&lines).contains("too many steps"), "{lines:?}");
}

#[test]
fn deep_objects_are_judged() {
    let mut deep = Value::from("x");
    for _ in 0..190 {
        deep = Value::from([("a", deep)]);
    }
    let object = Value::from([("spec", deep)]);
    let rule = "validate: {message: m, deny: {conditions: {all: [{key: '-{{ request.object.spec }}', operator: Equals, value: x}]}}}";
    let lines = Trial::new(&[policy_of_rule(&value(rule))], review(&object)).run().lines();
    assert_eq!(lines, ["r pass validation rule 'r' passed."]);
}

#[test]
fn entries_that_mention_each_other_take_no_more_stack_than_there_is() {
    let said = |entries: usize, mention: &dyn Fn(usize) -> String| {
        let mut context = vec!["{name: v0, variable: {value: x}}".to_owned()];
        context.extend((1..entries).map(|i| format!("{{name: v{i}, variable: {}}}", mention(i - 1))));
        let rule = format!(
            "{{context: [{}], validate: {{message: m, deny: {{conditions: {{any: [{{key: '{{{{ length(v{}) }}}}', \
             operator: Equals, value: 7}}]}}}}}}}}",
            context.join(", "),
            entries - 1
        );
        Trial::new(&[policy_of_rule(&value(&rule))], review(&value("{}"))).run().lines()
    };
    let plain = |before: usize| format!("{{jmesPath: '[v{before}]'}}");
    let nested = |before: usize| {
        let (open, close) = ("[".repeat(90), "]".repeat(90));
        format!("{{value: {open}'{{{{ v{before} }}}}'{close}, jmesPath: 'to_string(length(@))'}}")
    };
    assert_eq!(said(80, &plain), ["r pass validation rule 'r' passed."]);
    assert_eq!(said(2, &nested), ["r pass validation rule 'r' passed."]);
    let deep = ["r error failed to check deny conditions: evaluation nests data too deeply"];
    assert_eq!(said(3_000, &plain), deep);
    assert_eq!(said(100, &nested), deep);
}
