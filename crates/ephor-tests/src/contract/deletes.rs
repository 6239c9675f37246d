//! Deleting objects.

use ephor_cluster::write::Propagation;
use ephor_cluster::{DeleteOptions, ErrorKind, object};
use ephor_expr::Value;

use super::Case;
use super::test_env::{TestEnv, config_map, names, refused, version};

pub(super) const CASES: &[Case] = &[
    ("what is deleted is gone", gone),
    ("a deletion means one object", preconditions),
    ("finalizers hold an object", finalizers),
    ("what is being deleted gets no new finalizers", late_finalizers),
    ("a dry run deletes nothing", dry_run),
    ("a selection is deleted at once", collections),
    ("orphans stay", orphans),
    ("an owner in the foreground waits", foreground),
    ("what is owned goes with its owner", owned),
    ("a namespace takes its objects along", namespaces),
];

fn now(env: &TestEnv, object: &Value) -> bool {
    env.delete(object, &DeleteOptions::default()).unwrap().is_done()
}

fn gone(env: &TestEnv) {
    let stored = env.config_map("a");
    assert!(now(env, &stored));
    assert_eq!(env.present(&stored), None);
    let again = env.delete(&stored, &DeleteOptions::default());
    refused(env, again, ErrorKind::NotFound, 404, r#"configmaps "a" not found"#);
    let second = env.config_map("a");
    assert_ne!(object::text(&stored, "uid"), object::text(&second, "uid"));
}

fn preconditions(env: &TestEnv) {
    let stored = env.config_map("a");
    let uid = object::text(&stored, "uid");
    let changed = env.merge(&stored, r#"{"data":{"k":"w"}}"#).unwrap();
    let other = DeleteOptions { uid: "other".into(), ..DeleteOptions::default() };
    let words = format!(
        r#"Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID in record ({uid}). The object might have been deleted and then recreated"#
    );
    refused(env, env.delete(&stored, &other), ErrorKind::Conflict, 409, &words);
    let old = DeleteOptions { resource_version: version(&stored), ..DeleteOptions::default() };
    let words = format!(
        r#"Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({}). The object might have been modified"#,
        version(&stored),
        version(&changed)
    );
    refused(env, env.delete(&stored, &old), ErrorKind::Conflict, 409, &words);
    let right = DeleteOptions { uid: uid.into(), resource_version: version(&changed), ..DeleteOptions::default() };
    assert!(env.delete(&stored, &right).unwrap().is_done());
}

fn held(name: &str) -> String {
    config_map(name).replace(r#""name""#, r#""finalizers":["example.com/held"],"name""#)
}

fn finalizers(env: &TestEnv) {
    let stored = env.create(&held("a"));
    assert!(!now(env, &stored));
    let marked = env.present(&stored).unwrap();
    assert!(object::is_deleting(&marked));
    assert!(!now(env, &stored), "again is the same");
    assert_eq!(
        object::text(&env.present(&stored).unwrap(), "deletionTimestamp"),
        object::text(&marked, "deletionTimestamp")
    );
    let last = env.merge(&stored, r#"{"metadata":{"finalizers":null}}"#).unwrap();
    assert!(object::is_deleting(&last) && !object::has_finalizers(&last));
    assert_eq!(env.present(&stored), None);
}

fn late_finalizers(env: &TestEnv) {
    let stored = env.create(&held("a"));
    assert!(!now(env, &stored));
    let late = r#"{"metadata":{"finalizers":["example.com/held","example.com/late"]}}"#;
    let words = r#"ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/late"}"#;
    refused(env, env.merge(&stored, late), ErrorKind::Invalid, 422, words);
    assert!(env.merge(&stored, r#"{"metadata":{"finalizers":null}}"#).is_ok());
}

fn dry_run(env: &TestEnv) {
    let stored = env.config_map("a");
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    assert!(env.delete(&stored, &options).is_ok());
    assert_eq!(env.present(&stored), Some(stored));
}

fn collections(env: &TestEnv) {
    for name in ["a", "b"] {
        env.config_map(name);
    }
    env.create(&held("c"));
    let other = env.create(&config_map("other").replace("contract", "other"));
    let config_maps = env.resource("v1", "ConfigMap");
    let filter = env.own().filter;
    assert_eq!(env.cluster.delete_collection(&config_maps, &filter, &DeleteOptions::default()), Ok(3));
    let left = env.cluster.list(&config_maps, &env.own()).unwrap().items;
    assert_eq!((names(&left), object::is_deleting(&left[0])), (vec!["c"], true));
    assert!(env.present(&other).is_some());
    assert!(env.merge(&left[0], r#"{"metadata":{"finalizers":null}}"#).is_ok());
}

fn child(env: &TestEnv, owner: &Value, block: bool) -> Value {
    let reference = format!(
        r#""ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"{}","uid":"{}","blockOwnerDeletion":{block}}}],"name""#,
        object::name(owner),
        object::text(owner, "uid")
    );
    env.create(&config_map("child").replace(r#""name""#, &reference))
}

fn delete(env: &TestEnv, object: &Value, propagation: Propagation) -> bool {
    let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    env.delete(object, &options).unwrap().is_done()
}

fn orphans(env: &TestEnv) {
    let owner = env.config_map("a");
    let child = child(env, &owner, false);
    delete(env, &owner, Propagation::Orphan);
    env.eventually("the owner is gone", || env.present(&owner).is_none().then_some(()));
    let left = env.present(&child).unwrap();
    assert_eq!(left.at(&["metadata", "ownerReferences"]), None);
}

fn foreground(env: &TestEnv) {
    let owner = env.config_map("a");
    let child = child(env, &owner, true);
    let child = env.merge(&child, r#"{"metadata":{"finalizers":["example.com/held"]}}"#).unwrap();
    assert!(!delete(env, &owner, Propagation::Foreground));
    env.eventually("the child is marked", || env.present(&child).filter(object::is_deleting));
    assert!(env.present(&owner).is_some_and(|o| object::is_deleting(&o)));
    env.merge(&child, r#"{"metadata":{"finalizers":null}}"#).unwrap();
    env.eventually("the owner is gone", || env.present(&owner).is_none().then_some(()));
    assert_eq!(env.present(&child), None);
}

fn owned(env: &TestEnv) {
    let owner = env.config_map("a");
    let child = child(env, &owner, false);
    assert!(delete(env, &owner, Propagation::Background));
    env.eventually("the child is gone", || env.present(&child).is_none().then_some(()));
}

fn namespaces(env: &TestEnv) {
    let stored = env.config_map("a");
    let namespace = env.cluster.get(&env.resource("v1", "Namespace"), None, &env.namespace).unwrap();
    let _ = now(env, &namespace);
    env.eventually("the namespace is gone", || env.present(&namespace).is_none().then_some(()));
    assert_eq!(env.present(&stored), None);
    let words = r#"namespaces "NS" not found"#;
    refused(env, env.try_create(&config_map("b")), ErrorKind::NotFound, 404, words);
}
