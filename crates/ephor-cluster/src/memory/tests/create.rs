//! Creating.

use super::*;
use crate::error::ErrorKind;

#[test]
fn a_new_object_gets_its_system_fields() {
    let cluster = strict();
    cluster.set_now("2026-11-21T10:00:00Z");
    let sent = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default",
        "uid":"mine","creationTimestamp":null,"deletionTimestamp":"2020-01-01T00:00:00Z","generation":7,"labels":null},
        "spec":{"replicas":1},"status":{"replicas":9}}"#;
    let stored = create(&cluster, sent).unwrap();
    assert_eq!(stored.str_at(&["metadata", "creationTimestamp"]), Some("2026-11-21T10:00:00Z"));
    assert_eq!(stored.at(&["metadata", "generation"]), Some(&Value::from(1)));
    assert_eq!(object::text(&stored, "resourceVersion"), cluster.revision().to_string());
    assert_eq!(object::text(&stored, "uid").len(), 36);
    for gone in [["metadata", "deletionTimestamp"].as_slice(), &["metadata", "labels"], &["status"]] {
        assert_eq!(stored.at(gone), None, "{gone:?}");
    }
    assert_eq!(present(&cluster, &stored), Some(stored));
}

#[test]
fn what_differs_from_kind_to_kind() {
    let cluster = strict();
    let stored = create(&cluster, &namespace("prod")).unwrap();
    assert_eq!(stored.str_at(&["metadata", "labels", "kubernetes.io/metadata.name"]), Some("prod"));
    assert_eq!(stored.get("spec").unwrap().to_json(), r#"{"finalizers":["kubernetes"]}"#);
    assert_eq!(stored.str_at(&["status", "phase"]), Some("Active"));
    assert_eq!(stored.at(&["metadata", "generation"]), None);
    assert_eq!(create(&cluster, &config_map("a")).unwrap().at(&["metadata", "generation"]), None);
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"prod"}}"#;
    assert_eq!(create(&cluster, pod).unwrap().str_at(&["status", "phase"]), Some("Pending"));
}

