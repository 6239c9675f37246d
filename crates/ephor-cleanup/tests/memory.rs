//! What 100,000 objects that wait for their time take, counted.

use ephor_cleanup::ttl::state::{Settled, State};
use ephor_cluster::{Cluster, MemoryCluster};
use ephor_expr::Value;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::queue::Moment;
use ephor_runtime::watcher::WatcherEvent;
use jiff::Timestamp;

const OBJECTS: usize = 100_000;
const PAGE: usize = 500;
/// 2026-01-01T00:00:00Z in milliseconds.
const BEGIN: Moment = 1_767_225_600_000;

/// What a watch of metadata shows of an object. One is due each second.
fn object(number: usize) -> Value {
    let due = BEGIN + number as Moment * 1_000;
    let due = Timestamp::from_millisecond(i64::try_from(due).unwrap()).unwrap();
    let due = due.strftime("%Y-%m-%dT%H%M%SZ");
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"made-by-a-job-{number}","namespace":"team-{}",
            "uid":"6f1c2d3e-4b5a-4978-8796-{number:012}","resourceVersion":"{}","creationTimestamp":"2025-12-31T00:00:00Z",
            "labels":{{"cleanup.kyverno.io/ttl":"{due}"}}}}}}"#,
        number % 50,
        number + 1_000_000
    );
    Value::from_json(&text).unwrap()
}

#[test]
fn a_hundred_thousand_objects_fit_in_60_mb_and_each_goes_in_its_second() {
    let kind = GroupKind::new("v1", "ConfigMap");
    let resource = MemoryCluster::default().resolve("v1", "ConfigMap").unwrap();
    let mut state = State::default();
    let held = allocation_counter::measure(|| {
        state.add_kind(kind.clone(), resource.clone());
        state.observe(&kind, WatcherEvent::Init);
        for page in 0..OBJECTS / PAGE {
            state.observe(&kind, WatcherEvent::InitPage((page * PAGE..(page + 1) * PAGE).map(object).collect()));
        }
        state.observe(&kind, WatcherEvent::InitDone);
    });
    assert_eq!(state.len(), OBJECTS);
    assert!(held.bytes_max < 60 << 20, "{} bytes", held.bytes_max);

    for second in 0..OBJECTS {
        let now = BEGIN + second as Moment * 1_000;
        let due = state.take(now).unwrap_or_else(|| panic!("nothing is due in second {second}"));
        assert_eq!(due.target.name, format!("made-by-a-job-{second}"));
        assert_eq!(state.take(now), None);
        state.settle(&due.target, Settled::Gone, now);
    }
    assert!(state.is_empty());
}
