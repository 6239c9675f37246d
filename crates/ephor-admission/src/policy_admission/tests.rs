//! Requests about Ephor's own kinds, against a cluster in memory.

use ephor_cluster::{MemoryCluster, WriteOptions};
use ephor_expr::yaml::parse_value;

use super::*;
use ephor_faults::FaultyCluster;

fn value(text: &str) -> Value {
    parse_value(text).unwrap()
}

fn handlers(cluster: MemoryCluster, exceptions: ExceptionScope) -> PolicyAdmission {
    PolicyAdmission::new(Arc::new(cluster), Accounts::default(), exceptions)
}

fn request(operation: &str, namespace: &str, object: &Value, old_object: &Value) -> AdmissionRequest {
    AdmissionRequest::of_value(&Value::from([
        ("namespace", Value::from(namespace)),
        ("object", object.clone()),
        ("oldObject", old_object.clone()),
        ("operation", Value::from(operation)),
        ("uid", Value::from("u")),
    ]))
    .unwrap()
}

fn create(object: &Value) -> AdmissionRequest {
    request("CREATE", object.str_at(&["metadata", "namespace"]).unwrap_or_default(), object, &Value::Null)
}

fn policy(kind: &str, rule: &str) -> Value {
    let namespace = if kind == "Policy" { ", namespace: own" } else { "" };
    value(&format!(
        "{{apiVersion: kyverno.io/v1, kind: {kind}, metadata: {{name: p{namespace}}}, spec: {{background: false, rules: \
         [{{name: r, {rule}}}]}}}}"
    ))
}

fn matching(kind: &str, body: &str) -> String {
    format!("match: {{any: [{{resources: {{kinds: ['{kind}']}}}}]}}, {body}")
}

/// A cluster with the kinds `Widget` (namespaced, with `scale`) and `Gadget` (cluster-wide) of `example.com/v1`.
fn with_custom_kinds() -> MemoryCluster {
    let cluster = MemoryCluster::default();
    cluster.set_now(jiff::Timestamp::now().to_string());
    let kind = cluster.resolve("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    for (name, plural, scope) in [("Widget", "widgets", "Namespaced"), ("Gadget", "gadgets", "Cluster")] {
        let definition = value(&format!(
            "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {plural}.example.com}}, \
             spec: {{group: example.com, scope: {scope}, names: {{kind: {name}, plural: {plural}}}, versions: [{{name: v1, \
             served: true, storage: true, subresources: {{status: {{}}}}, schema: {{openAPIV3Schema: {{type: object}}}}}}]}}}}"
        ));
        cluster.create(&kind, definition, &WriteOptions::default()).unwrap();
    }
    cluster
}

fn said(answer: &Answer) -> String {
    let head = if answer.allowed { "allowed" } else { "denied" };
    let message = answer.message.iter().cloned();
    let warnings = answer.warnings.iter().map(|warning| format!("Warning: {warning}"));
    [head.to_owned()].into_iter().chain(message).chain(warnings).collect::<Vec<_>>().join("\n")
}

