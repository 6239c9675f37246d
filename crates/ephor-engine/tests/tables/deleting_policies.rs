//! What a `DeletingPolicy` says of objects, and what is wrong with some.

use ephor_engine::compile::compile;
use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::gate::ApiPath;
use ephor_engine::policy::HttpMethod;
use ephor_expr::Value;

use crate::support::{Trial, deletion, review, value};

const OBJECT: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: shop, labels: {old: 'yes'}}, \
                      data: {num: '3'}}";

/// A policy on `ConfigMaps` of the cluster, or of the namespace `shop`, with more members of its spec.
fn policy(kind: &str, more: &str) -> Value {
    let rules = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], \
                 resources: [configmaps]}]}";
    free(kind, &format!("schedule: '*/5 * * * *', {rules}, {more}"))
}

fn free(kind: &str, spec: &str) -> Value {
    value(&format!(
        "{{apiVersion: policies.kyverno.io/v1, kind: {kind}, metadata: {{name: p, namespace: shop}}, spec: {{{spec}}}}}"
    ))
}

fn condition(text: &str) -> String {
    format!("conditions: [{{name: c, expression: \"{text}\"}}]")
}

fn said(policy: Value, object: &str) -> Vec<String> {
    Trial::new(&[policy], review(&value(object))).run().lines()
}

#[test]
fn conditions_decide() {
    for (more, want) in [
        (String::new(), "p pass resource matched"),
        (condition("object.data.num == '3'"), "p pass resource matched"),
        (condition("object.data.num == '4'"), "p fail resource did not match"),
        (condition("object.data.none == '4'"), "p error failed to evaluate conditions: no such key: none"),
        // One that is false decides, whatever fails beside it.
        (
            "conditions: [{name: a, expression: object.data.none == '4'}, {name: b, expression: 'false'}]".to_owned(),
            "p fail resource did not match",
        ),
        (
            format!("variables: [{{name: num, expression: object.data.num}}], {}", condition("variables.num == '3'")),
            "p pass resource matched",
        ),
        // There is no request.
        (
            condition("request.operation == 'CREATE'"),
            "p error failed to evaluate conditions: no such attribute(s): request",
        ),
        (condition("oldObject == null"), "p error failed to evaluate conditions: no such attribute(s): oldObject"),
    ] {
        assert_eq!(said(policy("DeletingPolicy", &more), OBJECT), [want], "{more}");
    }
}

#[test]
fn constraints_choose_objects_whatever_the_operation() {
    let of = |kind: &str, more: &str| policy(kind, more);
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: t, namespace: shop}}";
    let elsewhere = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: other}}";
    assert!(said(of("DeletingPolicy", ""), secret).is_empty());
    assert_eq!(said(of("DeletingPolicy", ""), elsewhere), ["p pass resource matched"]);
    assert!(said(of("NamespacedDeletingPolicy", ""), elsewhere).is_empty());
    assert_eq!(said(of("NamespacedDeletingPolicy", ""), OBJECT), ["p pass resource matched"]);
    let excluded = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: ['*']}], \
                    excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]}";
    let all_but = free("DeletingPolicy", &format!("schedule: '@daily', {excluded}"));
    assert!(said(all_but.clone(), OBJECT).is_empty());
    assert_eq!(said(all_but, secret), ["p pass resource matched"]);
    // Of an object that is being deleted it judges what is stored.
    let named = of("DeletingPolicy", &condition("object.metadata.name == 't'"));
    assert_eq!(Trial::new(&[named], deletion(&value(OBJECT))).run().lines(), ["p pass resource matched"]);
}

