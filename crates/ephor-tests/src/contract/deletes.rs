//! Deleting objects.

use ephor_cluster::write::Propagation;
use ephor_cluster::{DeleteOptions, ErrorKind, object};
use ephor_expr::Value;

use super::Case;
use super::ground::{Ground, config_map, names, refused, version};

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

fn now(ground: &Ground, object: &Value) -> bool {
    ground.delete(object, &DeleteOptions::default()).unwrap().is_done()
}

fn gone(ground: &Ground) {
    let stored = ground.config_map("a");
    assert!(now(ground, &stored));
    assert_eq!(ground.present(&stored), None);
    let again = ground.delete(&stored, &DeleteOptions::default());
    refused(ground, again, ErrorKind::NotFound, 404, r#"configmaps "a" not found"#);
    let second = ground.config_map("a");
    assert_ne!(object::text(&stored, "uid"), object::text(&second, "uid"));
}

fn preconditions(ground: &Ground) {
    let stored = ground.config_map("a");
    let uid = object::text(&stored, "uid");
    let changed = ground.merge(&stored, r#"{"data":{"k":"w"}}"#).unwrap();
    let other = DeleteOptions { uid: "other".into(), ..DeleteOptions::default() };
    let words = format!(
        r#"Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID in record ({uid}). The object might have been deleted and then recreated"#
    );
    refused(ground, ground.delete(&stored, &other), ErrorKind::Conflict, 409, &words);
    let old = DeleteOptions { resource_version: version(&stored), ..DeleteOptions::default() };
    let words = format!(
        r#"Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({}). The object might have been modified"#,
        version(&stored),
        version(&changed)
    );
    refused(ground, ground.delete(&stored, &old), ErrorKind::Conflict, 409, &words);
    let right = DeleteOptions { uid: uid.into(), resource_version: version(&changed), ..DeleteOptions::default() };
    assert!(ground.delete(&stored, &right).unwrap().is_done());
}

fn held(name: &str) -> String {
    config_map(name).replace(r#""name""#, r#""finalizers":["example.com/held"],"name""#)
}

fn finalizers(ground: &Ground) {
    let stored = ground.create(&held("a"));
    assert!(!now(ground, &stored));
    let marked = ground.present(&stored).unwrap();
    assert!(object::is_deleting(&marked));
    assert!(!now(ground, &stored), "again is the same");
    assert_eq!(
        object::text(&ground.present(&stored).unwrap(), "deletionTimestamp"),
        object::text(&marked, "deletionTimestamp")
    );
    let last = ground.merge(&stored, r#"{"metadata":{"finalizers":null}}"#).unwrap();
    assert!(object::is_deleting(&last) && !object::has_finalizers(&last));
    assert_eq!(ground.present(&stored), None);
}

fn late_finalizers(ground: &Ground) {
    let stored = ground.create(&held("a"));
    assert!(!now(ground, &stored));
    let late = r#"{"metadata":{"finalizers":["example.com/held","example.com/late"]}}"#;
    let words = r#"ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/late"}"#;
    refused(ground, ground.merge(&stored, late), ErrorKind::Invalid, 422, words);
    assert!(ground.merge(&stored, r#"{"metadata":{"finalizers":null}}"#).is_ok());
}

fn dry_run(ground: &Ground) {
    let stored = ground.config_map("a");
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    assert!(ground.delete(&stored, &options).is_ok());
    assert_eq!(ground.present(&stored), Some(stored));
}

fn collections(ground: &Ground) {
    for name in ["a", "b"] {
        ground.config_map(name);
    }
    ground.create(&held("c"));
    let other = ground.create(&config_map("other").replace("contract", "other"));
    let config_maps = ground.resource("v1", "ConfigMap");
    let filter = ground.own().filter;
    assert_eq!(ground.cluster.delete_collection(&config_maps, &filter, &DeleteOptions::default()), Ok(3));
    let left = ground.cluster.list(&config_maps, &ground.own()).unwrap().items;
    assert_eq!((names(&left), object::is_deleting(&left[0])), (vec!["c"], true));
    assert!(ground.present(&other).is_some());
    assert!(ground.merge(&left[0], r#"{"metadata":{"finalizers":null}}"#).is_ok());
}

fn child(ground: &Ground, owner: &Value, block: bool) -> Value {
    let reference = format!(
        r#""ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"{}","uid":"{}","blockOwnerDeletion":{block}}}],"name""#,
        object::name(owner),
        object::text(owner, "uid")
    );
    ground.create(&config_map("child").replace(r#""name""#, &reference))
}

fn delete(ground: &Ground, object: &Value, propagation: Propagation) -> bool {
    let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    ground.delete(object, &options).unwrap().is_done()
}

fn orphans(ground: &Ground) {
    let owner = ground.config_map("a");
    let child = child(ground, &owner, false);
    delete(ground, &owner, Propagation::Orphan);
    ground.eventually("the owner is gone", || ground.present(&owner).is_none().then_some(()));
    let left = ground.present(&child).unwrap();
    assert_eq!(left.at(&["metadata", "ownerReferences"]), None);
}

fn foreground(ground: &Ground) {
    let owner = ground.config_map("a");
    let child = child(ground, &owner, true);
    let child = ground.merge(&child, r#"{"metadata":{"finalizers":["example.com/held"]}}"#).unwrap();
    assert!(!delete(ground, &owner, Propagation::Foreground));
    ground.eventually("the child is marked", || ground.present(&child).filter(object::is_deleting));
    assert!(ground.present(&owner).is_some_and(|o| object::is_deleting(&o)));
    ground.merge(&child, r#"{"metadata":{"finalizers":null}}"#).unwrap();
    ground.eventually("the owner is gone", || ground.present(&owner).is_none().then_some(()));
    assert_eq!(ground.present(&child), None);
}

fn owned(ground: &Ground) {
    let owner = ground.config_map("a");
    let child = child(ground, &owner, false);
    assert!(delete(ground, &owner, Propagation::Background));
    ground.eventually("the child is gone", || ground.present(&child).is_none().then_some(()));
}

fn namespaces(ground: &Ground) {
    let stored = ground.config_map("a");
    let namespace = ground.cluster.get(&ground.resource("v1", "Namespace"), None, &ground.namespace).unwrap();
    let _ = now(ground, &namespace);
    ground.eventually("the namespace is gone", || ground.present(&namespace).is_none().then_some(()));
    assert_eq!(ground.present(&stored), None);
    let words = r#"namespaces "NS" not found"#;
    refused(ground, ground.try_create(&config_map("b")), ErrorKind::NotFound, 404, words);
}
