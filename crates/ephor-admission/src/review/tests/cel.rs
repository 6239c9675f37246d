//! Policies of `policies.kyverno.io` through the handlers.

use ephor_engine::policy::{FailurePolicy, ProgramKind};
use ephor_runtime::decision::path::{self, Webhook, WebhookScope};

use super::{Answer, Harness, pod, request};

/// A policy that wants a label on Pods, with `more` in its spec.
fn wants(kind: &str, name: &str, label: &str, more: &str) -> String {
    format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: {kind}, metadata: {{name: {name}, namespace: default}}, spec: {{\
         matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]}}, \
         validations: [{{expression: \"'{label}' in object.metadata.labels\", message: label {label} is missing}}] {more}}}}}"
    )
}

fn ask(harness: &Harness, path: &str, labels: &str) -> Answer {
    let (webhook, scope) = path::parse(path).unwrap();
    let request = request("CREATE", "Pod", "", &pod(labels));
    match webhook {
        Webhook::Mutate => harness.handlers.mutate(&request, &scope),
        Webhook::Validate => harness.handlers.validate(&request, &scope),
    }
}

#[test]
fn a_webhook_asks_the_policies_that_it_names() {
    let harness = Harness::new(&[
        &wants("ValidatingPolicy", "team", "team", ""),
        &wants("ValidatingPolicy", "owner", "owner", ""),
        &wants("ValidatingPolicy", "lenient", "x", ", failurePolicy: Ignore"),
        &wants("NamespacedValidatingPolicy", "team", "own", ""),
        &super::wants_team("team", "", "Enforce"),
    ]);
    let missing = |policy: &str, label: &str| format!("Policy {policy} failed: label {label} is missing");
    for (path, labels, want) in [
        ("/vpol/team/owner", "{team: a, owner: b}", None),
        ("/vpol/team/owner", "{owner: b}", Some(missing("team", "team"))),
        ("/vpol/owner", "{}", Some(missing("owner", "owner"))),
        ("/vpol/team/gone", "{}", Some(missing("team", "team"))),
        ("/vpols/fail", "{}", Some(format!("{}; {}", missing("owner", "owner"), missing("team", "team")))),
        ("/vpols/ignore", "{}", Some(missing("lenient", "x"))),
        ("/nvpol/default/team", "{}", Some(missing("team", "own"))),
        // A policy of another namespace is there, and is not about this one.
        ("/vpol/gone", "{}", Some("policies could not be evaluated: failed to fetch policy with key: gone".to_owned())),
        ("/vpol-ignore/gone", "{}", None),
    ] {
        assert_eq!(ask(&harness, path, labels).message, want, "{path} {labels}");
    }
    // The others judge by policies of `kyverno.io` alone.
    let all = harness.handlers.validate(&request("CREATE", "Pod", "", &pod("{}")), &WebhookScope::All).message.unwrap();
    assert!(all.contains("label team is missing.") && !all.contains("owner"), "{all}");
}

#[test]
fn actions_decide_what_a_violation_does() {
    for (actions, denied, warned) in [
        ("", true, false),
        (", validationActions: [Deny]", true, false),
        (", validationActions: [Warn]", false, true),
        (", validationActions: [Audit]", false, false),
        (", validationActions: [Audit, Warn]", false, true),
    ] {
        let harness = Harness::new(&[&wants("ValidatingPolicy", "team", "team", actions)]);
        let answer = ask(&harness, "/vpol/team", "{}");
        let text = "Policy team failed: label team is missing".to_owned();
        assert_eq!(answer.allowed, !denied, "{actions}");
        assert_eq!(answer.message, denied.then(|| text.clone()), "{actions}");
        assert_eq!(answer.warnings, if warned { vec![text] } else { Vec::new() }, "{actions}");
    }
}

#[test]
fn an_error_denies_where_violations_do_whatever_the_failure_policy() {
    for (spec, denied) in [("", true), (", failurePolicy: Ignore", true), (", validationActions: [Audit]", false)] {
        let policy = wants("ValidatingPolicy", "broken", "x", spec).replace("object.metadata.labels", "object.nothing");
        let harness = Harness::new(&[&policy]);
        let path = if spec.contains("Ignore") { "/vpol-ignore/broken" } else { "/vpol/broken" };
        let answer = ask(&harness, path, "{}");
        assert_eq!(answer.allowed, !denied, "{spec}");
        let text = denied.then(|| "Policy broken error: no such key: nothing".to_owned());
        assert_eq!(answer.message, text, "{spec}");
    }
}

#[test]
fn a_mutating_policy_changes_objects_by_the_schema_of_their_kind() {
    let policy = "{apiVersion: policies.kyverno.io/v1, kind: MutatingPolicy, metadata: {name: m}, spec: {matchConstraints: \
         {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, mutations: \
         [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{containers: \
         [Object.spec.containers{name: \"b\", tty: true}]}}'}}]}}";
    let harness = Harness::new(&[policy]);
    let object = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: [{name: a, image: \
         x}, {name: b, image: z}]}}";
    let (_, scope) = path::parse("/mpol/m").unwrap();
    let answer = harness.handlers.mutate(&request("CREATE", "Pod", "", object), &scope);
    let patch = answer.patch.unwrap().to_json();
    assert_eq!(patch, r#"[{"op":"add","path":"/spec/containers/1/tty","value":true}]"#);
}

