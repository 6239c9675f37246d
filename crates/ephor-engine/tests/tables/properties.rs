//! What holds for all sets of policies: each policy says what it says alone, in any order, and the index finds every
//! rule that matches.

use std::collections::BTreeMap;

use ephor_engine::matching::{MatchInput, NamespaceLabels};
use ephor_engine::outcome::{Phase, RuleKind};
use ephor_engine::policy::Operation;
use ephor_engine::review::Review;
use ephor_expr::{Map, Value};
use proptest::prelude::*;

use crate::support::{Trial, policy, review, set, value};

const KINDS: [&str; 10] =
    ["Pod", "Deployment", "*", "P*", "*/*", "v1/Pod", "apps/v1/Deployment", "Pod/exec", "*/exec", "Deploy?ent"];
const FILTERS: [&str; 5] = ["", ", namespaces: [a]", ", names: [p]", ", operations: [CREATE]", ", names: ['x*']"];
const BODIES: [&str; 4] = [
    "deny: {}",
    "deny: {conditions: {any: []}}",
    "pattern: {metadata: {name: p}}",
    "deny: {conditions: {all: [{key: '{{ request.object.metadata.labels.zz }}', operator: Equals, value: a}]}}",
];

/// One rule: kinds, filter, body, and whether it excludes Pods with names of one letter.
type RuleSpec = (usize, Option<usize>, usize, usize, bool);

fn rule(index: usize, (kind, second, filter, body, excludes): RuleSpec) -> String {
    let one = |kind: usize| format!("{{resources: {{kinds: ['{}']{}}}}}", KINDS[kind], FILTERS[filter]);
    let filters: Vec<String> = std::iter::once(kind).chain(second).map(one).collect();
    let exclude = if excludes { "exclude: {any: [{resources: {kinds: [Pod], names: ['?']}}]}, " } else { "" };
    let body = BODIES[body];
    format!("{{name: r{index}, match: {{any: [{}]}}, {exclude}validate: {{message: m, {body}}}}}", filters.join(", "))
}

fn document(index: usize, rules: &[RuleSpec], namespace: Option<&str>) -> Value {
    let rules: Vec<String> = rules.iter().enumerate().map(|(i, r)| rule(i, *r)).collect();
    let (kind, namespace) = match namespace {
        Some(namespace) => ("Policy", format!(", namespace: {namespace}")),
        None => ("ClusterPolicy", String::new()),
    };
    policy(&value(&format!(
        "{{kind: {kind}, metadata: {{name: p{index}{namespace}}}, spec: {{rules: [{}]}}}}",
        rules.join(", ")
    )))
}

fn policies() -> impl Strategy<Value = Vec<Value>> {
    let rule = (0..KINDS.len(), proptest::option::of(0..KINDS.len()), 0..FILTERS.len(), 0..BODIES.len(), any::<bool>());
    let one = (proptest::collection::vec(rule, 1..4), proptest::sample::select(vec![None, None, Some("b")]));
    proptest::collection::vec(one, 1..6).prop_map(|all| {
        let documents = all.iter().enumerate().map(|(i, (rules, namespace))| {
            // What may be refused for a Policy, or for `*` beside a pattern, is not the matter here.
            let filters: Vec<RuleSpec> = rules
                .iter()
                .map(|r| {
                    (
                        r.0,
                        r.1,
                        if namespace.is_some() && r.2 == 1 { 0 } else { r.2 },
                        if r.3 == 2 { 1 } else { r.3 },
                        r.4,
                    )
                })
                .collect();
            document(i, &filters, *namespace)
        });
        documents.collect()
    })
}

fn reviews() -> impl Strategy<Value = Review> {
    let kind = proptest::sample::select(vec![
        "apiVersion: v1, kind: Pod",
        "apiVersion: apps/v1, kind: Deployment",
        "apiVersion: batch/v1, kind: CronJob",
    ]);
    let name = proptest::sample::select(vec!["p", "x1"]);
    let namespace = proptest::sample::select(vec!["a", "b"]);
    let operation = proptest::sample::select(vec![Operation::Create, Operation::Update]);
    (kind, name, namespace, operation, proptest::sample::select(vec!["", "exec"])).prop_map(
        |(kind, name, namespace, operation, subresource)| {
            let object =
                value(&format!("{{{kind}, metadata: {{name: {name}, namespace: {namespace}, labels: {{}}}}}}"));
            Review { operation, subresource: subresource.into(), ..review(&object) }
        },
    )
}

/// What each policy says, by its name.
fn said(policies: &[Value], review: &Review) -> BTreeMap<String, Vec<String>> {
    let ran = Trial::new(policies, review.clone()).run();
    let mut by_policy: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (outcome, line) in ran.outcomes.iter().zip(ran.lines()) {
        assert_eq!(outcome.kind, RuleKind::Validate);
        let name = policies[outcome.policy].str_at(&["metadata", "name"]).unwrap();
        by_policy.entry(name.to_owned()).or_default().push(line);
    }
    by_policy
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_depend_on_neither_order_nor_neighbours(policies in policies(), review in reviews()) {
        let together = said(&policies, &review);
        let reversed: Vec<Value> = policies.iter().rev().cloned().collect();
        prop_assert_eq!(&said(&reversed, &review), &together);
        let mut alone = BTreeMap::new();
        for document in &policies {
            alone.extend(said(std::slice::from_ref(document), &review));
        }
        prop_assert_eq!(&alone, &together);
    }

    #[test]
    fn the_index_finds_every_rule_that_matches(policies in policies(), review in reviews()) {
        let set = set(&policies);
        let mut found = Vec::new();
        set.candidates(Phase::Validate, &review, &mut found);
        prop_assert!(found.is_sorted_by(|a, b| a < b));
        let labels = Map::new();
        let input = MatchInput {
            gvk: &review.gvk,
            subresource: &review.subresource,
            name: &review.name,
            generate_name: "",
            namespace: &review.namespace,
            object: &review.object,
            operation: review.operation,
            user: None,
            namespace_labels: NamespaceLabels::Known(&labels),
        };
        for (p, program) in set.programs().iter().enumerate() {
            for (r, rule) in program.rules.iter().enumerate() {
                let foreign = program.id.namespace.as_ref().is_some_and(|own| *own != review.namespace);
                // A rule made for controllers leaves other kinds of its match to the declared one.
                let made_for_others = rule.autogen.as_ref().is_some_and(|made| !made.kinds.contains(&review.gvk.kind));
                let matches = rule.matches.matches(&input).unwrap() && !foreign && !made_for_others;
                let listed = found.iter().any(|f| (f.policy as usize, f.rule as usize) == (p, r));
                prop_assert!(listed || !matches, "{} of {}", rule.name, program.id.name);
                prop_assert!(!(listed && foreign), "{} of {}", rule.name, program.id.name);
            }
        }
    }
}
