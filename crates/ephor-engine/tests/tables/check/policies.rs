//! Policies as a whole: metadata, settings, what is deprecated, what a namespace bounds.

use ephor_engine::compile::compile;

use super::{RULE, check_policies};
use crate::support::{policy_of_rule, value};

#[test]
fn policies_as_a_whole() {
    let long = "a".repeat(64);
    let ok = "a".repeat(63);
    check_policies(&[
        (&format!("{{spec: {{rules: [{{{RULE}}}]}}}}"), &[]),
        ("{spec: {rules: []}}", &["E no-rules /spec/rules"]),
        (
            &format!(
                "{{metadata: {{name: p, annotations: {{pod-policies.kyverno.io/autogen-controllers: all}}}}, spec: {{rules: [{{{RULE}}}]}}}}"
            ),
            &["W autogen-all /metadata/annotations/pod-policies.kyverno.io/autogen-controllers"],
        ),
        (&format!("{{metadata: {{name: {ok}}}, spec: {{rules: [{{name: {ok}, {RULE}}}]}}}}"), &[]),
        (
            &format!("{{metadata: {{name: {long}}}, spec: {{rules: [{{name: {long}, {RULE}}}]}}}}"),
            &["E long-name /metadata/name", "E long-name /spec/rules/0/name"],
        ),
        (
            &format!("{{metadata: {{name: p, namespace: a}}, spec: {{rules: [{{{RULE}}}]}}}}"),
            &["E namespaced-cluster-policy /metadata/namespace"],
        ),
        (&format!("{{kind: Policy, metadata: {{name: p, namespace: a}}, spec: {{rules: [{{{RULE}}}]}}}}"), &[]),
        (&format!("{{apiVersion: kyverno.io/v9, spec: {{rules: [{{{RULE}}}]}}}}"), &["E api-version /apiVersion"]),
        (
            &format!("{{spec: {{rules: [{{name: a, {RULE}}}, {{name: a, {RULE}}}]}}}}"),
            &["E duplicate-rule /spec/rules/1/name"],
        ),
        (&format!("{{spec: {{admission: false, rules: [{{{RULE}}}]}}}}"), &["E never-runs /spec/admission"]),
        (&format!("{{spec: {{admission: false, background: true, rules: [{{{RULE}}}]}}}}"), &[]),
        (
            "{spec: {admission: false, background: true, rules: [{mutate: {patchStrategicMerge: {}}}]}}",
            &["E admission-needed /spec/admission"],
        ),
        (
            &format!("{{spec: {{generateExistingOnPolicyUpdate: true, rules: [{{{RULE}}}]}}}}"),
            &["E removed-field /spec/generateExistingOnPolicyUpdate"],
        ),
        (
            &format!("{{spec: {{webhookConfiguration: {{timeoutSeconds: 31}}, rules: [{{{RULE}}}]}}}}"),
            &["E timeout /spec/webhookConfiguration/timeoutSeconds"],
        ),
        (
            &format!(
                "{{spec: {{webhookConfiguration: {{timeoutSeconds: 30, failurePolicy: Ignore}}, rules: [{{{RULE}}}]}}}}"
            ),
            &[],
        ),
        (
            &format!("{{spec: {{webhookTimeoutSeconds: 0, rules: [{{{RULE}}}]}}}}"),
            &["E timeout /spec/webhookTimeoutSeconds", "W deprecated-field /spec/webhookTimeoutSeconds"],
        ),
        (
            &format!(
                "{{spec: {{failurePolicy: Fail, webhookConfiguration: {{failurePolicy: Fail}}, rules: [{{{RULE}}}]}}}}"
            ),
            &["E set-twice /spec/failurePolicy", "W deprecated-field /spec/failurePolicy"],
        ),
        (
            &format!(
                "{{spec: {{webhookTimeoutSeconds: 5, webhookConfiguration: {{timeoutSeconds: 5}}, rules: [{{{RULE}}}]}}}}"
            ),
            &["E set-twice /spec/webhookTimeoutSeconds", "W deprecated-field /spec/webhookTimeoutSeconds"],
        ),
        (
            &format!(
                "{{spec: {{webhookConfiguration: {{matchConditions: [{{name: a, expression: 'true'}}]}}, rules: [{{{RULE}}}]}}}}"
            ),
            &[],
        ),
        (
            &format!(
                "{{spec: {{webhookConfiguration: {{matchConditions: [{{name: a, expression: 'true'}}, {{name: a, expression: 'keys(@)'}}, {{expresion: x}}]}}, rules: [{{{RULE}}}]}}}}"
            ),
            &[
                "E match-condition /spec/webhookConfiguration/matchConditions/1/expression",
                "E match-condition /spec/webhookConfiguration/matchConditions/1/name",
                "E match-condition /spec/webhookConfiguration/matchConditions/2/expresion",
                "E match-condition /spec/webhookConfiguration/matchConditions/2/expression",
                "E match-condition /spec/webhookConfiguration/matchConditions/2/name",
            ],
        ),
    ]);
}

