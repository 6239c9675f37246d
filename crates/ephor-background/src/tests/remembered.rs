//! Rules that cannot be judged without the request that brought their trigger about.

use ephor_cluster::admission::User;
use ephor_cluster::{Cluster, WriteOptions};
use ephor_expr::Value;

use super::harness::{Harness, document};

fn policy(filter: &str, data: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{background: false, rules: [
          {{name: r, match: {{any: [{{resources: {{kinds: [ConfigMap]{filter}}}}}]}}, generate: {{synchronize: true,
            apiVersion: v1, kind: Secret, name: made, namespace: default, data: {{data: {{k: '{data}'}}}}}}}}]}}}}"
    )
}

const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: default}, data: {v: x}}";
const MADE: &str = "{apiVersion: v1, kind: Secret, metadata: {name: made}}";

fn made(harness: &Harness) -> Option<String> {
    harness.find(MADE).map(|made| made.str_at(&["data", "k"]).unwrap_or_default().to_owned())
}

/// Writes an object as a user.
fn write_as(harness: &mut Harness, user: &str, text: &str) {
    harness.tick(1_000);
    let mut object = document(text);
    let cluster = harness.cluster.acting_as(User { name: user.into(), ..User::default() });
    let resource = harness.resource(&object);
    match harness.read(&object) {
        None => cluster.create(&resource, object, &WriteOptions::default()),
        Some(old) => {
            let version = old.at(&["metadata", "resourceVersion"]).cloned();
            ephor_runtime::content::set_meta(&mut object, "resourceVersion", version);
            cluster.update(&resource, object, &WriteOptions::default())
        }
    }
    .unwrap();
}

/// What a tenant may write: other content, another annotation.
fn forge(harness: &mut Harness) {
    let mut made = harness.find(MADE).unwrap();
    let annotation =
        made.str_at(&["metadata", "annotations", "ephor.dev/generated"]).unwrap().replace("CREATE", "UPDATE");
    ephor_runtime::content::set_entry(&mut made, "annotations", "ephor.dev/generated", Some(&annotation));
    ephor_runtime::content::set_entry(&mut made, "annotations", "user", Some("eve"));
    if let Some(members) = made.as_object_mut() {
        members.insert("data", Value::from([("k", Value::from("eve"))]));
    }
    harness.apply_object(&made);
}

#[test]
fn a_rule_that_names_the_user_is_kept_up_by_whoever_starts_anew() {
    let mut harness = Harness::new();
    harness.apply(&policy("", "{{ request.userInfo.username }}"));
    harness.settle();
    write_as(&mut harness, "ann", TRIGGER);
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("ann"));
    for round in 0..3 {
        harness.restart();
        harness.settle();
        if round == 1 {
            forge(&mut harness);
        } else {
            harness.delete(MADE);
        }
        harness.settle();
        assert_eq!(made(&harness).as_deref(), Some("ann"), "round {round}");
    }
    harness.stop();
    harness.delete(MADE);
    harness.restart();
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("ann"), "deleted while nobody was there");
    write_as(&mut harness, "bob", &TRIGGER.replace("v: x", "v: y"));
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("bob"), "the last request counts");
    harness.restart();
    harness.settle();
    harness.delete(MADE);
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("bob"), "also after a restart");
    assert_eq!(harness.pending_requests(), 1, "one request is kept");
    harness.delete(TRIGGER);
    harness.settle();
    assert_eq!((made(&harness), harness.pending_requests()), (None, 0), "it goes with its trigger");
}

#[test]
fn a_user_whose_request_was_refused_counts_for_nothing() {
    let mut harness = Harness::new();
    harness.apply(&policy("", "{{ request.userInfo.username }}"));
    harness.settle();
    write_as(&mut harness, "ann", TRIGGER);
    harness.settle();
    harness.admission.refuse(true);
    let mut object = harness.find(TRIGGER).unwrap();
    ephor_runtime::content::set_entry(&mut object, "annotations", "a", Some("b"));
    let eve = harness.cluster.acting_as(User { name: "eve".into(), ..User::default() });
    assert!(eve.update(&harness.resource(&object), object, &WriteOptions::default()).is_err());
    harness.admission.refuse(false);
    harness.settle();
    harness.delete(MADE);
    harness.settle();
    assert_eq!((made(&harness).as_deref(), harness.pending_requests()), (Some("ann"), 1));
    harness.restart();
    harness.settle();
    harness.delete(MADE);
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("ann"));
}

