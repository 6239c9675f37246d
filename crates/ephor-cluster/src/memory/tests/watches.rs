//! Watches.

use std::time::Duration;

use super::*;
use crate::error::ErrorKind;
use crate::query::{Filter, LabelSelector};

#[test]
fn a_watch_reports_what_happens_after_its_version() {
    let cluster = strict();
    let a = create(&cluster, &config_map("a")).unwrap();
    let from = cluster.revision().to_string();
    let mut watch = watch(&cluster, "v1", "ConfigMap", &from);
    assert!(events(&mut *watch).is_empty());
    create(&cluster, &config_map("b")).unwrap();
    create(&cluster, &deployment("other")).unwrap();
    patch(&cluster, &a, r#"{"data":{"k":"v"}}"#).unwrap();
    delete(&cluster, &a).unwrap();
    let seen = events(&mut *watch);
    assert_eq!(sketch(&seen), "+b ~a -a");
    let last = seen[2].object().unwrap();
    assert_eq!(last.str_at(&["data", "k"]), Some("v"));
    assert_eq!(object::text(last, "resourceVersion"), cluster.revision().to_string());
}

#[test]
fn a_watch_from_nowhere_begins_with_what_is_there() {
    let cluster = strict();
    create(&cluster, &config_map("a")).unwrap();
    for from in ["", "0"] {
        let mut watch = watch(&cluster, "v1", "ConfigMap", from);
        assert!(sketch(&events(&mut *watch)).starts_with("+a"));
        create(&cluster, &config_map(&format!("later{from}"))).unwrap();
        assert_eq!(sketch(&events(&mut *watch)), format!("+later{from}"));
    }
}

#[test]
fn a_selection_sees_objects_come_and_go() {
    let cluster = strict();
    let filter =
        Filter { namespace: Some("default".into()), labels: LabelSelector::parse("on").unwrap(), ..Filter::default() };
    let query = WatchQuery { filter, resource_version: cluster.revision().to_string().into(), ..WatchQuery::default() };
    let mut watch = cluster.watch(&resource(&cluster, "v1", "ConfigMap"), &query).unwrap();
    let a = create(&cluster, &config_map("a")).unwrap();
    create(&cluster, &config_map("b").replace("default", "kube-system")).unwrap();
    for document in [
        r#"{"metadata":{"labels":{"on":"1"}}}"#,
        r#"{"metadata":{"labels":{"on":"2"}}}"#,
        r#"{"metadata":{"labels":{"on":null,"off":""}}}"#,
        r#"{"data":{"k":"v"}}"#,
    ] {
        patch(&cluster, &a, document).unwrap();
    }
    delete(&cluster, &a).unwrap();
    let seen = events(&mut *watch);
    assert_eq!(sketch(&seen), "+a ~a -a");
    let left = seen[2].object().unwrap();
    assert_eq!(left.str_at(&["metadata", "labels", "on"]), Some("2"), "the last state that was selected");
}

#[test]
fn bookmarks_tell_how_far_the_cluster_is() {
    let cluster = strict();
    let query = WatchQuery { bookmarks: true, ..WatchQuery::default() };
    let mut watch = cluster.watch(&resource(&cluster, "v1", "ConfigMap"), &query).unwrap();
    assert!(events(&mut *watch).is_empty());
    create(&cluster, &deployment("other")).unwrap();
    assert_eq!(sketch(&events(&mut *watch)), format!("@{}", cluster.revision()));
    create(&cluster, &config_map("a")).unwrap();
    assert_eq!(sketch(&events(&mut *watch)), "+a");
}

#[test]
fn versions_too_old_or_too_new_are_refused() {
    let cluster = MemoryCluster::new(Options { history: 3, ..Options::default() });
    let config_maps = resource(&cluster, "v1", "ConfigMap");
    let attempt = |from: &str| {
        let query = WatchQuery { resource_version: from.into(), ..WatchQuery::default() };
        cluster.watch(&config_maps, &query).map(drop)
    };
    for name in ["a", "b", "c"] {
        create(&cluster, &config_map(name)).unwrap();
    }
    let revision = cluster.revision();
    let error = attempt(&(revision - 4).to_string()).unwrap_err();
    let message = format!("too old resource version: {} ({})", revision - 4, revision - 3);
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Gone, message));
    assert!(attempt(&(revision - 3).to_string()).is_ok());
    assert!(attempt(&revision.to_string()).is_ok());
    assert_eq!(attempt(&(revision + 1).to_string()).unwrap_err().kind(), ErrorKind::Transient);
    assert_eq!(attempt("x").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_watch_that_is_not_read_falls_behind() {
    let cluster = MemoryCluster::new(Options { history: 3, ..Options::default() });
    let mut watch = watch(&cluster, "v1", "ConfigMap", "");
    for name in ["a", "b", "c", "d"] {
        create(&cluster, &config_map(name)).unwrap();
    }
    assert_eq!(watch.next(Duration::ZERO).unwrap_err().kind(), ErrorKind::Gone);
}

#[test]
fn a_watch_waits_for_a_writer_and_no_longer_than_asked() {
    let cluster = strict();
    let mut watch = watch(&cluster, "v1", "ConfigMap", "");
    assert_eq!(watch.next(Duration::from_millis(5)).unwrap(), None);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || watch.next(Duration::from_mins(1)).unwrap());
        create(&cluster, &deployment("unrelated")).unwrap();
        create(&cluster, &config_map("a")).unwrap();
        assert_eq!(sketch(&[waiting.join().unwrap().unwrap()]), "+a");
    });
}

#[test]
fn many_writers_lose_no_update() {
    let cluster = strict();
    let counter = create(&cluster, &config_map("counter")).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    loop {
                        let mut object = present(&cluster, &counter).unwrap();
                        let n = object.at(&["data", "n"]).and_then(Value::as_i64).unwrap_or(0);
                        let data = Value::from([("n", Value::from(n + 1))]);
                        object.as_object_mut().unwrap().insert("data", data);
                        match update(&cluster, object) {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(present(&cluster, &counter).unwrap().at(&["data", "n"]), Some(&Value::from(100)));
}

#[test]
fn a_reader_of_metadata_gets_nothing_else() {
    let cluster = strict();
    let config_maps = resource(&cluster, "v1", "ConfigMap");
    let query = WatchQuery { metadata_only: true, ..WatchQuery::default() };
    let mut watch = cluster.watch(&config_maps, &query).unwrap();
    let stored = create(&cluster, &config_map("a")).unwrap();
    delete(&cluster, &stored).unwrap();
    let seen = events(&mut *watch);
    assert_eq!(sketch(&seen), "+a -a");
    for object in seen.iter().filter_map(WatchEvent::object) {
        let keys: Vec<_> = object.as_object().unwrap().iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["apiVersion", "kind", "metadata"]);
    }
    create(&cluster, &config_map("b")).unwrap();
    let listed = cluster.list(&config_maps, &ListQuery::all().metadata_only()).unwrap();
    assert_eq!((listed.items[0].str_at(&["kind"]), listed.items[0].get("data")), (Some("ConfigMap"), None));
}
