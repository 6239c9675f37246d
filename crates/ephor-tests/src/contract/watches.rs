//! Watches.

use std::time::Duration;

use ephor_cluster::{DeleteOptions, Watch, WatchEvent, WatchQuery, object};
use ephor_expr::Str;

use super::Case;
use super::ground::{Ground, config_map, version};

pub(super) const CASES: &[Case] = &[
    ("a watch reports what happens", events),
    ("a watch begins with what is there", present),
    ("a selection sees objects come and go", selection),
    ("a watch of metadata has nothing else", metadata),
];

/// How long an event may take.
const TIMEOUT: Duration = Duration::from_secs(20);

fn query(ground: &Ground, from: &str) -> WatchQuery {
    WatchQuery { filter: ground.own().filter, resource_version: from.into(), ..WatchQuery::default() }
}

fn start(ground: &Ground, query: &WatchQuery) -> Box<dyn Watch> {
    ground.cluster.watch(&ground.resource("v1", "ConfigMap"), query).unwrap()
}

fn from_now(ground: &Ground) -> Str {
    ground.cluster.list(&ground.resource("v1", "ConfigMap"), &ground.own()).unwrap().resource_version
}

fn next(watch: &mut dyn Watch) -> (char, String, Str) {
    let event = watch.next(TIMEOUT).unwrap().expect("an event");
    let sign = match &event {
        WatchEvent::Added(_) => '+',
        WatchEvent::Modified(_) => '~',
        WatchEvent::Deleted(_) => '-',
        WatchEvent::Bookmark(_) => '@',
    };
    let object = event.object().expect("bookmarks were not asked for");
    assert_eq!(object.str_at(&["kind"]), Some("ConfigMap"));
    (sign, object::name(object).to_owned(), version(object))
}

fn events(ground: &Ground) {
    let mut watch = start(ground, &query(ground, &from_now(ground)));
    assert_eq!(watch.next(Duration::ZERO), Ok(None));
    let created = ground.config_map("a");
    let changed = ground.merge(&created, r#"{"data":{"k":"w"}}"#).unwrap();
    ground.delete(&created, &DeleteOptions::default()).unwrap();
    assert_eq!(next(&mut *watch), ('+', "a".to_owned(), version(&created)));
    assert_eq!(next(&mut *watch), ('~', "a".to_owned(), version(&changed)));
    let (sign, name, gone) = next(&mut *watch);
    assert_eq!((sign, name.as_str()), ('-', "a"));
    let number = |version: &str| version.parse::<u64>().unwrap();
    assert!(number(&gone) > number(&version(&changed)), "the version of the removal");
    assert_eq!(watch.next(Duration::from_millis(10)), Ok(None));

    let mut again = start(ground, &query(ground, &version(&changed)));
    assert_eq!(next(&mut *again), ('-', "a".to_owned(), gone), "a watch goes on after any version");
}

fn present(ground: &Ground) {
    ground.config_map("b");
    ground.config_map("a");
    let mut watch = start(ground, &query(ground, ""));
    let seen = [next(&mut *watch), next(&mut *watch)].map(|(sign, name, _)| format!("{sign}{name}"));
    assert_eq!(seen, ["+a", "+b"]);
    ground.config_map("c");
    assert_eq!(next(&mut *watch).1, "c");
}

fn selection(ground: &Ground) {
    let mut query = query(ground, &from_now(ground));
    query.filter.labels = super::ground::labels("on");
    let mut watch = start(ground, &query);
    let stored = ground.config_map("a");
    for labels in [r#""on":"1""#, r#""on":"2""#, r#""on":null"#, r#""on":"3""#] {
        ground.merge(&stored, &format!(r#"{{"metadata":{{"labels":{{{labels}}}}}}}"#)).unwrap();
    }
    let seen: String = (0..4).map(|_| next(&mut *watch).0).collect();
    assert_eq!(seen, "+~-+");
}

fn metadata(ground: &Ground) {
    let query = WatchQuery { metadata_only: true, ..query(ground, &from_now(ground)) };
    let mut watch = start(ground, &query);
    let stored = ground.create(&config_map("a"));
    ground.delete(&stored, &DeleteOptions::default()).unwrap();
    for _ in 0..2 {
        let event = watch.next(TIMEOUT).unwrap().unwrap();
        let object = event.object().unwrap();
        let keys: Vec<_> = object.as_object().unwrap().iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["apiVersion", "kind", "metadata"]);
        assert_eq!(object.str_at(&["kind"]), Some("ConfigMap"));
    }
}
