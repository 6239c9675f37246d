//! What rules apply to: rows of the selection table, and user information, through policies.

use ephor_engine::matching::{Gvk, UserInfo};
use ephor_engine::review::{Mode, Review};
use ephor_expr::Value;

use crate::support::{Trial, policy, policy_of_rule, review, value};

const DENY: &str = "validate: {message: m, deny: {}}";

fn applies(selection: &str, review: Review) -> bool {
    let rule = value(&format!("{selection}\n{DENY}"));
    match Trial::new(&[policy_of_rule(&rule)], review).run().lines().as_slice() {
        [] => false,
        [line] if line == "r fail m" => true,
        lines => panic!("{selection}: {lines:?}"),
    }
}

fn deployment() -> Review {
    let object = "
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: d1, namespace: ns1, labels: {app: web, tier: a1}, annotations: {corp.io/owner: team-a}}";
    review(&value(object))
}

#[test]
fn kinds_have_parts_and_wildcards() {
    let kinds = |kinds: &str| format!("match: {{any: [{{resources: {{kinds: ['{kinds}']}}}}]}}");
    for hit in ["Deployment", "Deploy*", "D?ployment", "*", "*/*", "v1/Deployment", "apps/*/*", "apps.v1.Deployment"] {
        assert!(applies(&kinds(hit), deployment()), "{hit}");
    }
    for miss in ["deployment", "Deployment?", "Deployment/scale", "apps/Deployment", "v2/Deployment", "*/scale"] {
        assert!(!applies(&kinds(miss), deployment()), "{miss}");
    }
    let scale = Review { subresource: "scale".into(), ..deployment() };
    for hit in ["Deployment/scale", "Deployment.scale", "*/scale", "v1/Deployment/scale"] {
        assert!(applies(&kinds(hit), scale.clone()), "{hit}");
    }
    for miss in ["Deployment", "*", "autoscaling/v1/S*"] {
        assert!(!applies(&kinds(miss), scale.clone()), "{miss}");
    }
    let new_version = Review { gvk: Gvk::new("ex.io/v10", "Foo"), ..deployment() };
    for hit in ["Foo", "v10/Foo", "ex.io/v10/Foo", "*.io/v*/Foo"] {
        assert!(applies(&kinds(hit), new_version.clone()), "{hit}");
    }
}

#[test]
fn filters_need_all_their_attributes() {
    for (filter, want) in [
        ("names: [d?]", true),
        ("names: [x, d1]", true),
        ("namespaces: [ns*]", true),
        ("annotations: {corp.io/*: team-?}", true),
        ("selector: {matchLabels: {app: w*}}", true),
        ("selector: {matchLabels: {t??r: a?}}", true),
        ("selector: {matchExpressions: [{key: zz, operator: NotIn, values: [w]}]}", true),
        ("operations: [CREATE]", true),
        ("names: [d]", false),
        ("names: [d1], namespaces: [x]", false),
        ("annotations: {corp.io/owner: '*', b: c}", false),
        ("selector: {matchLabels: {app: x*}}", false),
        ("operations: [UPDATE]", false),
    ] {
        let selection = format!("match: {{any: [{{resources: {{kinds: [Deployment], {filter}}}}}]}}");
        assert_eq!(applies(&selection, deployment()), want, "{filter}");
    }
}

#[test]
fn users_match_by_all_their_attributes_and_exclusions_need_one() {
    let alice = UserInfo {
        username: "alice".into(),
        groups: vec!["dev".into()],
        roles: vec!["ns1:r1".into()],
        cluster_roles: vec!["admin".into()],
        ..UserInfo::default()
    };
    for (user, want) in [
        ("subjects: [{kind: User, name: al*}]", true),
        ("subjects: [{kind: User, name: bob}, {kind: Group, name: dev}]", true),
        ("roles: ['ns1:r1'], clusterRoles: [admin]", true),
        ("roles: ['ns1:zz'], clusterRoles: [admin]", false),
        ("clusterRoles: [admin], subjects: [{kind: User, name: bob}]", false),
    ] {
        let selection = format!("match: {{any: [{{resources: {{kinds: [Deployment]}}, {user}}}]}}");
        let review = Review { user: Some(alice.clone()), mode: Mode::Admission, ..deployment() };
        assert_eq!(applies(&selection, review), want, "{user}");
    }
    for (user, still_applies) in [
        ("any: [{subjects: [{kind: User, name: x}]}]", true),
        ("any: [{clusterRoles: [admin]}]", true),
        ("any: [{subjects: [{kind: User, name: '*'}]}]", false),
        ("any: [{resources: {names: [zz]}}, {resources: {names: [d1]}}]", false),
        ("all: [{resources: {names: [zz]}}, {resources: {names: [d1]}}]", true),
    ] {
        let selection = format!("match: {{any: [{{resources: {{kinds: [Deployment]}}}}]}}\nexclude: {{{user}}}");
        assert_eq!(applies(&selection, deployment()), still_applies, "nobody, {user}");
    }
}

#[test]
fn a_policy_applies_to_its_namespace() {
    let rules = format!("{{rules: [{{match: {{any: [{{resources: {{kinds: [Deployment]}}}}]}}, {DENY}}}]}}");
    for (namespace, want) in [("ns1", 1), ("other", 0)] {
        let document =
            policy(&value(&format!("{{kind: Policy, metadata: {{name: p, namespace: {namespace}}}, spec: {rules}}}")));
        assert_eq!(Trial::new(&[document], deployment()).run().lines().len(), want, "{namespace}");
    }
}

#[test]
fn service_accounts_are_read_from_the_user_name() {
    for (username, want) in [
        ("system:serviceaccount:ns1:sa1", "ns1/sa1"),
        ("0123456789012345678901team:bot", "team/bot"),
        ("0123456789012345678901a:b:c", "a/b"),
        ("system:serviceaccount:ns1", "/"),
        ("alice", "/"),
    ] {
        let rule = value("validate: {message: '{{ serviceAccountNamespace }}/{{ serviceAccountName }}', deny: {}}");
        let user = UserInfo { username: username.into(), ..UserInfo::default() };
        let review =
            Review { user: Some(user), mode: Mode::Admission, ..review(&Value::from([] as [(&str, Value); 0])) };
        assert_eq!(
            Trial::new(&[policy_of_rule(&rule)], review).run().lines(),
            [format!("r fail {want}")],
            "{username}"
        );
    }
}