#[test]
fn deprecated_words_and_fields_are_warned_of() {
    check_policies(&[
        (
            &format!("{{spec: {{validationFailureAction: enforce, rules: [{{{RULE}}}]}}}}"),
            &["W deprecated-field /spec/validationFailureAction", "W deprecated-value /spec/validationFailureAction"],
        ),
        (
            "{spec: {rules: [{validate: {failureAction: audit, deny: {}}}]}}",
            &["W deprecated-value /spec/rules/0/validate/failureAction"],
        ),
        ("{spec: {rules: [{validate: {failureAction: Audit, deny: {}}}]}}", &[]),
        (
            "{spec: {rules: [{validate: {failureActionOverrides: [{action: enforce, namespaces: [a]}], deny: {}}}]}}",
            &["W deprecated-value /spec/rules/0/validate/failureActionOverrides/0/action"],
        ),
        (
            &format!(
                "{{spec: {{validationFailureActionOverrides: [{{action: Audit, namespaces: [a]}}], rules: [{{{RULE}}}]}}}}"
            ),
            &["W deprecated-field /spec/validationFailureActionOverrides"],
        ),
        (
            &format!("{{spec: {{generateExisting: false, rules: [{{{RULE}}}]}}}}"),
            &["W deprecated-field /spec/generateExisting"],
        ),
        (
            &format!("{{spec: {{mutateExistingOnPolicyUpdate: false, rules: [{{{RULE}}}]}}}}"),
            &["W deprecated-field /spec/mutateExistingOnPolicyUpdate"],
        ),
        (
            &format!("{{spec: {{rules: [{{match: {{any: [{{resources: {{kinds: [Pod], name: a}}}}]}}, {RULE}}}]}}}}"),
            &["W deprecated-field /spec/rules/0/match/any/0/resources/name"],
        ),
        (
            "{spec: {rules: [{preconditions: {all: [{key: a, operator: In, value: [a]}]}, validate: {deny: {}}}]}}",
            &["W deprecated-operator /spec/rules/0/preconditions/all/0/operator"],
        ),
        (
            "{metadata: {name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: Deployment}}, spec: {rules: [{match: {any: [{resources: {kinds: [Secret]}}]}, validate: {deny: {}}}]}}",
            &["W autogen-unused /metadata/annotations/pod-policies.kyverno.io/autogen-controllers"],
        ),
        (
            "{spec: {rules: [{mutate: {patchesJson6902: '[{\"op\": \"remove\", \"path\": \"/spec/a\"}]'}}]}}",
            &["W autogen-json-patch /spec/rules/0/mutate"],
        ),
    ]);
}

#[test]
fn overrides_do_not_contradict_one_another() {
    let overrides =
        |list: &str| format!("{{spec: {{validationFailureActionOverrides: [{list}], rules: [{{{RULE}}}]}}}}");
    let deprecated = "W deprecated-field /spec/validationFailureActionOverrides";
    let conflict = "E conflicting-overrides /spec/validationFailureActionOverrides";
    check_policies(&[
        (&overrides("{action: Audit, namespaces: [a]}, {action: Enforce, namespaces: [b]}"), &[deprecated]),
        (&overrides("{action: Audit, namespaces: [a]}, {action: Enforce, namespaces: [a]}"), &[conflict, deprecated]),
        (
            &overrides("{action: Audit, namespaces: [a-*]}, {action: Enforce, namespaces: [a-b]}"),
            &[conflict, deprecated],
        ),
        (
            "{kind: Policy, spec: {validationFailureActionOverrides: [{action: Audit, namespaces: [a]}], rules: [{validate: {deny: {}}}]}}",
            &["E namespaced-overrides /spec/validationFailureActionOverrides", deprecated],
        ),
    ]);
}

