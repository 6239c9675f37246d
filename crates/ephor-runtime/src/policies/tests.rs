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
    let stop = CancellationToken::new();
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
    stop.cancel();
}

#[test]
fn a_write_of_the_status_compiles_nothing() {
    let store = PolicyStore::new(ExceptionScope::Disabled);
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(policy("a", "one")));
    let before = store.snapshot();
    let mut document = policy("a", "one");
    document.as_object_mut().unwrap().insert("status", Value::from([("ready", Value::Bool(true))]));
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(document));
    assert!(Arc::ptr_eq(&before.set.programs()[0], &store.snapshot().set.programs()[0]));
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(policy("a", "two")));
    assert!(!Arc::ptr_eq(&before.set.programs()[0], &store.snapshot().set.programs()[0]));
}

#[test]
fn a_reset_forgets_only_its_own_kind() {
    let store = PolicyStore::new(ExceptionScope::Disabled);
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(policy("a", "one")));
    store.apply(StoredKind::POLICY, StoreEvent::Reset(Vec::new()));
    assert_eq!(store.snapshot().policies.len(), 1);
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Reset(Vec::new()));
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
    let apply = |change| store.apply(StoredKind::CLUSTER_POLICY, change);
    apply(StoreEvent::Apply(at(5, "new")));
    let before = store.snapshot();
    for late in [StoreEvent::Apply(at(3, "old")), StoreEvent::Apply(at(5, "new")), StoreEvent::Delete(at(4, "older"))] {
        apply(late);
        assert_eq!(store.snapshot().number, before.number);
    }
    apply(StoreEvent::Delete(at(7, "new")));
    apply(StoreEvent::Apply(at(6, "new")));
    assert_eq!(store.snapshot().policies.len(), 0, "it does not come back");
    apply(StoreEvent::Apply(at(8, "another")));
    assert_eq!(store.snapshot().policies.len(), 1);
    apply(StoreEvent::Reset(vec![at(2, "restored")]));
    apply(StoreEvent::Apply(at(3, "changed")));
    assert_eq!(store.snapshot().policies.values().next().unwrap().resource_version(), "3", "a list begins anew");
}

/// What nests that many levels, as a part of an object of one of Ephor's own kinds.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Int(1), |inner, _| Value::from([("a", inner)]))
}

#[test]
fn a_policy_that_nests_too_deep_is_refused_and_the_others_hold() {
    let deep = |levels| {
        let mut document = policy("deep", "one");
        let rule = document.as_object_mut().unwrap().entry("spec").as_object_mut().unwrap().entry("rules");
        let rule = &mut rule.as_array_mut().unwrap()[0];
        let validate = rule.as_object_mut().unwrap().entry("validate").as_object_mut().unwrap();
        validate.remove("deny");
        validate.insert("pattern", nested(levels));
        document
    };
    // As the watchers run it.
    let look = move || {
        let store = PolicyStore::new(ExceptionScope::Everywhere);
        store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Reset(vec![deep(5_000), policy("good", "one")]));
        store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(deep(9_000)));
        store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(policy("better", "one")));
        let exception = Value::from([
            ("apiVersion", Value::from("kyverno.io/v2")),
            ("kind", Value::from("PolicyException")),
            ("metadata", Value::from([("name", Value::from("deep")), ("namespace", Value::from("n"))])),
            ("spec", nested(9_000)),
        ]);
        store.apply(StoredKind::Exception, StoreEvent::Apply(exception));
        let snapshot = store.snapshot();
        let told = |policy: &StoredPolicy| {
            policy.findings.iter().find(|finding| finding.is_error()).map(|finding| finding.message.clone())
        };
        let told: Vec<_> = snapshot.policies.iter().map(|(key, policy)| (key.to_string(), told(policy))).collect();
        let too_deep = "the document has more than 130 levels of nesting".to_owned();
        assert_eq!(told, [("better".into(), None), ("deep".into(), Some(too_deep)), ("good".into(), None)]);
        assert_eq!(snapshot.set.programs().len(), 2);
        // The deepest that is decoded, and so compiled.
        store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(deep(110)));
    };
    std::thread::Builder::new().stack_size(crate::threads::SMALL).spawn(look).unwrap().join().unwrap();
}

#[test]
fn after_a_panic_half_way_no_more_changes_are_published() {
    let store = PolicyStore::new(ExceptionScope::Everywhere);
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(policy("a", "one")));
    let first = std::sync::Once::new();
    store.subscribe(move |_| first.call_once(|| panic!("as asked")));
    let apply = |name: &str| {
        let change = StoreEvent::Apply(policy(name, "one"));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| store.apply(StoredKind::CLUSTER_POLICY, change)))
    };
    assert!(apply("b").is_err());
    let number = store.snapshot().number;
    assert!(apply("c").is_err());
    assert_eq!(store.snapshot().number, number);
}
