//! Replacing objects.

use ephor_cluster::{ErrorKind, WriteOptions, object};
use ephor_expr::Value;

use super::Case;
use super::definitions::define;
use super::test_env::{TestEnv, deployment, refused, version};

pub(super) const CASES: &[Case] = &[
    ("who read an old version is told", conflicts),
    ("a write that changes nothing is none", no_change),
    ("status and the rest are written apart", status),
    ("what the server owns stays", owned),
    ("custom resources need a version", unconditional),
];

const MODIFIED: &str = r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#;

fn with(object: &Value, key: &str, value: impl Into<Value>) -> Value {
    let mut changed = object.clone();
    changed.as_object_mut().unwrap().insert(key, value);
    changed
}

fn data(text: &str) -> Value {
    Value::from([("k", Value::from(text))])
}

fn conflicts(env: &TestEnv) {
    let first = env.config_map("a");
    let second = env.update(with(&first, "data", data("w"))).unwrap();
    assert_ne!(version(&first), version(&second));
    refused(env, env.update(with(&first, "data", data("x"))), ErrorKind::Conflict, 409, MODIFIED);
    let mut unconditional = with(&second, "data", data("y"));
    object::unset(&mut unconditional, "resourceVersion");
    let third = env.update(unconditional).unwrap();
    assert_eq!(third.str_at(&["data", "k"]), Some("y"));
    let mut other = third.clone();
    object::set(&mut other, "uid", "00000000-0000-0000-0000-000000000000");
    let words = format!(
        r#"Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/NS/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 00000000-0000-0000-0000-000000000000, UID in object meta: {}"#,
        object::text(&third, "uid")
    );
    refused(env, env.update(other), ErrorKind::Conflict, 409, &words);
    let mut gone = third;
    object::set(&mut gone, "name", "x");
    object::unset(&mut gone, "uid");
    object::unset(&mut gone, "resourceVersion");
    refused(env, env.update(gone), ErrorKind::NotFound, 404, r#"configmaps "x" not found"#);
}

fn no_change(env: &TestEnv) {
    let stored = env.config_map("a");
    assert_eq!(env.update(stored.clone()), Ok(stored));
}

fn status(env: &TestEnv) {
    let stored = env.create(&deployment("d"));
    let deployments = env.resource("apps/v1", "Deployment");
    let generation = |object: &Value| object.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap();
    let count = |object: &Value| object.at(&["status", "unavailableReplicas"]).and_then(Value::as_i64);
    let status = Value::from([("replicas", Value::from(0)), ("unavailableReplicas", Value::from(7))]);
    let mut both = with(&stored, "status", status.clone());
    object::unset(&mut both, "resourceVersion");
    both.as_object_mut().unwrap().insert("spec", with(stored.get("spec").unwrap(), "paused", true));

    // The controller writes the status too, so what it shows is compared in answers only.
    let written = env.update(both.clone()).unwrap();
    assert_ne!(count(&written), Some(7));
    assert_eq!(written.at(&["spec", "paused"]), Some(&Value::Bool(true)));
    assert_eq!(generation(&written), generation(&stored) + 1);

    let mut unpaused = both;
    unpaused.as_object_mut().unwrap().insert("spec", stored.get("spec").unwrap().clone());
    let written = env.cluster.update_status(&deployments, unpaused, &WriteOptions::default()).unwrap();
    assert_eq!(count(&written), Some(7));
    assert_eq!(written.at(&["spec", "paused"]), Some(&Value::Bool(true)));
    assert_eq!(generation(&written), generation(&stored) + 1);

    let stored = env.config_map("a");
    let result = env.cluster.update_status(&env.resource("v1", "ConfigMap"), stored, &WriteOptions::default());
    refused(env, result, ErrorKind::NotFound, 404, "the server could not find the requested resource");
}

fn owned(env: &TestEnv) {
    let stored = env.config_map("a");
    let mut changed = with(&stored, "data", data("w"));
    object::set(&mut changed, "creationTimestamp", "1999-01-01T00:00:00Z");
    object::set(&mut changed, "generation", 77);
    let written = env.update(changed).unwrap();
    for key in ["creationTimestamp", "uid"] {
        assert_eq!(object::text(&written, key), object::text(&stored, key), "{key}");
    }
    let namespace = env.cluster.get(&env.resource("v1", "Namespace"), None, &env.namespace).unwrap();
    let mut unlabelled = namespace.clone();
    object::unset(&mut unlabelled, "labels");
    let written = env.update(unlabelled).unwrap();
    let label = written.str_at(&["metadata", "labels", "kubernetes.io/metadata.name"]);
    assert_eq!(label, Some(env.namespace.as_str()));
}

fn unconditional(env: &TestEnv) {
    let group = define(env, "Namespaced");
    let text = format!(
        r#"{{"apiVersion":"{group}/v1","kind":"Box","metadata":{{"name":"a","namespace":"NS"}},"spec":{{"size":1}}}}"#
    );
    let stored = env.create(&text);
    assert_eq!(stored.at(&["metadata", "generation"]).and_then(Value::as_i64), Some(1));
    let mut blind = stored.clone();
    object::unset(&mut blind, "resourceVersion");
    let words = format!(
        r#"boxes.{group} "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"#
    );
    refused(env, env.update(blind), ErrorKind::Invalid, 422, &words);
    let mut changed = stored.clone();
    changed.as_object_mut().unwrap().insert("spec", Value::from([("size", Value::from(2))]));
    let written = env.update(changed).unwrap();
    assert_eq!(written.at(&["metadata", "generation"]).and_then(Value::as_i64), Some(2));
}
