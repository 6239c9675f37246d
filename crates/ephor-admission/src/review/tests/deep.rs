//! Policies that look into objects as deep as an API server reads them.

use super::*;

/// What an API server takes at most.
const LEVELS: usize = 10_000;

/// A review of a Pod of so many levels, which the policies can also read in the Pod before.
fn review(operation: &str, levels: usize) -> String {
    let below = levels - 1;
    let deep = r#"[{"a":"#.repeat(below / 2) + if below % 2 == 1 { "[0]" } else { "0" } + &"}]".repeat(below / 2);
    let pod = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"p","namespace":"default","uid":"u1"}},"spec":{deep}}}"#
    );
    let before = if operation == "UPDATE" { pod.as_str() } else { "null" };
    format!(
        r#"{{"request":{{"uid":"u-1","operation":"{operation}","name":"p","namespace":"default",
            "kind":{{"group":"","version":"v1","kind":"Pod"}},"requestKind":{{"group":"","version":"v1","kind":"Pod"}},
            "resource":{{"group":"","version":"v1","resource":"pods"}},"userInfo":{{"username":"ann"}},
            "object":{pod},"oldObject":{before}}}}}"#
    )
}

fn asked(operation: &str) -> AdmissionRequest {
    AdmissionReview::parse(review(operation, LEVELS).as_bytes()).unwrap().request
}

fn policy(rule: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{failurePolicy: Ignore, rules: \
         [{{name: r, match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}, {rule}}}]}}}}"
    )
}

fn denies(conditions: &str) -> String {
    policy(&format!(
        "validate: {{failureAction: Enforce, allowExistingViolations: false, message: told, deny: {{conditions: {{all: [{conditions}]}}}}}}"
    ))
}

const BOTH: &str = "key: '{{ request.object.spec }}', value: '{{ request.oldObject.spec }}'";

#[test]
fn policies_decide_on_what_is_deep_also_where_failures_are_ignored() {
    let request = asked("UPDATE");
    for (rule, allowed) in [
        (denies(&format!("{{{BOTH}, operator: Equals}}")), false),
        (denies(&format!("{{{BOTH}, operator: NotEquals}}")), true),
        (denies("{key: '{{ request.object.spec == request.oldObject.spec }}', operator: Equals, value: true}"), false),
        (denies("{key: '{{ request.object.spec[0].a[0].a | length(@) }}', operator: Equals, value: 1}"), false),
        (denies("{key: '{{ length(to_string(request.object.spec)) }}', operator: GreaterThan, value: 100}"), false),
    ] {
        let answer = Harness::new(&[&rule]).validate(&request);
        let told = || Harness::new(&[&rule.replace("failurePolicy: Ignore, ", "")]).validate(&request);
        assert_eq!(answer.allowed, allowed, "{rule}: {:?}", told());
    }
}

#[test]
fn json_patches_change_what_is_deep_also_where_failures_are_ignored() {
    let request = asked("CREATE");
    for operation in [
        "{op: add, path: /metadata/labels/more, value: \"{{ request.object.spec }}\"}",
        "{op: replace, path: /spec/0, value: \"{{ request.object.spec }}\"}",
        "{op: copy, from: /spec, path: /metadata/more}",
        "{op: move, from: /spec, path: /metadata/more}",
    ] {
        let rule = policy(&format!("mutate: {{patchesJson6902: '[{operation}]'}}"));
        let answer = Harness::new(&[&rule]).handlers.mutate(&request, &WebhookScope::All).review("", "", "u");
        assert!(answer.at(&["response", "patch"]).is_some(), "{operation}");
    }
}

#[test]
fn no_policy_takes_the_stack_for_the_levels_of_an_object() {
    let values = [
        "{{ request.object.spec }}",
        "{{ to_string(request.object.spec) }}",
        "{{ parse_json(to_string(request.object.spec)) }}",
        "{{ parse_yaml(to_string(request.object.spec)) }}",
        "{{ merge(request.object, request.oldObject) }}",
        "{{ request.object.spec[].a[] }}",
        "{{ request.object.spec[?a == @] }}",
        "{{ contains(request.object.spec, request.oldObject.spec) }}",
        "{{ [request.object.spec, request.oldObject.spec] }}",
        "{{ {a: request.object.spec} }}",
    ];
    for value in values {
        for rule in [
            format!("validate: {{failureAction: Enforce, message: 'says {value}', deny: {{}}}}"),
            format!("validate: {{failureAction: Audit, message: 'says {value}', deny: {{}}}}"),
            format!("validate: {{failureAction: Enforce, message: m, pattern: {{spec: '{value}'}}}}"),
            format!("validate: {{failureAction: Enforce, message: m, pattern: {{=(spec): {{a: '{value}'}}}}}}"),
            format!(
                "context: [{{name: v, variable: {{value: '{value}'}}}}], preconditions: {{all: [{{key: '{{{{ v }}}}', operator: AnyIn, value: ['{value}', '*x']}}]}}, validate: {{failureAction: Enforce, message: m, deny: {{}}}}"
            ),
            format!(
                "mutate: {{patchStrategicMerge: {{metadata: {{annotations: {{a: '{value}'}}}}, spec: '{value}'}}}}"
            ),
            format!("mutate: {{patchStrategicMerge: {{spec: {{more: '{value}'}}}}}}"),
            format!(
                "mutate: {{patchesJson6902: \"- {{op: add, path: /more, value: '{value}'}}\\n- {{op: copy, from: /spec, path: /other}}\\n- {{op: replace, path: /spec/0/a, value: 1}}\"}}"
            ),
            format!(
                "mutate: {{foreach: [{{list: 'request.object.spec', patchStrategicMerge: {{metadata: {{labels: {{a: '{value}'}}}}}}}}]}}"
            ),
            "validate: {failureAction: Enforce, podSecurity: {level: restricted, version: latest}}".to_owned(),
            format!(
                "generate: {{apiVersion: v1, kind: ConfigMap, name: c, namespace: default, data: {{data: {{a: '{value}'}}}}}}"
            ),
        ] {
            let harness = Harness::new(&[&policy(&rule)]);
            for operation in ["CREATE", "UPDATE"] {
                let request = asked(operation);
                for answer in [harness.handlers.mutate(&request, &WebhookScope::All), harness.validate(&request)] {
                    answer.review("", "", "u").to_json();
                }
            }
        }
    }
}