#[test]
fn policies_are_refused_with_places_and_advised_against_with_words() {
    let host = handlers(MemoryCluster::default(), ExceptionScope::Everywhere);
    let deny =
        |condition: &str| matching("Pod", &format!("validate: {{deny: {{conditions: {{any: [{condition}]}}}}}}"));
    let said = |rule: &str| said(&host.policy(&create(&policy("ClusterPolicy", rule))));
    assert_eq!(said(&matching("Pod", "validate: {deny: {}}")), "allowed");
    insta::assert_snapshot!(said(&deny("{key: a, operator: NotIn, value: [b]}")), @"
allowed
Warning: Operator NotIn has been deprecated and will be removed soon. (use `AnyNotIn` or `AllNotIn`) [spec.rules[0].validate.deny.conditions.any[0].operator]
");
    insta::assert_snapshot!(said(&deny("{key: a, operator: Is, value: [b]}")), @"
denied
spec.rules[0].validate.deny.conditions.any[0].operator: entered value of `operator` is invalid: unknown operator `Is`
");
    insta::assert_snapshot!(said(&matching("Pod", "validate: {cel: {expressions: [{expression: nope}]}}")), @"
denied
spec.rules[0].validate.cel.expressions[0].expression: undeclared reference to 'nope' (in container '')
");
    insta::assert_snapshot!(said(&matching("Pod", "celPreconditions: [], validate: {deny: {}}")), @"
denied
spec.rules[0].celPreconditions: celPrecondition can only be used with validate.cel
");
    insta::assert_snapshot!(said(&matching("Pod", "validate: {deny: {}, patern: {}}")), @"
denied
spec.rules[0].validate.patern: unknown field `patern` (did you mean `pattern`?)
");
}

#[test]
fn a_target_whose_kind_the_request_decides_is_refused_in_a_policy_and_told_of_in_a_cluster_policy() {
    let accounts = Accounts { background: Some("system:serviceaccount:e:bg".into()), ..Accounts::default() };
    let host = PolicyAdmission::new(Arc::new(MemoryCluster::default()), accounts, ExceptionScope::Everywhere);
    let said = |kind: &str, rule: &str| said(&host.policy(&create(&policy(kind, rule))));
    let target = "mutate: {targets: [{apiVersion: v1, kind: '{{ request.object.data.k }}', name: a}], \
                  patchStrategicMerge: {metadata: {labels: {a: b}}}}";
    insta::assert_snapshot!(said("Policy", &matching("ConfigMap", target)), @"
denied
spec.rules[0].mutate.targets[0].kind: the targets of a Policy name their kind without variables: `{{ request.object.data.k }}` (write out apiVersion and kind, or make this a ClusterPolicy)
");
    insta::assert_snapshot!(said("ClusterPolicy", &matching("ConfigMap", target)), @"
allowed
Warning: the kind `{{ request.object.data.k }}` is known only when the rule runs: whether system:serviceaccount:e:bg may read and write such objects is not checked [spec.rules[0].mutate.targets[0].kind]
");
}

#[test]
fn a_policy_has_no_targets_of_cluster_scoped_custom_kinds() {
    let host = handlers(with_custom_kinds(), ExceptionScope::Everywhere);
    let target = "mutate: {targets: [{apiVersion: example.com/v1, kind: Gadget, name: a}], patchStrategicMerge: {}}";
    insta::assert_snapshot!(said(&host.policy(&create(&policy("Policy", &matching("ConfigMap", target))))), @"
denied
spec.rules[0].mutate.targets[0].kind: a Policy can only mutate targets in its own namespace, and this kind has none
");
}

#[test]
fn kinds_are_looked_up() {
    let host = handlers(with_custom_kinds(), ExceptionScope::Everywhere);
    let said = |kind: &str, rule: &str| said(&host.policy(&create(&policy(kind, rule))));
    let generate = |kind: &str, more: &str| {
        matching(
            "Namespace",
            &format!("generate: {{apiVersion: example.com/v1, kind: {kind}, name: a, data: {{}}{more}}}"),
        )
    };
    assert_eq!(said("Policy", &matching("Widget", "validate: {deny: {}}")), "allowed");
    insta::assert_snapshot!(said("ClusterPolicy", &matching("Gizmo", "validate: {deny: {}}")), @"
allowed
Warning: the kind `Gizmo` is not defined in the cluster, so nothing matches it yet [spec.rules[0].match.any[0].resources.kinds[0]]
");
    insta::assert_snapshot!(said("ClusterPolicy", &matching("widget", "validate: {deny: {}}")), @"
allowed
Warning: the kind `widget` is not defined in the cluster, so nothing matches it yet (did you mean `Widget`?) [spec.rules[0].match.any[0].resources.kinds[0]]
");
    insta::assert_snapshot!(said("ClusterPolicy", &matching("Widget/made-up", "validate: {deny: {}}")), @"
allowed
Warning: the subresource `Widget/made-up` is not defined in the cluster, so nothing matches it yet [spec.rules[0].match.any[0].resources.kinds[0]]
");
    for (kind, near) in
        [("*/widget", "*/Widget"), ("Pod/Exec", "Pod/exec"), ("example.com/V1/Widget", "example.com/v1/Widget")]
    {
        let told = said("ClusterPolicy", &matching(kind, "validate: {deny: {}}"));
        assert!(told.contains(&format!("(did you mean `{near}`?)")), "{kind}: {told}");
    }
    let params = "validate: {cel: {paramKind: {apiVersion: example.com/v1, kind: widget}, paramRef: {name: a, namespace: b, \
                  parameterNotFoundAction: Deny}, expressions: [{expression: 'true'}]}}";
    let told = said("ClusterPolicy", &matching("ConfigMap", params));
    assert!(told.contains("(did you mean `Widget`?)"), "{told}");
    let copied = "generate: {apiVersion: example.com/v1, kind: Widget, name: a, namespace: x, clone: {name: b}}";
    insta::assert_snapshot!(said("ClusterPolicy", &matching("Namespace", copied)), @"
denied
spec.rules[0].generate.clone: `clone.namespace` must be set for a namespaced resource
");
    let listed = "generate: {cloneList: {kinds: [example.com/v1/Widget], namespace: x}}";
    insta::assert_snapshot!(said("ClusterPolicy", &matching("Namespace", listed)), @"
denied
spec.rules[0].generate: target namespace must be set for a namespaced resource
");
    insta::assert_snapshot!(said("Policy", &matching("Gadget", "validate: {deny: {}}")), @"
denied
spec.rules[0].match.any[0].resources.kinds[0]: a Policy cannot match the cluster-scoped kind `Gadget`
");
    assert_eq!(said("ClusterPolicy", &generate("Gadget", "")), "allowed");
    assert_eq!(said("ClusterPolicy", &generate("Widget", ", namespace: x")), "allowed");
    insta::assert_snapshot!(said("ClusterPolicy", &generate("Widget", "")), @"
denied
spec.rules[0].generate: target namespace must be set for a namespaced resource
");
    insta::assert_snapshot!(said("ClusterPolicy", &generate("Gadget", ", namespace: x")), @"
denied
spec.rules[0].generate: target namespace must not be set for a cluster-wide resource
");
    insta::assert_snapshot!(said("ClusterPolicy", &generate("Gizmo", "")), @"
allowed
Warning: `example.com/v1` `Gizmo` is not defined in the cluster, so it cannot be generated yet [spec.rules[0].generate.kind]
");
    // What the engine finds of Kubernetes' own kinds is said once.
    let native = matching("Pod", "generate: {apiVersion: v1, kind: ConfigMap, name: a, data: {}}");
    insta::assert_snapshot!(said("ClusterPolicy", &native), @"
denied
spec.rules[0].generate: target namespace must be set for a namespaced resource
");
}

#[test]
fn generate_rules_keep_their_names_and_may_move_their_targets() {
    let host = handlers(MemoryCluster::default(), ExceptionScope::Everywhere);
    let rule = |kind: &str, target: &str| {
        let body = format!(
            "generate: {{apiVersion: v1, kind: ConfigMap, name: {target}, namespace: x, synchronize: true, data: {{}}}}"
        );
        policy("ClusterPolicy", &matching(kind, &body))
    };
    let old = rule("Secret", "a");
    let said = |new: &Value| said(&host.policy(&request("UPDATE", "", new, &old)));
    assert_eq!(said(&old), "allowed");
    insta::assert_snapshot!(said(&rule("ServiceAccount", "a")), @"
denied
spec.rules[0].match: changes of immutable fields of a rule spec in a generate rule is disallowed: `match` (delete the policy and create it anew)
");
    insta::assert_snapshot!(said(&rule("ServiceAccount", "b")), @"
allowed
Warning: no synchronization will be performed to the old target resource upon policy updates (delete the old target by hand when it is no longer needed) [spec.rules[0].generate]
");
}

#[test]
fn what_changes_no_rule_goes_through() {
    let host = handlers(MemoryCluster::default(), ExceptionScope::Everywhere);
    let bad = policy("ClusterPolicy", &matching("Pod", "validate: {cel: {}}"));
    let mut labelled = bad.clone();
    let metadata = labelled.as_object_mut().unwrap().get_mut("metadata").unwrap().as_object_mut().unwrap();
    metadata.insert("labels", Value::from([("a", Value::from("b"))]));
    assert!(host.policy(&request("UPDATE", "", &labelled, &bad)).allowed);
    assert!(host.policy(&request("DELETE", "", &Value::Null, &bad)).allowed);
    assert!(!host.policy(&create(&bad)).allowed);
    let status = AdmissionRequest { sub_resource: "status".into(), ..create(&bad) };
    assert!(host.policy(&status).allowed);
}

#[test]
fn a_name_that_is_to_be_generated_is_no_fault() {
    let host = handlers(MemoryCluster::default(), ExceptionScope::Everywhere);
    let mut document = policy("ClusterPolicy", &matching("Pod", "validate: {deny: {}}"));
    *document.as_object_mut().unwrap().get_mut("metadata").unwrap() = value("{generateName: p-}");
    assert_eq!(said(&host.policy(&create(&document))), "allowed");
}

#[test]
fn exceptions_that_do_not_count_are_pointed_out() {
    let exception = value(
        "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: a}, spec: {match: {any: \
         [{resources: {kinds: [Pod]}}]}, exceptions: [{policyName: p, ruleNames: [r]}]}}",
    );
    for (scope, want) in [
        (ExceptionScope::Everywhere, "allowed"),
        (ExceptionScope::Namespace("a".into()), "allowed"),
        (
            ExceptionScope::Namespace("b".into()),
            "allowed\nWarning: PolicyException resource namespace must match the defined namespace.",
        ),
        (
            ExceptionScope::Disabled,
            "allowed\nWarning: PolicyException resources would not be processed until it is enabled.",
        ),
    ] {
        assert_eq!(said(&handlers(MemoryCluster::default(), scope).exception(&create(&exception))), want);
    }
    let misspelt = Value::from_json(&exception.to_json().replace("Pod", "pod")).unwrap();
    let told = said(&handlers(MemoryCluster::default(), ExceptionScope::Everywhere).exception(&create(&misspelt)));
    assert!(told.starts_with("allowed\nWarning") && told.contains("(did you mean `Pod`?)"), "{told}");
    let faulty = value(
        "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: a}, spec: {match: {any: \
         [{resources: {kinds: [Pod]}}]}, podSecurity: [{controlName: Capabilities}], exceptions: [{policyName: p, \
         ruleNames: [r]}]}}",
    );
    let host = handlers(MemoryCluster::default(), ExceptionScope::Everywhere);
    insta::assert_snapshot!(said(&host.exception(&create(&faulty))), @"
denied
spec.podSecurity[0].images: exclude.images must be specified for the container level control `Capabilities`
");
}

#[test]
fn the_other_kinds_are_checked_too() {
    let host = handlers(MemoryCluster::default(), ExceptionScope::Everywhere);
    let entry = value(
        "{apiVersion: kyverno.io/v2, kind: GlobalContextEntry, metadata: {name: g}, spec: {apiCall: {urlPath: /x, method: \
         GET, data: [{key: a, value: b}]}}}",
    );
    insta::assert_snapshot!(said(&host.global_context(&create(&entry))), @"
denied
spec.apiCall.data: `data` is sent with method POST only
");
    let cleanup = value(
        "{apiVersion: kyverno.io/v2, kind: CleanupPolicy, metadata: {name: c, namespace: a}, spec: {schedule: never, match: \
         {any: [{resources: {kinds: [Pod]}}]}}}",
    );
    insta::assert_snapshot!(said(&host.cleanup_policy(&create(&cleanup))), @"
denied
spec.schedule: schedule spec in the cleanupPolicy is not in proper cron format: expected 5 fields, found 1
");
    let cleanup = Value::from_json(&cleanup.to_json().replace("never", "* * * * *").replace("Pod", "pod")).unwrap();
    insta::assert_snapshot!(said(&host.cleanup_policy(&create(&cleanup))), @"
denied
spec.match.any[0].resources.kinds[0]: failed to get GVR for kind pod (did you mean `Pod`?)
");
    let labelled = value("{metadata: {name: a, labels: {cleanup.kyverno.io/ttl: 10ay}}}");
    insta::assert_snapshot!(said(&host.ttl(&create(&labelled))), @"
allowed
Warning: cleanup.kyverno.io/ttl label value cannot be parsed as any recognizable format (`10ay` is neither a duration such as 90s, 5m, 4h, 1d, 1w nor a time such as 2006-01-02 or 2006-01-02T150405Z): the object is kept
");
}

#[test]
fn a_missing_api_version_is_taken_from_the_one_group_that_serves_the_kind() {
    let host = handlers(with_custom_kinds(), ExceptionScope::Disabled);
    let ask = |kind: &str| {
        let body = format!("generate: {{kind: {kind}, name: a, namespace: b, data: {{}}}}");
        said(&host.policy(&create(&policy("ClusterPolicy", &matching("Namespace", &body)))))
    };
    let widget = ask("Widget");
    assert!(widget.starts_with("allowed") && widget.contains("`example.com/v1` is taken"), "{widget}");
    assert!(!widget.contains("in a cluster it is filled in"), "{widget}");
    let event = ask("Event");
    assert!(event.starts_with("denied") && event.contains("several groups: ``, `events.k8s.io`"), "{event}");
    let unknown = ask("Gizmo");
    assert!(unknown.starts_with("allowed") && unknown.contains("cannot be generated yet"), "{unknown}");
}

#[test]
fn a_kind_that_was_defined_a_moment_ago_is_waited_for() {
    let view = |asked| {
        let cluster = Arc::new(with_custom_kinds());
        let view = FaultyCluster::new(cluster).serving_late("example.com", "gadgets", asked);
        PolicyAdmission::new(Arc::new(view), Accounts::default(), ExceptionScope::Disabled)
    };
    // A cluster-wide target with a namespace is refused once the scope of its kind is known.
    let generate = "generate: {apiVersion: example.com/v1, kind: Gadget, name: a, namespace: b, data: {spec: {}}}";
    let rule = matching("Secret", generate);
    let refused = view(3).policy(&create(&policy("ClusterPolicy", &rule)));
    assert!(!refused.allowed, "{}", said(&refused));
    let matched = view(2).policy(&create(&policy("ClusterPolicy", &matching("Gadget", "validate: {deny: {}}"))));
    assert!(matched.allowed && !said(&matched).contains("not defined"), "{}", said(&matched));
    // One that is never served is unknown in the end; so is one that no definition names, without a wait.
    let never = view(usize::MAX).policy(&create(&policy("ClusterPolicy", &rule)));
    assert!(never.allowed && said(&never).contains("not defined"), "{}", said(&never));
}