#[test]
fn unknown_fields_are_named_with_what_is_near() {
    let document = policy_of_rule(&value("{validate: {patern: {a: b}}}"));
    let compiled = compile(&document);
    let [finding, ..] = compiled.findings.as_slice() else { panic!("no finding") };
    assert_eq!((finding.code, finding.at_key), ("unknown-field", true));
    assert_eq!(finding.path.slashed(), "/spec/rules/0/validate/patern");
    assert_eq!(finding.help.as_deref(), Some("did you mean `pattern`?"));
}
#[test]
fn namespaced_policies_stay_in_their_namespace() {
    let policy =
        |rule: &str| format!("{{kind: Policy, metadata: {{name: p, namespace: own}}, spec: {{rules: [{rule}]}}}}");
    let matching = |selection: &str| policy(&format!("{{match: {{any: [{{resources: {{{selection}}}}}]}}, {RULE}}}"));
    check_policies(&[
        (&matching("kinds: [Pod]"), &[]),
        (
            &matching("kinds: [Pod], namespaces: [own]"),
            &["E namespaced-filter /spec/rules/0/match/any/0/resources/namespaces"],
        ),
        (&matching("kinds: [Namespace]"), &["E cluster-kind /spec/rules/0/match/any/0/resources/kinds/0"]),
        (
            &matching("kinds: [rbac.authorization.k8s.io/v1/ClusterRole]"),
            &["E cluster-kind /spec/rules/0/match/any/0/resources/kinds/0"],
        ),
        (
            &policy("{mutate: {targets: [{apiVersion: v1, kind: Secret, namespace: other}], patchStrategicMerge: {}}}"),
            &["E foreign-target /spec/rules/0/mutate/targets/0/namespace"],
        ),
        (
            &policy("{mutate: {targets: [{apiVersion: v1, kind: Namespace, name: x}], patchStrategicMerge: {}}}"),
            &["E foreign-target /spec/rules/0/mutate/targets/0/kind"],
        ),
        (
            &policy(
                "{mutate: {targets: [{apiVersion: '*', kind: '{{ request.object.data.k }}', name: x}], \
                 patchStrategicMerge: {}}}",
            ),
            &[
                "E open-target-kind /spec/rules/0/mutate/targets/0/apiVersion",
                "E open-target-kind /spec/rules/0/mutate/targets/0/kind",
            ],
        ),
        (
            &policy(
                "{generate: {apiVersion: v1, kind: '{{ request.object.data.k }}', name: x, namespace: own, data: {}}}",
            ),
            &["E open-target-kind /spec/rules/0/generate/kind"],
        ),
        (
            &policy(
                "{generate: {foreach: [{list: \"['a']\", apiVersion: '{{ element }}', kind: ConfigMap, name: x, \
                 namespace: own, data: {}}]}}",
            ),
            &["E open-target-kind /spec/rules/0/generate/foreach/0/apiVersion"],
        ),
        (
            &policy("{generate: {namespace: own, cloneList: {namespace: own, kinds: [v1/*]}}}"),
            &["E open-target-kind /spec/rules/0/generate/cloneList/kinds/0"],
        ),
        (
            &policy(
                "{generate: {apiVersion: v1, kind: Secret, name: x, namespace: '{{ request.object.data.n }}', data: {}}}",
            ),
            &["E foreign-target /spec/rules/0/generate/namespace"],
        ),
        (
            &policy("{context: [{name: a, configMap: {name: c, namespace: other}}], validate: {deny: {}}}"),
            &["E foreign-namespace /spec/rules/0/context/0/configMap/namespace"],
        ),
        (
            &policy("{context: [{name: a, apiCall: {service: {url: 'http://x'}}}], validate: {deny: {}}}"),
            &["E foreign-call /spec/rules/0/context/0/apiCall/service"],
        ),
    ]);
}

#[test]
fn of_a_refused_policy_the_sound_rules_are_left() {
    let rest = |document: &str| {
        let compiled = compile(&value(document));
        assert!(compiled.program.is_none());
        compiled.rest.map(|program| program.rules.iter().map(|rule| rule.name.to_string()).collect::<Vec<_>>())
    };
    let header = "apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}";
    let sound = "match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, pattern: {spec: {a: b}}}";
    let faulty = "match: {any: [{resources: {kinds: [Pod]}}]}, validate: {patern: {spec: {a: b}}}";
    assert_eq!(
        rest(&format!("{{{header}, spec: {{rules: [{{name: a, {faulty}}}, {{name: b, {sound}}}]}}}}")).unwrap(),
        ["b", "autogen-b", "autogen-cronjob-b"]
    );
    // A bad word of the annotation leaves the rules on Pods alone.
    let annotated =
        header.replace("name: p", "name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: '*'}");
    assert_eq!(rest(&format!("{{{annotated}, spec: {{rules: [{{name: b, {sound}}}]}}}}")).unwrap(), ["b", "autogen-b"]);
    // With an error outside of rules nobody knows what the policy means.
    assert_eq!(rest(&format!("{{{header}, spec: {{unknown: 1, rules: [{{name: b, {sound}}}]}}}}")), None);
    assert_eq!(rest(&format!("{{{header}, spec: {{rules: [{{name: a, {faulty}}}]}}}}")), None);
}