#[test]
fn without_constraints_it_judges_any_value() {
    let document = free("DeletingPolicy", &format!("schedule: '@daily', {}", condition("object.a == 'b'")));
    assert!(compile(&document).program.is_some_and(|p| p.rules.iter().all(|rule| rule.body.judges_json())));
    let compiled = compile(&document);
    let warned: Vec<String> = compiled.findings.iter().map(|f| format!("{} {}", f.path, f.message)).collect();
    assert_eq!(
        warned,
        ["spec.matchConstraints without `matchConstraints` the policy judges any JSON value: in a cluster it needs a \
          resource rule"]
    );
    assert_eq!(said(document.clone(), "{a: b}"), ["p pass resource matched"]);
    assert_eq!(said(document, "{a: c}"), ["p fail resource did not match"]);
}

#[test]
fn an_exception_keeps_the_object() {
    let exception = |kind: &str, more: &str| {
        value(&format!(
            "{{apiVersion: policies.kyverno.io/v1, kind: PolicyException, metadata: {{name: e, namespace: ex}}, spec: \
             {{policyRefs: [{{name: p, kind: {kind}}}]{more}}}}}"
        ))
    };
    let run = |exception| {
        Trial::new(&[policy("DeletingPolicy", "")], review(&value(OBJECT))).except(&[exception]).run().lines()
    };
    let kept = ["p fail resource did not match: policy exception ex/e"];
    assert_eq!(run(exception("DeletingPolicy", "")), kept);
    // What would make other policies pass, or hand them lists, keeps the object too.
    assert_eq!(run(exception("DeletingPolicy", ", reportResult: pass")), kept);
    assert_eq!(run(exception("DeletingPolicy", ", allowedValues: [a]")), kept);
    assert_eq!(run(exception("ValidatingPolicy", "")), ["p pass resource matched"]);
    let on =
        |text: &str| exception("DeletingPolicy", &format!(", matchConditions: [{{name: c, expression: \"{text}\"}}]"));
    assert_eq!(run(on("object.data.num == '4'")), ["p pass resource matched"]);
    assert_eq!(run(on("object.data.none == '4'")), ["p error exception ex/e: no such key: none"]);
}

#[test]
fn a_policy_of_a_namespace_reads_its_own() {
    let text = condition("resource.Get('v1', 'secrets', 's').data.a == 'b'");
    let mut trial = Trial::new(&[policy("NamespacedDeletingPolicy", &text)], review(&value(OBJECT)));
    let question = Fetch::Api {
        method: HttpMethod::Get,
        path: ApiPath::parse("/api/v1/namespaces/shop/secrets/s").unwrap(),
        body: None,
    };
    let secret = value("{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, data: {a: b}}");
    trial.answers = vec![(question, Fact::Found(secret))];
    assert_eq!(trial.run().lines(), ["p pass resource matched"]);
}

#[test]
fn what_is_wrong_is_placed() {
    for (document, want) in [
        (
            free("DeletingPolicy", "schedule: '@daily', matchConstraints: {}"),
            "spec.matchConstraints: Required value: a \
          matchConstraints with at least one resource rule is required",
        ),
        (policy("DeletingPolicy", "matchConditions: []"), "spec.matchConditions: unknown field `matchConditions`"),
        (
            policy("DeletingPolicy", "deletionPropagationPolicy: Later"),
            "spec.deletionPropagationPolicy: `Later` is not one of `Foreground`, `Background`, `Orphan`",
        ),
        (
            policy("DeletingPolicy", &condition("object.name")),
            "spec.conditions[0].expression: must evaluate to bool but got dyn",
        ),
        (
            policy("NamespacedDeletingPolicy", &condition("http.Get('http://x').ok == true")),
            "spec.conditions[0].expression: http.* is not allowed in namespaced policies",
        ),
        (
            free("DeletingPolicy", "schedule: hourly"),
            "spec.schedule: the schedule is not in proper cron format: expected 5 to 7 fields, found 1",
        ),
        (free("DeletingPolicy", "conditions: []"), "spec.schedule: Required value"),
    ] {
        let findings = compile(&document).findings;
        let found = findings.iter().filter(|f| f.is_error()).map(|f| format!("{}: {}", f.path, f.message));
        assert_eq!(found.collect::<Vec<_>>(), [want]);
    }
}
