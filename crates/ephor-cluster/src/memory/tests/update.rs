//! Updating and patching.

use super::*;
use crate::error::ErrorKind;
use crate::write::PatchKind;

fn with(mut object: Value, keys: &[&str], value: impl Into<Value>) -> Value {
    let mut at = &mut object;
    for key in keys {
        if at.is_null() {
            *at = Value::object(ephor_expr::Map::new());
        }
        at = at.as_object_mut().unwrap().entry(key);
    }
    *at = value.into();
    object
}

#[test]
fn an_update_from_an_old_version_conflicts() {
    let cluster = strict();
    let first = create(&cluster, &config_map("a")).unwrap();
    let second = update(&cluster, with(first.clone(), &["data", "k"], "1")).unwrap();
    assert_ne!(object::text(&first, "resourceVersion"), object::text(&second, "resourceVersion"));
    let error = update(&cluster, with(first.clone(), &["data", "k"], "2")).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (
            ErrorKind::Conflict,
            r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#
        )
    );
    let unconditional = with(with(first, &["metadata", "resourceVersion"], ""), &["data", "k"], "3");
    assert_eq!(update(&cluster, unconditional).unwrap().str_at(&["data", "k"]), Some("3"));
}

#[test]
fn an_update_of_another_object_of_that_name_conflicts() {
    let cluster = strict();
    let stored = create(&cluster, &config_map("a")).unwrap();
    let uid = object::text(&stored, "uid");
    let error = update(&cluster, with(stored.clone(), &["metadata", "uid"], "other")).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            r#"Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: {uid}"#
        )
    );
    let error = patch(&cluster, &stored, r#"{"metadata":{"uid":"other"}}"#).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (422, r#"ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable"#)
    );
}

#[test]
fn a_missing_object_cannot_be_updated() {
    let cluster = strict();
    let error = update(&cluster, json(&config_map("a"))).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, r#"configmaps "a" not found"#));
}