#[test]
fn a_mutation_that_fails_denies_unless_its_policy_ignores_errors() {
    for (failure, path, denied) in [("Fail", "/mpol/m", true), ("Ignore", "/mpol-ignore/m", false)] {
        let policy = format!(
            "{{apiVersion: policies.kyverno.io/v1, kind: MutatingPolicy, metadata: {{name: m}}, spec: {{failurePolicy: \
             {failure}, matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE], \
             resources: [pods]}}]}}, mutations: [{{patchType: JSONPatch, jsonPatch: {{expression: '[JSONPatch{{op: \
             \"replace\", path: \"/spec/nothing\", value: 1}}]'}}}}]}}}}"
        );
        let answer = ask(&Harness::new(&[&policy]), path, "{}");
        assert_eq!(answer.allowed, !denied, "{failure}");
        if denied {
            let message = answer.message.unwrap();
            assert!(message.starts_with("Resource: default/p, Kind: Pod, Errors: [Policy m: "), "{message}");
        }
    }
}

#[test]
fn the_webhooks_that_would_be_registered_are_known_by_their_names() {
    let conditions = ", matchConditions: [{name: c, expression: \"'a' in object.metadata.labels\"}]";
    let harness = Harness::new(&[
        &wants("ValidatingPolicy", "team", "team", ""),
        &wants("ValidatingPolicy", "mine", "owner", conditions),
        &wants("NamespacedValidatingPolicy", "team", "own", ""),
    ]);
    let called = |labels: &str| -> Vec<String> {
        let called = harness.handlers.webhooks(Webhook::Validate, &request("CREATE", "Pod", "", &pod(labels)));
        called.iter().map(|called| format!("{} {:?}", called.name, called.matched)).collect()
    };
    let shared = [
        "validate.kyverno.svc-ignore Yes",
        "validate.kyverno.svc-fail Yes",
        "vpol.validate.kyverno.svc-fail Yes",
        "nvpol.validate.kyverno.svc-fail Yes",
    ];
    let own = |matched: &str| format!("vpol.validate.kyverno.svc-fail-finegrained-mine {matched}");
    let want = |last: String| shared.iter().map(|name| (*name).to_owned()).chain([last]).collect::<Vec<_>>();
    assert_eq!(called("{a: b}"), want(own("Yes")));
    assert_eq!(called("{}"), want(own("No(\"autogen-c\")")));
    let kinds: Vec<ProgramKind> = path::kinds_of(Webhook::Validate).collect();
    assert!(kinds.iter().all(|kind| path::of_kind(FailurePolicy::Fail, *kind).is_some()));
}

#[test]
fn an_exception_of_a_namespace_reads_nothing_but_the_request() {
    let exception = |condition: &str| {
        format!(
            "{{apiVersion: policies.kyverno.io/v1, kind: PolicyException, metadata: {{name: e, namespace: default}}, spec: \
             {{policyRefs: [{{name: team, kind: ValidatingPolicy}}], matchConditions: [{{name: c, expression: \
             \"{condition}\"}}]}}}}"
        )
    };
    for (condition, allowed) in [
        ("object.metadata.name == 'p'", true),
        ("object.metadata.name == 'q'", false),
        // The owner of a namespace must not read with the right of a policy of the cluster.
        ("size(resource.List('v1', 'pods', 'kube-system')) >= 0", false),
        ("size(http.Get('http://example.com')) >= 0", false),
    ] {
        let harness = Harness::new(&[&wants("ValidatingPolicy", "team", "team", ""), &exception(condition)]);
        assert_eq!(ask(&harness, "/vpol/team", "{}").allowed, allowed, "{condition}");
    }
}
