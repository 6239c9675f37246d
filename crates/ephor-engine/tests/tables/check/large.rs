//! Policies as long as an API server takes them: whoever may write one must not keep busy what reads all of them.

use ephor_engine::cleanup::CleanupProgram;
use ephor_engine::compile::compile;
use ephor_engine::diagnostic::Diagnostic;
use ephor_expr::Value;

use crate::support::{policy, value};

fn coded(document: &Value, code: &str) -> Vec<Diagnostic> {
    let mut found = compile(document).findings;
    found.retain(|finding| finding.code == code);
    found
}

fn of_rules(rules: &[String]) -> Value {
    policy(&value(&format!("{{spec: {{rules: [{}]}}}}", rules.join(", "))))
}

/// A rule with this context and message.
fn rule(context: &str, message: &str) -> String {
    format!("{{name: r, context: [{context}], validate: {{message: \"{message}\", deny: {{}}}}}}")
}

#[test]
fn contradicting_overrides_are_told_once_for_each_that_is_enforced() {
    let of = |kind: &str, enforced: &str, audited: &str| {
        policy(&value(&format!(
            "{{kind: {kind}, spec: {{validationFailureActionOverrides: [{}, {}], rules: [{{validate: {{deny: {{}}}}}}]}}}}",
            format_args!("{{action: Enforce, namespaces: [{enforced}]}}"),
            format_args!("{{action: Audit, namespaces: [{audited}]}}"),
        )))
    };
    let many = |prefix: &str| (0..2000).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>().join(", ");
    let code = "conflicting-overrides";
    for (enforced, audited, expected) in [
        (many("a"), many("b"), 0),
        (many("a"), many("a"), 2000),
        (many("a"), "'a*'".to_owned(), 2000),
        ("'a*'".to_owned(), many("a"), 1),
        ("'a*'".to_owned(), "'*b'".to_owned(), 0),
        ("'a*'".to_owned(), "'a*'".to_owned(), 1),
    ] {
        assert_eq!(
            coded(&of("ClusterPolicy", &enforced, &audited), code).len(),
            expected,
            "{enforced:.20} {audited:.20}"
        );
    }
    // What a Policy must not have at all is not compared.
    assert_eq!(coded(&of("Policy", &many("a"), "'a*'"), code), []);
}

#[test]
fn the_nearest_name_is_told_of_the_first_misspelt_ones_only() {
    let context: Vec<String> = (0..1000).map(|i| format!("{{name: entry{i}, variable: {{value: 1}}}}")).collect();
    let message: Vec<String> = (0..1000).map(|i| format!("{{{{ entri{i} }}}}")).collect();
    let found = coded(&of_rules(&[rule(&context.join(", "), &message.concat())]), "undefined-variable");
    assert_eq!(found.len(), 1000);
    assert_eq!(found.iter().filter(|finding| finding.help.is_some()).count(), 50);
}

#[test]
fn an_expression_is_quoted_in_part_and_once() {
    for (name, code) in [("target", "target-outside-targets"), ("element", "element-outside-foreach")] {
        let message = format!("{{{{ [{}] }}}}", vec![name; 2000].join(", "));
        let found = coded(&of_rules(&[rule("", &message)]), code);
        assert_eq!(found.len(), 1, "{name}");
        assert!(found[0].message.len() < 400, "{}", found[0].message);
    }
}

/// The largest policies there may be. With a step for each pair of rules, names or entries, they take many seconds.
#[test]
fn many_rules_names_and_entries_are_looked_through_once() {
    let names = |count: usize| (0..count).map(|i| format!("entry{i}")).collect::<Vec<_>>();
    let context: Vec<String> =
        names(4_500).iter().map(|name| format!("{{name: {name}, variable: {{jmesPath: request.name}}}}")).collect();
    let read: Vec<String> = names(4_500).iter().map(|name| format!("{{{{ {name} }}}}")).collect();
    let on = |kind: &str, name: &dyn Fn(usize) -> String| -> Vec<String> {
        (0..1_700)
            .map(|i| {
                let name = name(i);
                format!(
                    "{{name: {name}, match: {{any: [{{resources: {{kinds: [{kind}]}}}}]}}, validate: {{deny: {{}}}}}}"
                )
            })
            .collect()
    };
    for (document, rules) in [
        (of_rules(&[rule(&context.join(", "), &read.concat())]), 3),
        (of_rules(&on("v1/Pod", &|i| format!("r{i}"))), 1_700),
        // Names that become one when they are cut.
        (of_rules(&on("Pod", &|i| format!("{}{i:05}", "x".repeat(55)))), 5_100),
    ] {
        let compiled = compile(&document);
        let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.findings.first()));
        assert_eq!(program.rules.len(), rules);
    }
}

#[test]
fn a_policy_of_very_many_values_is_refused() {
    let code = |kind: &str, count: usize, message: &str| {
        let each = |i| {
            format!(
                "{{name: r{i}, match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}, validate: {{message: '{message}', deny: {{}}}}}}"
            )
        };
        let rules: Vec<_> = (0..count).map(each).collect();
        let namespace = if kind == "Policy" { ", namespace: a" } else { "" };
        let text = format!(
            "{{apiVersion: kyverno.io/v1, kind: {kind}, metadata: {{name: p{namespace}}}, spec: {{rules: [{}]}}}}",
            rules.join(", ")
        );
        let findings = compile(&value(&text)).findings;
        findings.first().map(|finding| finding.code)
    };
    let (none, refused) = (None, Some("policy-too-large"));
    assert_eq!(code("ClusterPolicy", 1_000, "m"), none);
    assert_eq!(code("ClusterPolicy", 9_000, "m"), refused);
    assert_eq!(code("Policy", 100, "m"), none);
    assert_eq!(code("Policy", 300, "m"), refused);
    assert_eq!(code("ClusterPolicy", 10, &"m".repeat(50_000)), none);
    assert_eq!(code("Policy", 10, &"m".repeat(50_000)), refused);
}

#[test]
fn a_cleanup_policy_of_very_many_values_is_refused() {
    let code = |kind: &str, count: usize| {
        let conditions = vec!["{key: '{{ target.metadata.name }}', operator: Equals, value: a}"; count].join(", ");
        let text = format!(
            "{{apiVersion: kyverno.io/v2, kind: {kind}, metadata: {{name: p}}, spec: {{schedule: '0 0 * * *', match: {{any: \
             [{{resources: {{kinds: [Pod]}}}}]}}, conditions: {{any: [{conditions}]}}}}}}"
        );
        CleanupProgram::compile(&value(&text)).err().map(|findings| findings[0].code)
    };
    let refused = Some("policy-too-large");
    assert_eq!(code("CleanupPolicy", 100), None);
    assert_eq!(code("CleanupPolicy", 1_000), refused);
    assert_eq!(code("ClusterCleanupPolicy", 1_000), None);
    assert_eq!(code("ClusterCleanupPolicy", 10_000), refused);
}
