//! What is known, and how it is found.

use ephor_expr::Value;

use super::{Discovery, group, groups, resources, resources_of};
use crate::resource::{Origin, Resource, guess_plural};

fn definition(versions: &str) -> Value {
    Value::from_json(&format!(
        r#"{{"spec":{{"group":"example.com","scope":"Cluster","names":{{"kind":"Box","plural":"boxen","shortNames":["bx"]}},
            "versions":[{versions}]}}}}"#
    ))
    .unwrap()
}

#[test]
fn kinds_are_found_by_version_and_by_url() {
    let discovery = Discovery::kubernetes();
    for (api_version, kind, plural, namespaced, status) in [
        ("v1", "Pod", "pods", true, true),
        ("v1", "Node", "nodes", false, true),
        ("v1", "Endpoints", "endpoints", true, false),
        ("apps/v1", "Deployment", "deployments", true, true),
        ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", true, false),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false, false),
        ("resource.k8s.io/v1beta2", "DeviceClass", "deviceclasses", false, false),
        ("kyverno.io/v1", "ClusterPolicy", "clusterpolicies", false, true),
        ("kyverno.io/v2", "PolicyException", "policyexceptions", true, false),
        ("policies.kyverno.io/v1beta1", "NamespacedValidatingPolicy", "namespacedvalidatingpolicies", true, true),
        ("wgpolicyk8s.io/v1alpha2", "PolicyReport", "policyreports", true, true),
        ("openreports.io/v1alpha1", "ClusterReport", "clusterreports", false, false),
    ] {
        let found = discovery.find(api_version, kind).unwrap_or_else(|| panic!("{api_version} {kind}"));
        assert_eq!(
            (found.plural.as_str(), found.namespaced, found.has_status()),
            (plural, namespaced, status),
            "{kind}"
        );
        assert_eq!(found.api_version(), api_version);
        assert_eq!(discovery.find_plural(&found.group, &found.version, plural), Some(found));
    }
    for (api_version, kind) in [("v1", "Deployment"), ("apps/v2", "Deployment"), ("v1", "pod"), ("", "")] {
        assert!(discovery.find(api_version, kind).is_none(), "{api_version} {kind}");
    }
}

#[test]
fn a_kind_alone_gives_every_group_and_the_preferred_version_first() {
    let found = |kind| -> Vec<String> {
        Discovery::kubernetes().with_kind(kind).map(|r| r.api_version().to_string()).collect()
    };
    assert_eq!(found("Event"), ["v1", "events.k8s.io/v1"]);
    assert_eq!(found("HorizontalPodAutoscaler"), ["autoscaling/v2", "autoscaling/v1"]);
    assert_eq!(
        found("PolicyException"),
        [
            "kyverno.io/v2",
            "kyverno.io/v2beta1",
            "policies.kyverno.io/v1",
            "policies.kyverno.io/v1beta1",
            "policies.kyverno.io/v1alpha1"
        ]
    );
    assert!(found("Nothing").is_empty());
}

#[test]
fn built_in_plurals_follow_the_english_of_the_guess_and_no_kind_stands_twice() {
    let mut seen = Vec::new();
    for resource in Discovery::kubernetes().iter() {
        assert_eq!(resource.plural, guess_plural(&resource.kind));
        let identity = (resource.api_version(), resource.kind.clone());
        assert!(!seen.contains(&identity), "{identity:?}");
        seen.push(identity);
    }
    assert!(seen.len() > 120);
}

#[test]
fn subresources_name_what_is_sent_to_them() {
    let discovery = Discovery::kubernetes();
    let sent = |api_version, kind, name| {
        let s = discovery.find(api_version, kind)?.subresource(name)?;
        Some(format!("{} {}", s.api_version, s.kind))
    };
    for (api_version, kind, name, want) in [
        ("v1", "Pod", "exec", Some("v1 PodExecOptions")),
        ("v1", "Pod", "eviction", Some("policy/v1 Eviction")),
        ("v1", "Pod", "ephemeralcontainers", Some("v1 Pod")),
        ("apps/v1", "Deployment", "scale", Some("autoscaling/v1 Scale")),
        ("apps/v1", "Deployment", "status", Some("apps/v1 Deployment")),
        ("v1", "ServiceAccount", "token", Some("authentication.k8s.io/v1 TokenRequest")),
        ("v1", "ConfigMap", "status", None),
    ] {
        assert_eq!(sent(api_version, kind, name).as_deref(), want, "{kind}/{name}");
    }
}

