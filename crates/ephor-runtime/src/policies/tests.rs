//! What the store makes of events.

use ephor_cluster::{DeleteOptions, MemoryCluster, WriteOptions};
use ephor_expr::yaml::parse_values;

use super::*;

fn policy(name: &str, message: &str) -> Value {
    let text = format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{rules: [{{name: r, \
         match: {{any: [{{resources: {{kinds: [Pod]}}}}]}}, validate: {{message: {message}, deny: {{}}}}}}]}}}}"
    );
    parse_values(&text, &ephor_expr::yaml::Limits::default()).unwrap().remove(0)
}

fn eventually(what: impl Fn() -> bool) {
    for _ in 0..1000 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came");
}

#[test]
fn the_store_follows_what_is_written() {
    let memory: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
    let kind = memory.resolve("kyverno.io/v1", "ClusterPolicy").unwrap();
    memory.create(&kind, policy("b", "one"), &WriteOptions::default()).unwrap();
    let stop = Stop::new();
    let store = PolicyStore::new(ExceptionScope::Everywhere);
    assert!(store.follow(&memory, &stop).wait_synced(Duration::from_secs(10)));
    let names = || -> Vec<String> { store.snapshot().policies.keys().map(ToString::to_string).collect() };
    assert_eq!(names(), ["b"]);

    memory.create(&kind, policy("a", "one"), &WriteOptions::default()).unwrap();
    eventually(|| names() == ["a", "b"]);
    let programs = store.snapshot().set.programs().len();
    assert_eq!(programs, 2);

    memory.delete(&kind, None, "b", &DeleteOptions::default()).unwrap();
    eventually(|| names() == ["a"]);
    stop.stop();
}

#[test]
fn a_write_of_the_status_compiles_nothing() {
    let store = PolicyStore::new(ExceptionScope::Disabled);
    store.apply("ClusterPolicy", Change::Set(policy("a", "one")));
    let before = store.snapshot();
    let mut document = policy("a", "one");
    document.as_object_mut().unwrap().insert("status", Value::from([("ready", Value::Bool(true))]));
    store.apply("ClusterPolicy", Change::Set(document));
    assert!(Arc::ptr_eq(&before.set.programs()[0], &store.snapshot().set.programs()[0]));
    store.apply("ClusterPolicy", Change::Set(policy("a", "two")));
    assert!(!Arc::ptr_eq(&before.set.programs()[0], &store.snapshot().set.programs()[0]));
}

#[test]
fn a_reset_forgets_only_its_own_kind() {
    let store = PolicyStore::new(ExceptionScope::Disabled);
    store.apply("ClusterPolicy", Change::Set(policy("a", "one")));
    store.apply("Policy", Change::Reset(Vec::new()));
    assert_eq!(store.snapshot().policies.len(), 1);
    store.apply("ClusterPolicy", Change::Reset(Vec::new()));
    assert_eq!(store.snapshot().policies.len(), 0);
}

#[test]
fn what_comes_late_or_twice_says_nothing() {
    let at = |version: u64, message: &str| {
        let mut document = policy("a", message);
        let metadata = document.as_object_mut().unwrap().entry("metadata").as_object_mut().unwrap();
        metadata.insert("resourceVersion", version.to_string());
        document
    };
    let store = PolicyStore::new(ExceptionScope::Disabled);
    let apply = |change| store.apply("ClusterPolicy", change);
    apply(Change::Set(at(5, "new")));
    let before = store.snapshot();
    for late in [Change::Set(at(3, "old")), Change::Set(at(5, "new")), Change::Gone(at(4, "older"))] {
        apply(late);
        assert_eq!(store.snapshot().number, before.number);
    }
    apply(Change::Gone(at(7, "new")));
    apply(Change::Set(at(6, "new")));
    assert_eq!(store.snapshot().policies.len(), 0, "it does not come back");
    apply(Change::Set(at(8, "another")));
    assert_eq!(store.snapshot().policies.len(), 1);
    apply(Change::Reset(vec![at(2, "restored")]));
    apply(Change::Set(at(3, "changed")));
    assert_eq!(store.snapshot().policies.values().next().unwrap().resource_version(), "3", "a list begins anew");
}
