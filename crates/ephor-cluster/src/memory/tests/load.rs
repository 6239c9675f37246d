//! Taking in objects as they are.

use super::*;
use crate::error::ErrorKind;

#[test]
fn loaded_objects_stay_as_they_are() {
    let cluster = offline();
    let objects = [
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"creationTimestamp":null,"name":"A b","namespace":"nowhere"}}"#,
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x","uid":"u","resourceVersion":"77"},"status":{"phase":"Odd"}}"#,
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"x"},"status":{"phase":"Running"}}"#,
    ]
    .map(json);
    assert!(cluster.load(objects.clone()).is_empty());
    for object in &objects {
        assert_eq!(present(&cluster, object).as_ref(), Some(object));
    }
    assert_eq!(cluster.revision(), 78);
    let changed = patch(&cluster, &objects[1], r#"{"metadata":{"labels":{"a":"b"}}}"#).unwrap();
    assert_eq!((object::text(&changed, "uid"), object::text(&changed, "resourceVersion")), ("u", "79"));
}

#[test]
fn definitions_count_wherever_they_stand() {
    let cluster = offline();
    let cluster_scoped =
        definition().replace("Namespaced", "Cluster").replace(r#""plural":"boxes""#, r#""plural":"boxen""#);
    let object = json(r#"{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"b"}}"#);
    assert!(cluster.load([object.clone(), json(&cluster_scoped)]).is_empty());
    assert_eq!(cluster.resolve("example.com/v1", "Box").unwrap().plural, "boxen");
    assert_eq!(present(&cluster, &object), Some(object));
}

#[test]
fn objects_without_namespace_go_to_default() {
    let cluster = offline();
    assert!(cluster.load([json(r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"}}"#)]).is_empty());
    let found = list(&cluster, "apps/v1", "Deployment", &ListQuery::in_namespace("default")).unwrap();
    assert_eq!(names(&found.items), ["d"]);
    assert_eq!(object::namespace(&found.items[0]), "default");
}

#[test]
fn what_cannot_be_loaded_comes_back() {
    let cluster = offline();
    let bad = [
        r#"{"kind":"ConfigMap","metadata":{"name":"a"}}"#,
        r#"{"apiVersion":"v1","metadata":{"name":"a"}}"#,
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}"#,
        r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"a"}}"#,
        "[]",
    ]
    .map(json);
    let unloaded = cluster.load(bad.clone());
    assert_eq!(unloaded.into_iter().map(|u| u.object).collect::<Vec<_>>(), bad);
    assert!(cluster.objects().is_empty());
    let widget = json(r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}"#);
    assert_eq!(strict().load([widget])[0].error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_version_that_is_no_number_or_absurd_does_not_move_the_clock() {
    let cluster = offline();
    for version in ["abc", "18446744073709551615", "9007199254740992", "-1"] {
        let text = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","namespace":"x","resourceVersion":"{version}"}}}}"#
        );
        assert!(cluster.load([json(&text)]).is_empty());
    }
    assert_eq!(cluster.revision(), 5);
}

#[test]
fn loading_again_replaces() {
    let cluster = offline();
    let mut watch = watch(&cluster, "v1", "ConfigMap", "");
    for data in ["1", "2"] {
        let text =
            format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{"k":"{data}"}}}}"#);
        assert!(cluster.load([json(&text)]).is_empty());
    }
    assert_eq!(sketch(&events(&mut *watch)), "+a ~a");
    assert_eq!(cluster.objects()[0].str_at(&["data", "k"]), Some("2"));
}

#[test]
fn another_version_of_a_known_kind_is_the_same_kind() {
    let cluster = offline();
    let old = json(r#"{"apiVersion":"apps/v1beta1","kind":"Deployment","metadata":{"name":"d","namespace":"x"}}"#);
    assert!(cluster.load([old.clone()]).is_empty());
    let seen = cluster.get(&resource(&cluster, "apps/v1", "Deployment"), Some("x"), "d").unwrap();
    assert_eq!(seen.str_at(&["apiVersion"]), Some("apps/v1"));
    assert_eq!(present(&cluster, &old), Some(old));
}
