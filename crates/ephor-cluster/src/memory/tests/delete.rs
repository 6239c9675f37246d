//! Deleting, and what finalizers hold.

use super::*;
use crate::error::ErrorKind;

fn held(name: &str, finalizers: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","namespace":"default","finalizers":[{finalizers}]}}}}"#
    )
}

#[test]
fn an_object_that_nothing_holds_is_gone_at_once() {
    let cluster = strict();
    let stored = create(&cluster, &config_map("a")).unwrap();
    let done = delete(&cluster, &stored).unwrap();
    assert!(done.is_done());
    assert_eq!(object::text(&done.into_object(), "resourceVersion"), cluster.revision().to_string());
    assert_eq!(present(&cluster, &stored), None);
    assert_eq!(delete(&cluster, &stored).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn finalizers_hold_an_object_until_the_last_is_taken_off() {
    let cluster = strict();
    cluster.set_now("2026-11-21T10:00:00Z");
    let stored = create(&cluster, &held("a", r#""x/a","x/b""#)).unwrap();
    let marked = delete(&cluster, &stored).unwrap();
    assert!(!marked.is_done());
    let marked = marked.into_object();
    assert_eq!(object::text(&marked, "deletionTimestamp"), "2026-11-21T10:00:00Z");
    assert_eq!(marked.at(&["metadata", "deletionGracePeriodSeconds"]), Some(&Value::from(0)));
    assert_eq!(marked.at(&["metadata", "generation"]), Some(&Value::from(2)));
    assert_eq!(present(&cluster, &stored), Some(marked.clone()));

    let before = cluster.revision();
    assert_eq!(delete(&cluster, &stored).unwrap(), Deletion::Pending(marked), "a second deletion changes nothing");
    assert_eq!(cluster.revision(), before);

    let error = patch(&cluster, &stored, r#"{"metadata":{"finalizers":["x/a","x/c"]}}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"Deployment.apps "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x/c"}"#
    );
    let unmarked = patch(&cluster, &stored, r#"{"metadata":{"deletionTimestamp":null}}"#).unwrap();
    assert!(object::is_deleting(&unmarked), "nobody takes a deletion back");
    patch(&cluster, &stored, r#"{"metadata":{"finalizers":["x/a"]}}"#).unwrap();
    assert!(present(&cluster, &stored).is_some());
    patch(&cluster, &stored, r#"{"metadata":{"finalizers":null}}"#).unwrap();
    assert_eq!(present(&cluster, &stored), None);
}

#[test]
fn preconditions_protect_from_deleting_something_else() {
    let cluster = strict();
    let stored = create(&cluster, &config_map("a")).unwrap();
    let (uid, version) = (object::text(&stored, "uid"), object::text(&stored, "resourceVersion"));
    for (options, message) in [
        (
            DeleteOptions { uid: "other".into(), ..DeleteOptions::default() },
            format!(
                "the UID in the precondition (other) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            ),
        ),
        (
            DeleteOptions { resource_version: "1".into(), ..DeleteOptions::default() },
            format!(
                "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({version}). The object might have been modified"
            ),
        ),
    ] {
        let error = delete_with(&cluster, &stored, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(error.to_string(), format!(r#"Operation cannot be fulfilled on ConfigMap "a": {message}"#));
    }
    let right = DeleteOptions { uid: uid.into(), resource_version: version.into(), ..DeleteOptions::default() };
    assert!(delete_with(&cluster, &stored, &right).unwrap().is_done());
}

#[test]
fn a_dry_run_deletes_nothing() {
    let cluster = strict();
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    for (text, done) in [(config_map("a"), true), (held("b", r#""x/a""#), false), (namespace("c"), false)] {
        let stored = create(&cluster, &text).unwrap();
        assert_eq!(delete_with(&cluster, &stored, &options).unwrap().is_done(), done, "{text}");
        assert_eq!(present(&cluster, &stored), Some(stored));
    }
}

#[test]
fn a_watch_sees_one_removal_when_the_last_finalizer_goes() {
    let cluster = strict();
    let stored = create(&cluster, &held("a", r#""x/a""#)).unwrap();
    let mut watch = watch(&cluster, "apps/v1", "Deployment", object::text(&stored, "resourceVersion"));
    delete(&cluster, &stored).unwrap();
    let gone = patch(&cluster, &stored, r#"{"metadata":{"finalizers":[]}}"#).unwrap();
    let events = events(&mut *watch);
    assert_eq!(sketch(&events), "~a -a");
    let last = events[1].object().unwrap();
    assert_eq!(object::text(last, "resourceVersion"), object::text(&gone, "resourceVersion"));
}

#[test]
fn a_name_can_be_used_again_by_another_object() {
    let cluster = strict();
    let first = create(&cluster, &config_map("a")).unwrap();
    delete(&cluster, &first).unwrap();
    let second = create(&cluster, &config_map("a")).unwrap();
    assert_ne!(object::text(&first, "uid"), object::text(&second, "uid"));
}