/// The bytes of all requests that are kept.
fn kept_bytes(harness: &Harness) -> usize {
    harness.list("kyverno.io/v2", "UpdateRequest").iter().map(|request| request.to_json().len()).sum()
}

#[test]
fn a_kept_request_holds_no_object_that_is_read_again_and_no_large_one_of_before() {
    let large = format!("v: {}", "x".repeat(100_000));
    for (data, values, kept, value) in [
        ("{{ request.userInfo.username }}", [&*large, "v: y"], 1, "bob"),
        ("{{ request.oldObject.data.v }}", ["v: a", "v: b"], 1, "a"),
        ("{{ to_string(length(request.oldObject.data.v)) }}", [&large, "v: b"], 0, "100000"),
    ] {
        let mut harness = Harness::new();
        harness.apply(&policy(", operations: [UPDATE]", data));
        write_as(&mut harness, "ann", &TRIGGER.replace("v: x", values[0]));
        harness.settle();
        write_as(&mut harness, "bob", &TRIGGER.replace("v: x", values[1]));
        harness.settle();
        assert_eq!(made(&harness).as_deref(), Some(value), "{data}");
        assert_eq!(harness.pending_requests(), kept, "{data}");
        assert!(kept_bytes(&harness) < 4_000, "{data}: {}", kept_bytes(&harness));
        // Without a request what there is stays.
        harness.restart();
        harness.settle();
        assert_eq!(made(&harness).as_deref(), Some(value), "{data}");
    }
}

#[test]
fn a_kept_request_goes_with_its_trigger_or_policy_also_when_nobody_was_there() {
    for what in [TRIGGER, "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}"] {
        let mut harness = Harness::new();
        harness.apply(&policy("", "{{ request.userInfo.username }}"));
        harness.settle();
        write_as(&mut harness, "ann", TRIGGER);
        harness.settle();
        assert_eq!(harness.pending_requests(), 1);
        harness.stop();
        harness.admission.close(true);
        harness.delete(MADE);
        harness.delete(what);
        harness.restart();
        harness.settle();
        assert_eq!((made(&harness), harness.pending_requests()), (None, 0), "{what}");
    }
}

#[test]
fn a_rule_about_updates_keeps_up_what_an_update_brought_about() {
    for (filter, data) in [(", operations: [UPDATE]", "v"), ("", "{{ request.operation }}")] {
        let mut harness = Harness::new();
        harness.apply(&policy(filter, data));
        harness.settle();
        harness.apply(TRIGGER);
        harness.settle();
        assert_eq!(made(&harness).is_some(), filter.is_empty(), "a creation is no update");
        harness.apply(&TRIGGER.replace("v: x", "v: y"));
        harness.settle();
        let before = made(&harness);
        assert!(before.is_some());
        harness.delete(MADE);
        harness.settle();
        assert_eq!(made(&harness), before);
        harness.stop();
        harness.delete(MADE);
        harness.restart();
        harness.settle();
        assert_eq!(made(&harness), before);
    }
}

#[test]
fn a_request_whose_work_succeeds_later_does_not_show_that_it_failed() {
    let mut harness = Harness::new();
    harness.apply(
        &policy("", "{{ request.userInfo.username }}")
            .replace("name: made, namespace: default", "name: made, namespace: later"),
    );
    harness.settle();
    write_as(&mut harness, "ann", TRIGGER);
    harness.settle();
    let states = |harness: &Harness| -> Vec<String> {
        let requests = harness.list("kyverno.io/v2", "UpdateRequest");
        requests.iter().map(|r| r.str_at(&["status", "state"]).unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(states(&harness), ["Failed"]);
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: later}}");
    harness.settle();
    assert!(harness.find("{apiVersion: v1, kind: Secret, metadata: {name: made, namespace: later}}").is_some());
    assert_eq!(states(&harness), ["Completed"]);
}