#[test]
fn a_strict_cluster_begins_with_the_usual_namespaces() {
    let begun = |cluster: &MemoryCluster| {
        let list = list(cluster, "v1", "Namespace", &ListQuery::all()).unwrap();
        list.items.iter().map(|o| object::name(o).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(begun(&strict()), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    assert!(begun(&offline()).is_empty());
}

#[test]
fn refusals() {
    let cluster = strict();
    create(&cluster, &config_map("taken")).unwrap();
    let with = |metadata: &str| format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{metadata}}}"#);
    for (object, kind, message) in [
        (config_map("taken"), ErrorKind::AlreadyExists, r#"configmaps "taken" already exists"#),
        (with(r#"{"name":"a","namespace":"nowhere"}"#), ErrorKind::NotFound, r#"namespaces "nowhere" not found"#),
        (with(r#"{"name":"a"}"#), ErrorKind::Invalid, "an empty namespace may not be set during creation"),
        (
            with(r#"{"namespace":"default"}"#),
            ErrorKind::Invalid,
            r#"ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required"#,
        ),
        (
            with(r#"{"name":"a","namespace":"default","resourceVersion":"1"}"#),
            ErrorKind::Invalid,
            "resourceVersion should not be set on objects to be created",
        ),
        (
            with(
                r#"{"name":"a","namespace":"default","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p"}]}"#,
            ),
            ErrorKind::Invalid,
            r#"ConfigMap "a" is invalid: metadata.ownerReferences.uid: Invalid value: "": must not be empty"#,
        ),
        (
            with(r#"{"name":"a","namespace":"default","labels":{"a":1}}"#),
            ErrorKind::Invalid,
            r#"ConfigMap "a" is invalid: metadata.labels: Invalid value: 1: must be a string"#,
        ),
        (with(r#""x""#), ErrorKind::Invalid, "metadata is no object"),
        (
            r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","namespace":"default"}}"#.to_owned(),
            ErrorKind::Invalid,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ] {
        let error = create(&cluster, &object).expect_err(&object);
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, message), "{object}");
    }
    let error = create(&cluster, &config_map("Upper_Case")).unwrap_err();
    assert!(error.to_string().starts_with(r#"ConfigMap "Upper_Case" is invalid: metadata.name: Invalid value: "Upper_Case": a lowercase RFC 1123 subdomain"#));
}

#[test]
fn an_object_must_be_of_the_kind_that_is_asked_for() {
    let cluster = strict();
    let config_maps = resource(&cluster, "v1", "ConfigMap");
    let deployments = resource(&cluster, "apps/v1", "Deployment");
    for (resource, object, message) in [
        (&config_maps, json(&deployment("a")), r#"Deployment in version "apps/v1" cannot be handled as a ConfigMap"#),
        (
            &deployments,
            json(r#"{"apiVersion":"apps/v2","kind":"Deployment"}"#),
            "the API version in the data (apps/v2) does not match the expected API version (apps/v1)",
        ),
        (&config_maps, json("[]"), "the body is no object but array"),
    ] {
        let error = cluster.create(resource, object, &WriteOptions::default()).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (400, message));
    }
    let bare = json(r#"{"metadata":{"name":"a","namespace":"default"}}"#);
    let stored = cluster.create(&config_maps, bare, &WriteOptions::default()).unwrap();
    assert_eq!((stored.str_at(&["apiVersion"]), stored.str_at(&["kind"])), (Some("v1"), Some("ConfigMap")));
}

#[test]
fn names_are_generated_on_demand() {
    let cluster = strict();
    let object = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"job-","namespace":"default"}}"#;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let name = object::name(&create(&cluster, object).unwrap()).to_owned();
        assert!(name.starts_with("job-") && name.len() == 9, "{name}");
        assert!(seen.insert(name));
    }
    let long = object.replace("job-", &"x".repeat(80));
    assert_eq!(object::name(&create(&cluster, &long).unwrap()).len(), 63);
}

#[test]
fn a_dry_run_predicts_and_stores_nothing() {
    let cluster = strict();
    let object = json(&config_map("a"));
    let before = cluster.revision();
    let predicted = cluster.create(&resource(&cluster, "v1", "ConfigMap"), object, &WriteOptions::dry_run()).unwrap();
    assert_eq!(object::text(&predicted, "resourceVersion"), "");
    assert_eq!((present(&cluster, &predicted), cluster.revision()), (None, before));
    let stored = create(&cluster, &config_map("a")).unwrap();
    assert_eq!(object::text(&stored, "uid"), object::text(&predicted, "uid"));
    let again =
        cluster.create(&resource(&cluster, "v1", "ConfigMap"), json(&config_map("a")), &WriteOptions::dry_run());
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn a_lenient_cluster_takes_what_it_does_not_know() {
    let cluster = offline();
    let stored =
        create(&cluster, r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}"#).unwrap();
    assert_eq!(object::namespace(&stored), "default");
    assert!(cluster.discovery().unwrap().find_plural("example.com", "v1", "widgets").is_some());
    assert_eq!(present(&cluster, &stored), Some(stored));
    assert_eq!(strict().resolve("example.com/v1", "Widget").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn reviews_are_answered_and_not_kept() {
    let cluster = strict();
    let before = cluster.revision();
    let review = r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"ann"}}"#;
    let answer = create(&cluster, review).unwrap();
    assert_eq!(answer.at(&["status", "allowed"]), Some(&Value::from(true)));
    assert_eq!(answer.str_at(&["spec", "user"]), Some("ann"));
    assert_eq!(cluster.revision(), before);
    let reviews = resource(&cluster, "authorization.k8s.io/v1", "SubjectAccessReview");
    assert_eq!(cluster.list(&reviews, &ListQuery::all()).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn the_same_calls_give_the_same_cluster() {
    let run = || {
        let cluster = strict();
        for name in ["a", "b", "c"] {
            create(&cluster, &config_map(name)).unwrap();
        }
        cluster.objects()
    };
    assert_eq!(run(), run());
}
