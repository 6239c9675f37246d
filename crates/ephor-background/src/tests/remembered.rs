//! Rules that cannot be judged without the request that brought their trigger about.

use ephor_cluster::admission::User;
use ephor_cluster::{Cluster, WriteOptions};
use ephor_expr::Value;

use super::bed::{Bed, document};

fn policy(filter: &str, data: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{background: false, rules: [
          {{name: r, match: {{any: [{{resources: {{kinds: [ConfigMap]{filter}}}}}]}}, generate: {{synchronize: true,
            apiVersion: v1, kind: Secret, name: made, namespace: default, data: {{data: {{k: '{data}'}}}}}}}}]}}}}"
    )
}

const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: default}, data: {v: x}}";
const MADE: &str = "{apiVersion: v1, kind: Secret, metadata: {name: made}}";

fn made(bed: &Bed) -> Option<String> {
    bed.find(MADE).map(|made| made.str_at(&["data", "k"]).unwrap_or_default().to_owned())
}

/// Writes an object as a user.
fn write_as(bed: &mut Bed, user: &str, text: &str) {
    bed.tick(1_000);
    let mut object = document(text);
    let cluster = bed.cluster.acting_as(User { name: user.into(), ..User::default() });
    let resource = bed.resource(&object);
    match bed.read(&object) {
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
fn forge(bed: &mut Bed) {
    let mut made = bed.find(MADE).unwrap();
    let annotation =
        made.str_at(&["metadata", "annotations", "ephor.dev/generated"]).unwrap().replace("CREATE", "UPDATE");
    ephor_runtime::content::set_entry(&mut made, "annotations", "ephor.dev/generated", Some(&annotation));
    ephor_runtime::content::set_entry(&mut made, "annotations", "user", Some("eve"));
    if let Some(members) = made.as_object_mut() {
        members.insert("data", Value::from([("k", Value::from("eve"))]));
    }
    bed.apply_object(&made);
}

#[test]
fn a_rule_that_names_the_user_is_kept_up_by_whoever_starts_anew() {
    let mut bed = Bed::new();
    bed.apply(&policy("", "{{ request.userInfo.username }}"));
    bed.settle();
    write_as(&mut bed, "ann", TRIGGER);
    bed.settle();
    assert_eq!(made(&bed).as_deref(), Some("ann"));
    for round in 0..3 {
        bed.restart();
        bed.settle();
        if round == 1 {
            forge(&mut bed);
        } else {
            bed.delete(MADE);
        }
        bed.settle();
        assert_eq!(made(&bed).as_deref(), Some("ann"), "round {round}");
    }
    bed.stop();
    bed.delete(MADE);
    bed.restart();
    bed.settle();
    assert_eq!(made(&bed).as_deref(), Some("ann"), "deleted while nobody was there");
    write_as(&mut bed, "bob", &TRIGGER.replace("v: x", "v: y"));
    bed.settle();
    assert_eq!(made(&bed).as_deref(), Some("bob"), "the last request counts");
    bed.restart();
    bed.settle();
    bed.delete(MADE);
    bed.settle();
    assert_eq!(made(&bed).as_deref(), Some("bob"), "also after a restart");
    assert_eq!(bed.pending_requests(), 1, "one request is kept");
    bed.delete(TRIGGER);
    bed.settle();
    assert_eq!((made(&bed), bed.pending_requests()), (None, 0), "it goes with its trigger");
}

#[test]
fn a_user_whose_request_was_refused_counts_for_nothing() {
    let mut bed = Bed::new();
    bed.apply(&policy("", "{{ request.userInfo.username }}"));
    bed.settle();
    write_as(&mut bed, "ann", TRIGGER);
    bed.settle();
    bed.door.refuse(true);
    let mut object = bed.find(TRIGGER).unwrap();
    ephor_runtime::content::set_entry(&mut object, "annotations", "a", Some("b"));
    let eve = bed.cluster.acting_as(User { name: "eve".into(), ..User::default() });
    assert!(eve.update(&bed.resource(&object), object, &WriteOptions::default()).is_err());
    bed.door.refuse(false);
    bed.settle();
    bed.delete(MADE);
    bed.settle();
    assert_eq!((made(&bed).as_deref(), bed.pending_requests()), (Some("ann"), 1));
    bed.restart();
    bed.settle();
    bed.delete(MADE);
    bed.settle();
    assert_eq!(made(&bed).as_deref(), Some("ann"));
}

#[test]
fn a_kept_request_goes_with_its_trigger_or_policy_also_when_nobody_was_there() {
    for what in [TRIGGER, "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}"] {
        let mut bed = Bed::new();
        bed.apply(&policy("", "{{ request.userInfo.username }}"));
        bed.settle();
        write_as(&mut bed, "ann", TRIGGER);
        bed.settle();
        assert_eq!(bed.pending_requests(), 1);
        bed.stop();
        bed.door.close(true);
        bed.delete(MADE);
        bed.delete(what);
        bed.restart();
        bed.settle();
        assert_eq!((made(&bed), bed.pending_requests()), (None, 0), "{what}");
    }
}

#[test]
fn a_rule_about_updates_keeps_up_what_an_update_brought_about() {
    for (filter, data) in [(", operations: [UPDATE]", "v"), ("", "{{ request.operation }}")] {
        let mut bed = Bed::new();
        bed.apply(&policy(filter, data));
        bed.settle();
        bed.apply(TRIGGER);
        bed.settle();
        assert_eq!(made(&bed).is_some(), filter.is_empty(), "a creation is no update");
        bed.apply(&TRIGGER.replace("v: x", "v: y"));
        bed.settle();
        let before = made(&bed);
        assert!(before.is_some());
        bed.delete(MADE);
        bed.settle();
        assert_eq!(made(&bed), before);
        bed.stop();
        bed.delete(MADE);
        bed.restart();
        bed.settle();
        assert_eq!(made(&bed), before);
    }
}
