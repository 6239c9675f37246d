//! Namespaces and definitions, which take their contents with them.

use super::*;
use crate::error::ErrorKind;

fn in_namespace(namespace: &str, name: &str, finalizers: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"{namespace}","finalizers":[{finalizers}]}}}}"#
    )
}

#[test]
fn a_namespace_takes_its_contents_with_it() {
    let cluster = strict();
    let stored = create(&cluster, &namespace("a")).unwrap();
    let inside = create(&cluster, &in_namespace("a", "x", "")).unwrap();
    let outside = create(&cluster, &in_namespace("default", "x", "")).unwrap();
    let mut watch = watch(&cluster, "v1", "Namespace", object::text(&stored, "resourceVersion"));
    assert!(delete(&cluster, &stored).unwrap().is_done());
    assert_eq!((present(&cluster, &stored), present(&cluster, &inside)), (None, None));
    assert_eq!(present(&cluster, &outside), Some(outside));
    let events = events(&mut *watch);
    assert_eq!(sketch(&events), "~a -a");
    assert_eq!(events[0].object().unwrap().str_at(&["status", "phase"]), Some("Terminating"));
}

#[test]
fn a_terminating_namespace_waits_for_its_contents_and_takes_nothing_new() {
    let cluster = strict();
    let stored = create(&cluster, &namespace("a")).unwrap();
    let stuck = create(&cluster, &in_namespace("a", "stuck", r#""x/a""#)).unwrap();
    let loose = create(&cluster, &in_namespace("a", "loose", "")).unwrap();
    assert!(!delete(&cluster, &stored).unwrap().is_done());
    assert_eq!(present(&cluster, &loose), None);
    assert!(object::is_deleting(&present(&cluster, &stuck).unwrap()));
    let error = create(&cluster, &in_namespace("a", "new", "")).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (
            ErrorKind::Forbidden,
            r#"configmaps "new" is forbidden: unable to create new content in namespace a because it is being terminated"#
        )
    );
    patch(&cluster, &stuck, r#"{"metadata":{"finalizers":[]}}"#).unwrap();
    assert_eq!((present(&cluster, &stuck), present(&cluster, &stored)), (None, None));
    create(&cluster, &namespace("a")).unwrap();
}

#[test]
fn finalizers_hold_an_empty_namespace_too() {
    let cluster = strict();
    let text = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","finalizers":["x/a"]}}"#;
    let stored = create(&cluster, text).unwrap();
    assert!(!delete(&cluster, &stored).unwrap().is_done());
    patch(&cluster, &stored, r#"{"metadata":{"finalizers":[]}}"#).unwrap();
    assert_eq!(present(&cluster, &stored), None);
}

#[test]
fn some_namespaces_stay() {
    let cluster = strict();
    let error = delete(&cluster, &json(&namespace("kube-system"))).unwrap_err();
    assert_eq!(error.to_string(), r#"namespaces "kube-system" is forbidden: this namespace may not be deleted"#);
}

#[test]
fn a_definition_brings_and_takes_its_kind() {
    let cluster = strict();
    assert_eq!(cluster.resolve("example.com/v1", "Box").unwrap_err().kind(), ErrorKind::NotFound);
    let crd = create(&cluster, definition()).unwrap();
    assert_eq!(crd.at(&["status", "conditions"]).unwrap().as_array().unwrap().len(), 2);
    assert_eq!(crd.at(&["status", "storedVersions"]).unwrap().to_json(), r#"["v1"]"#);
    let boxes = resource(&cluster, "example.com/v1", "Box");
    let stored = create(&cluster, &box_named("a")).unwrap();
    assert!(delete(&cluster, &crd).unwrap().is_done());
    assert_eq!(cluster.resolve("example.com/v1", "Box").unwrap_err().kind(), ErrorKind::NotFound);
    for outcome in [
        cluster.get(&boxes, Some("default"), "a").map(drop),
        cluster.list(&boxes, &ListQuery::all()).map(drop),
        cluster.create(&boxes, stored, &WriteOptions::default()).map(drop),
    ] {
        assert_eq!(outcome.unwrap_err().to_string(), "the server could not find the requested resource");
    }
}

#[test]
fn a_definition_waits_for_the_objects_of_its_kind() {
    let cluster = strict();
    let crd = create(&cluster, definition()).unwrap();
    let stored = create(&cluster, &box_named("a")).unwrap();
    let stuck = patch(&cluster, &stored, r#"{"metadata":{"finalizers":["x/a"]}}"#).unwrap();
    assert!(!delete(&cluster, &crd).unwrap().is_done());
    assert_eq!(create(&cluster, &box_named("b")).unwrap_err().kind(), ErrorKind::Unsupported);
    patch(&cluster, &stuck, r#"{"metadata":{"finalizers":null}}"#).unwrap();
    assert_eq!(present(&cluster, &crd), None);
    assert!(cluster.resolve("example.com/v1", "Box").is_err());
}

#[test]
fn a_changed_definition_changes_its_kind() {
    let cluster = strict();
    let crd = create(&cluster, definition()).unwrap();
    patch(&cluster, &crd, r#"{"spec":{"versions":[{"name":"v2","served":true,"storage":true}]}}"#).unwrap();
    assert!(cluster.resolve("example.com/v1", "Box").is_err());
    assert!(cluster.resolve("example.com/v2", "Box").is_ok());
}

#[test]
fn a_definition_must_define_something_of_its_own() {
    let cluster = strict();
    for (from, to, wrong) in [
        ("boxes.example.com", "other.example.com", "metadata.name: Invalid value"),
        (r#""group":"example.com","#, "", "spec.group: Required value"),
        ("Namespaced", "Galactic", "spec.scope: Invalid value"),
        (r#""served":true"#, r#""served":false"#, "spec.versions: Required value"),
    ] {
        let error = create(&cluster, &definition().replace(from, to)).unwrap_err();
        assert_eq!(error.code(), 422);
        assert!(error.to_string().contains(wrong), "{error}");
    }
    let thief = definition().replace("example.com", "apps").replace("boxes", "deployments");
    assert!(create(&cluster, &thief).unwrap_err().to_string().contains("is a kind of Kubernetes itself"));
}
