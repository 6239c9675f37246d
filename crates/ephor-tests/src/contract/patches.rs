//! Changing objects.

use ephor_cluster::{ErrorKind, Patch, WriteOptions, object};
use ephor_expr::Value;

use super::Case;
use super::definitions::define;
use super::test_env::{TestEnv, deployment, refused, version};

pub(super) const CASES: &[Case] = &[
    ("a merge patch merges", merge),
    ("a patch moves no object", identity),
    ("a JSON patch does as it says", json),
    ("a strategic patch merges lists by key", strategic),
    ("nobody knows the keys of custom resources", strategic_custom),
    ("applying creates, changes and conflicts", apply),
    ("a patch of the status changes nothing else", status),
];

fn merge(env: &TestEnv) {
    let stored = env.config_map("a");
    let patched = env.merge(&stored, r#"{"data":{"k":null,"l":"w"},"metadata":{"labels":{"x":"y"}}}"#).unwrap();
    assert_eq!(patched.get("data").unwrap().to_json(), r#"{"l":"w"}"#);
    assert_eq!(patched.get("metadata").unwrap().get("labels").unwrap().to_json(), r#"{"contract":"","x":"y"}"#);
    assert_eq!(env.merge(&stored, r#"{"data":{"l":"w"}}"#).map(|o| version(&o)), Ok(version(&patched)), "no change");
    let stale = format!(r#"{{"metadata":{{"resourceVersion":"{}"}},"data":{{"l":"x"}}}}"#, version(&stored));
    let words = r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#;
    refused(env, env.merge(&stored, &stale), ErrorKind::Conflict, 409, words);
    let mut missing = stored;
    object::set(&mut missing, "name", "x");
    refused(env, env.merge(&missing, "{}"), ErrorKind::NotFound, 404, r#"configmaps "x" not found"#);
}

fn identity(env: &TestEnv) {
    let stored = env.config_map("a");
    let words = "the name of the object (b) does not match the name on the URL (a)";
    refused(env, env.merge(&stored, r#"{"metadata":{"name":"b"}}"#), ErrorKind::Invalid, 400, words);
    let words = "the namespace of the provided object does not match the namespace sent on the request";
    refused(env, env.merge(&stored, r#"{"metadata":{"namespace":"b"}}"#), ErrorKind::Invalid, 400, words);
    let words = r#"ConfigMap "a" is invalid: metadata.uid: Invalid value: "b": field is immutable"#;
    refused(env, env.merge(&stored, r#"{"metadata":{"uid":"b"}}"#), ErrorKind::Invalid, 422, words);
}

fn json(env: &TestEnv) {
    let stored = env.config_map("a");
    let patch = |text: &str| env.patch(&stored, &Patch::json(env.json(text)));
    let patched = patch(r#"[{"op":"add","path":"/data/l","value":"w"},{"op":"remove","path":"/data/k"}]"#).unwrap();
    assert_eq!(patched.get("data").unwrap().to_json(), r#"{"l":"w"}"#);
    let error = patch(r#"[{"op":"test","path":"/data/l","value":"other"}]"#).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, 422), "{error}");
    let error = patch(r#"[{"op":"remove","path":"/data/nothing"}]"#).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, 422), "{error}");
}

fn strategic(env: &TestEnv) {
    let stored = env.create(&deployment("d"));
    let patch = |text: &str| env.patch(&stored, &Patch::strategic(env.json(text))).unwrap();
    let containers = |object: &Value| {
        let list = object.at(&["spec", "template", "spec", "containers"]).and_then(Value::as_array).unwrap().to_vec();
        let shown = |c: &Value| format!("{}={}", c.str_at(&["name"]).unwrap(), c.str_at(&["image"]).unwrap());
        list.iter().map(shown).collect::<Vec<_>>().join(",")
    };
    let template = |containers: &str| format!(r#"{{"spec":{{"template":{{"spec":{{"containers":{containers}}}}}}}}}"#);
    let patched = patch(&template(r#"[{"name":"c","image":"j"},{"name":"e","image":"k"}]"#));
    assert_eq!(containers(&patched), "c=j,e=k");
    let patched = patch(&template(r#"[{"name":"c","$patch":"delete"}]"#));
    assert_eq!(containers(&patched), "e=k");
    let patched = patch(
        r#"{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"z"},{"name":"e"}],"containers":[{"name":"z","image":"l"}]}}}}"#,
    );
    assert_eq!(containers(&patched), "z=l,e=k");
    let patched =
        patch(r#"{"metadata":{"labels":{"a":"b"}},"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}"#);
    assert_eq!(patched.at(&["spec", "strategy"]).unwrap().to_json(), r#"{"type":"Recreate"}"#);
}

fn strategic_custom(env: &TestEnv) {
    let group = define(env, "Namespaced");
    let text = format!(r#"{{"apiVersion":"{group}/v1","kind":"Box","metadata":{{"name":"a","namespace":"NS"}}}}"#);
    let stored = env.create(&text);
    let error = env.patch(&stored, &Patch::strategic(env.json(r#"{"spec":{}}"#))).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unsupported, 415), "{error}");
    assert!(error.to_string().contains("unknown format - accepted media types include: "), "{error}");
}

fn apply(env: &TestEnv) {
    let object = |data: &str| {
        env.json(&format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","namespace":"NS"}},"data":{data}}}"#
        ))
    };
    let by = |manager: &str, force| WriteOptions { field_manager: manager.into(), force, ..WriteOptions::default() };
    let apply = |data: &str, options: &WriteOptions| {
        let object = object(data);
        env.patch_with(&object, &Patch::apply(object.clone()), options)
    };
    let created = apply(r#"{"k":"v","l":"w"}"#, &by("one", false)).unwrap();
    assert_eq!(created.get("data").unwrap().to_json(), r#"{"k":"v","l":"w"}"#);
    let changed = apply(r#"{"k":"x"}"#, &by("one", false)).unwrap();
    assert_eq!(changed.get("data").unwrap().to_json(), r#"{"k":"x"}"#, "what its manager no longer wants goes");
    let other = apply(r#"{"m":"n"}"#, &by("two", false)).unwrap();
    assert_eq!(other.get("data").unwrap().to_json(), r#"{"k":"x","m":"n"}"#);
    let error = apply(r#"{"k":"y"}"#, &by("two", false)).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Conflict, 409), "{error}");
    let forced = apply(r#"{"k":"y"}"#, &by("two", true)).unwrap();
    assert_eq!(forced.get("data").unwrap().to_json(), r#"{"k":"y"}"#);
}

fn status(env: &TestEnv) {
    let stored = env.create(&deployment("d"));
    let text = r#"{"status":{"replicas":0,"unavailableReplicas":7},"spec":{"paused":true}}"#;
    let options = WriteOptions { part: ephor_cluster::write::Part::Status, ..WriteOptions::default() };
    let patched = env.patch_with(&stored, &Patch::merge(env.json(text)), &options).unwrap();
    assert_eq!(patched.at(&["status", "unavailableReplicas"]).and_then(Value::as_i64), Some(7));
    assert_eq!(patched.at(&["spec", "paused"]), None);
}