#[test]
fn an_update_that_changes_nothing_leaves_the_version() {
    let cluster = strict();
    let stored = create(&cluster, &deployment("a")).unwrap();
    let before = cluster.revision();
    // What clients cannot change does not count as a change.
    for keys in [["status"].as_slice(), &["metadata", "generation"], &["metadata", "creationTimestamp"]] {
        assert_eq!(update(&cluster, with(stored.clone(), keys, "x")).unwrap(), stored, "{keys:?}");
    }
    assert_eq!(patch(&cluster, &stored, r#"{"spec":{"replicas":1}}"#).unwrap(), stored);
    assert_eq!(cluster.revision(), before);
}

#[test]
fn the_generation_counts_changes_of_substance() {
    let cluster = strict();
    create(&cluster, definition()).unwrap();
    for text in [deployment("a"), box_named("a")] {
        let stored = create(&cluster, &text).unwrap();
        let generation = |object: &Value| object.at(&["metadata", "generation"]).and_then(Value::as_i64);
        let relabelled = patch(&cluster, &stored, r#"{"metadata":{"labels":{"a":"b"}}}"#).unwrap();
        assert_eq!(generation(&relabelled), Some(1));
        let changed = patch(&cluster, &stored, r#"{"spec":{"n":2}}"#).unwrap();
        assert_eq!(generation(&changed), Some(2));
        let options = WriteOptions::default();
        let reported =
            cluster.update_status(&resource_of(&cluster, &stored), with(changed, &["status", "n"], 1), &options);
        assert_eq!(generation(&reported.unwrap()), Some(2));
    }
}

#[test]
fn status_and_the_rest_are_written_apart() {
    let cluster = strict();
    let stored = create(&cluster, &deployment("a")).unwrap();
    let resource = resource_of(&cluster, &stored);
    let both = with(with(stored, &["spec", "replicas"], 5), &["status", "replicas"], 5);
    let reported = cluster.update_status(&resource, both.clone(), &WriteOptions::default()).unwrap();
    assert_eq!(reported.at(&["spec", "replicas"]), Some(&Value::from(1)));
    assert_eq!(reported.at(&["status", "replicas"]), Some(&Value::from(5)));
    let mut wiped = with(reported, &["spec", "replicas"], 6);
    wiped.as_object_mut().unwrap().remove("status");
    let updated = update(&cluster, wiped).unwrap();
    assert_eq!(updated.at(&["spec", "replicas"]), Some(&Value::from(6)));
    assert_eq!(updated.at(&["status", "replicas"]), Some(&Value::from(5)));
    let plain = create(&cluster, &config_map("a")).unwrap();
    let error = cluster.update_status(&resource_of(&cluster, &plain), plain, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "the server could not find the requested resource");
}

#[test]
fn some_kinds_want_a_version_with_every_update() {
    let cluster = strict();
    let crd = create(&cluster, definition()).unwrap();
    let custom = create(&cluster, &box_named("a")).unwrap();
    for stored in [crd, custom] {
        let error = update(&cluster, with(stored, &["metadata", "resourceVersion"], "")).unwrap_err();
        assert_eq!(error.code(), 422);
        let want = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
        assert!(error.to_string().ends_with(want), "{error}");
    }
}

#[test]
fn merge_patches_check_names_and_versions() {
    let cluster = strict();
    let stored = create(&cluster, &config_map("a")).unwrap();
    let changed = patch(&cluster, &stored, r#"{"data":{"k":"v","l":"w"}}"#).unwrap();
    let version = object::text(&changed, "resourceVersion");
    for (document, code) in [
        (r#"{"metadata":{"name":"b"}}"#, 400),
        (r#"{"metadata":{"namespace":"kube-system"}}"#, 400),
        (r#"{"kind":"Secret"}"#, 400),
        (r#"{"metadata":{"resourceVersion":"1"}}"#, 409),
        (r#"{"metadata":{"labels":{"-":"x"}}}"#, 422),
        ("[]", 400),
    ] {
        assert_eq!(patch(&cluster, &stored, document).unwrap_err().code(), code, "{document}");
    }
    let pinned = format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"data":{{"k":null}}}}"#);
    assert_eq!(patch(&cluster, &stored, &pinned).unwrap().get("data").unwrap().to_json(), r#"{"l":"w"}"#);
}

#[test]
fn every_language_of_patches_is_understood() {
    let cluster = strict();
    create(&cluster, definition()).unwrap();
    let stored = create(&cluster, &config_map("a")).unwrap();
    let custom = create(&cluster, &box_named("a")).unwrap();
    let attempt = |stored: &Value, kind, document: &str| {
        let patch = Patch { kind, document: json(document) };
        let options = WriteOptions { field_manager: "test".into(), ..WriteOptions::default() };
        let patched =
            cluster.patch(&resource_of(&cluster, stored), namespace_of(stored), object::name(stored), &patch, &options);
        patched.map(|object| object.get("data").map(Value::to_json).unwrap_or_default()).map_err(|e| e.code())
    };
    for (kind, document, want) in [
        (PatchKind::Merge, r#"{"data":{"a":"1"}}"#, Ok(r#"{"a":"1"}"#)),
        (PatchKind::Json, r#"[{"op":"add","path":"/data/b","value":"2"}]"#, Ok(r#"{"a":"1","b":"2"}"#)),
        (PatchKind::Json, r#"[{"op":"remove","path":"/data/c"}]"#, Err(422)),
        (PatchKind::Json, "{}", Err(400)),
        (PatchKind::Strategic, r#"{"data":{"$patch":"replace","c":"3"}}"#, Ok(r#"{"c":"3"}"#)),
        (PatchKind::Apply, r#"{"data":{"d":"4"}}"#, Ok(r#"{"c":"3","d":"4"}"#)),
        (PatchKind::Apply, r#"{"data":{"c":"9"}}"#, Err(409)),
        (PatchKind::Apply, "{}", Ok(r#"{"c":"3"}"#)),
    ] {
        assert_eq!(attempt(&stored, kind, document), want.map(str::to_owned), "{document}");
    }
    assert_eq!(attempt(&custom, PatchKind::Strategic, "{}"), Err(415));
    assert_eq!(attempt(&custom, PatchKind::Apply, r#"{"spec":{"colour":"red"}}"#), Ok(String::new()));
}

#[test]
fn a_dry_run_shows_the_change_and_stores_nothing() {
    let cluster = strict();
    let stored = create(&cluster, &deployment("a")).unwrap();
    let resource = resource_of(&cluster, &stored);
    let changed = with(stored.clone(), &["spec", "replicas"], 2);
    let shown = cluster.update(&resource, changed, &WriteOptions::dry_run()).unwrap();
    assert_eq!(shown.at(&["metadata", "generation"]), Some(&Value::from(2)));
    assert_eq!(present(&cluster, &stored), Some(stored));
}

#[test]
fn versions_of_a_kind_show_the_same_objects() {
    let cluster = strict();
    create(&cluster, definition()).unwrap();
    let stored = create(&cluster, &box_named("a")).unwrap();
    let older = cluster.get(&resource(&cluster, "example.com/v1beta1", "Box"), Some("default"), "a").unwrap();
    assert_eq!(older.str_at(&["apiVersion"]), Some("example.com/v1beta1"));
    assert_eq!(older.get("metadata"), stored.get("metadata"));
    assert_eq!(update(&cluster, older.clone()).unwrap(), older);
    let grown = update(&cluster, with(older, &["spec", "size"], 2)).unwrap();
    assert_eq!(grown.str_at(&["apiVersion"]), Some("example.com/v1beta1"));
    let seen = present(&cluster, &stored).unwrap();
    assert_eq!(
        (seen.str_at(&["apiVersion"]), seen.at(&["spec", "size"])),
        (Some("example.com/v1"), Some(&Value::from(2)))
    );
}

#[test]
fn the_name_label_stays_on_a_namespace() {
    let cluster = strict();
    let stored = create(&cluster, &namespace("a")).unwrap();
    let patched = patch(&cluster, &stored, r#"{"metadata":{"labels":null},"spec":{"finalizers":[]}}"#).unwrap();
    assert_eq!(patched, stored);
}