#[test]
fn a_definition_gives_its_served_versions_preferred_first() {
    let crd = definition(
        r#"{"name":"v1beta1","served":true},{"name":"v2","served":false},{"name":"v1","served":true,"subresources":{"status":{}}}"#,
    );
    let resources = resources_of(&crd);
    let versions: Vec<_> = resources.iter().map(|r| (r.version.as_str(), r.has_status())).collect();
    assert_eq!(versions, [("v1", true), ("v1beta1", false)]);
    let first = &resources[0];
    assert_eq!((first.plural.as_str(), first.singular.as_str(), first.namespaced), ("boxen", "box", false));
    assert_eq!(first.origin, Origin::Custom);
    for broken in ["{}", r#"{"spec":{"group":"g","names":{}}}"#, r#"{"spec":[]}"#, "null"] {
        assert!(resources_of(&Value::from_json(broken).unwrap()).is_empty(), "{broken}");
    }
}

#[test]
fn kinds_come_and_go() {
    let mut discovery = (*Discovery::kubernetes()).clone();
    let before = discovery.iter().count();
    for resource in resources_of(&definition(r#"{"name":"v1","served":true},{"name":"v2","served":true}"#)) {
        discovery.add(resource.clone());
        discovery.add(resource);
    }
    assert_eq!(discovery.iter().count(), before + 2);
    assert!(discovery.find("example.com/v2", "Box").is_some());
    discovery.remove("example.com", "boxen");
    assert_eq!(discovery.iter().count(), before);
    assert!(discovery.find("example.com/v2", "Box").is_none());
    assert!(discovery.find("openreports.io/v1alpha1", "Report").is_some());
}

#[test]
fn an_unknown_version_of_a_known_kind_keeps_its_scope() {
    let discovery = Discovery::kubernetes();
    let guessed = discovery.guess("rbac.authorization.k8s.io/v1beta1", "ClusterRole");
    assert_eq!((guessed.version.as_str(), guessed.namespaced), ("v1beta1", false));
    assert_eq!(discovery.guess("example.com/v1", "Gateway").plural, "gateways");
}

#[test]
fn documents_list_what_is_served() {
    let discovery = Discovery::kubernetes();
    let all = groups(&discovery);
    assert_eq!(all.get("groups").unwrap().as_array().unwrap()[0].str_at(&["name"]), Some("apps"));
    let autoscaling = group(&discovery, "autoscaling").unwrap();
    assert_eq!(
        autoscaling.to_json(),
        r#"{"apiVersion":"v1","kind":"APIGroup","name":"autoscaling","preferredVersion":{"groupVersion":"autoscaling/v2","version":"v2"},"versions":[{"groupVersion":"autoscaling/v2","version":"v2"},{"groupVersion":"autoscaling/v1","version":"v1"}]}"#
    );
    let policy = resources(&discovery, "policy", "v1").unwrap();
    assert_eq!(
        policy.get("resources").unwrap().to_json(),
        r#"[{"kind":"PodDisruptionBudget","name":"poddisruptionbudgets","namespaced":true,"shortNames":["pdb"],"singularName":"poddisruptionbudget","verbs":["create","delete","deletecollection","get","list","patch","update","watch"]},{"kind":"PodDisruptionBudget","name":"poddisruptionbudgets/status","namespaced":true,"singularName":"","verbs":["get","patch","update"]}]"#
    );
    assert!(group(&discovery, "nope").is_none() && resources(&discovery, "policy", "v9").is_none());
}

#[test]
fn the_versions_of_a_group_come_in_order_of_preference_whatever_its_kinds_have() {
    let mut discovery = Discovery::default();
    for (version, kind) in [("v1beta1", "A"), ("v2", "B"), ("v1", "B")] {
        discovery.add(Resource::guess(&format!("example.com/{version}"), kind));
    }
    let shown = group(&discovery, "example.com").unwrap();
    let versions = shown.get("versions").and_then(Value::as_array).unwrap();
    let names: Vec<_> = versions.iter().filter_map(|version| version.str_at(&["version"])).collect();
    assert_eq!(names, ["v2", "v1", "v1beta1"]);
}

#[test]
fn a_pattern_of_a_version_means_the_preferred_one_of_each_group() {
    let discovery = Discovery::kubernetes();
    let found = |pattern: &str, kind: &str| -> Vec<String> {
        discovery.matching(pattern, kind).map(|resource| resource.api_version().to_string()).collect()
    };
    assert_eq!(found("*", "Pod"), ["v1"]);
    assert_eq!(found("apps/*", "Deployment"), ["apps/v1"]);
    assert_eq!(found("*", "Event"), ["v1", "events.k8s.io/v1"]);
    assert_eq!(found("v1", "Event"), ["v1"]);
    assert_eq!(found("*", "Nothing"), [""; 0]);
}
