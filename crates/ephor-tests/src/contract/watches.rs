//! Watches.

use std::time::Duration;

use ephor_cluster::{DeleteOptions, Watch, WatchEvent, WatchQuery, object};
use ephor_expr::Str;

use super::Case;
use super::test_env::{TestEnv, config_map, version};

pub(super) const CASES: &[Case] = &[
    ("a watch reports what happens", events),
    ("a watch begins with what is there", present),
    ("a selection sees objects come and go", selection),
    ("a watch of metadata has nothing else", metadata),
];

/// How long an event may take.
const TIMEOUT: Duration = Duration::from_secs(20);

fn query(env: &TestEnv, from: &str) -> WatchQuery {
    WatchQuery { filter: env.own().filter, resource_version: from.into(), ..WatchQuery::default() }
}

fn start(env: &TestEnv, query: &WatchQuery) -> Box<dyn Watch> {
    env.cluster.watch(&env.resource("v1", "ConfigMap"), query).unwrap()
}

fn from_now(env: &TestEnv) -> Str {
    env.cluster.list(&env.resource("v1", "ConfigMap"), &env.own()).unwrap().resource_version
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

fn events(env: &TestEnv) {
    let mut watch = start(env, &query(env, &from_now(env)));
    assert_eq!(watch.next(Duration::ZERO), Ok(None));
    let created = env.config_map("a");
    let changed = env.merge(&created, r#"{"data":{"k":"w"}}"#).unwrap();
    env.delete(&created, &DeleteOptions::default()).unwrap();
    assert_eq!(next(&mut *watch), ('+', "a".to_owned(), version(&created)));
    assert_eq!(next(&mut *watch), ('~', "a".to_owned(), version(&changed)));
    let (sign, name, gone) = next(&mut *watch);
    assert_eq!((sign, name.as_str()), ('-', "a"));
    let number = |version: &str| version.parse::<u64>().unwrap();
    assert!(number(&gone) > number(&version(&changed)), "the version of the removal");
    assert_eq!(watch.next(Duration::from_millis(10)), Ok(None));

    let mut again = start(env, &query(env, &version(&changed)));
    assert_eq!(next(&mut *again), ('-', "a".to_owned(), gone), "a watch goes on after any version");
}

fn present(env: &TestEnv) {
    env.config_map("b");
    env.config_map("a");
    let mut watch = start(env, &query(env, ""));
    let seen = [next(&mut *watch), next(&mut *watch)].map(|(sign, name, _)| format!("{sign}{name}"));
    assert_eq!(seen, ["+a", "+b"]);
    env.config_map("c");
    assert_eq!(next(&mut *watch).1, "c");
}

fn selection(env: &TestEnv) {
    let mut query = query(env, &from_now(env));
    query.filter.labels = super::test_env::labels("on");
    let mut watch = start(env, &query);
    let stored = env.config_map("a");
    for labels in [r#""on":"1""#, r#""on":"2""#, r#""on":null"#, r#""on":"3""#] {
        env.merge(&stored, &format!(r#"{{"metadata":{{"labels":{{{labels}}}}}}}"#)).unwrap();
    }
    let seen: String = (0..4).map(|_| next(&mut *watch).0).collect();
    assert_eq!(seen, "+~-+");
}

fn metadata(env: &TestEnv) {
    let query = WatchQuery { metadata_only: true, ..query(env, &from_now(env)) };
    let mut watch = start(env, &query);
    let stored = env.create(&config_map("a"));
    env.delete(&stored, &DeleteOptions::default()).unwrap();
    for _ in 0..2 {
        let event = watch.next(TIMEOUT).unwrap().unwrap();
        let object = event.object().unwrap();
        let keys: Vec<_> = object.as_object().unwrap().iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["apiVersion", "kind", "metadata"]);
        assert_eq!(object.str_at(&["kind"]), Some("ConfigMap"));
    }
}
