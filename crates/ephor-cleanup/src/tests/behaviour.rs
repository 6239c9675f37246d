//! What policies do, when, and what they leave alone.

use std::sync::atomic::Ordering;

use ephor_cluster::{Cluster as _, DeleteOptions, MemoryCluster, Patch, WriteOptions};
use ephor_expr::Value;

use super::harness::{Harness, config_map, create, remove, uid};
use crate::env::CleanupOptions;

const DUE: &str = "labels: {due: 'yes'}";

fn cluster_policy(metadata: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v2, kind: ClusterCleanupPolicy, metadata: {{name: p, {metadata}}}, spec: \
         {{schedule: '*/10 * * * *', match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}}, \
         conditions: {{all: [{{key: \"{{{{ target.metadata.labels.due || 'no' }}}}\", operator: Equals, value: 'yes'}}]}}}}}}"
    )
}

fn deleting(kind: &str, metadata: &str) -> String {
    format!(
        "{{apiVersion: policies.kyverno.io/v1beta1, kind: {kind}, metadata: {{name: p, {metadata}}}, spec: \
         {{schedule: '*/10 * * * *', deletionPropagationPolicy: Foreground, matchConstraints: {{resourceRules: \
         [{{apiGroups: [''], apiVersions: [v1], resources: [configmaps]}}]}}, conditions: \
         [{{name: due, expression: \"object.metadata.?labels.due.orValue('no') == 'yes'\"}}]}}}}"
    )
}

const CLUSTER: (&str, &str) = ("kyverno.io/v2", "ClusterCleanupPolicy");
const DELETING: (&str, &str) = ("policies.kyverno.io/v1beta1", "DeletingPolicy");

fn status(harness: &Harness, kind: (&str, &str)) -> Value {
    harness.get(kind, ("", "p")).unwrap().get("status").cloned().unwrap_or_default()
}

fn condition(status: &Value, keys: &[&str]) -> Option<(String, String)> {
    let condition = status.at(keys)?.as_array()?.first()?.clone();
    Some((condition.str_at(&["reason"])?.to_owned(), condition.str_at(&["message"])?.to_owned()))
}

#[test]
fn what_a_policy_selects_goes_on_time_and_nothing_else() {
    let ran = r#""lastExecutionTime":"2026-01-01T00:10:00Z""#;
    let ready = r#""conditionStatus":{"message":"","ready":true}"#;
    for (policy, kind, shown) in [
        (cluster_policy(""), CLUSTER, format!("{{{ran}}}")),
        (deleting("DeletingPolicy", ""), DELETING, format!("{{{ready},{ran}}}")),
    ] {
        let mut harness = Harness::new();
        for (namespace, name, metadata) in
            [("a", "one", DUE), ("b", "two", DUE), ("a", "other", "labels: {}"), ("kube-system", "hidden", DUE)]
        {
            harness.config_map(namespace, name, metadata);
        }
        harness.create(&policy);
        harness.observe();
        harness.pass(569);
        assert_eq!(harness.take_deleted(), [""; 0], "it is 00:09:59");
        harness.pass(1);
        assert_eq!(harness.take_deleted(), ["one", "two"], "it is 00:10");
        assert!(harness.has("a", "other") && harness.has("kube-system", "hidden"));
        assert_eq!(status(&harness, kind).to_json(), shown);
        // The new status arrives, and changes nothing; what comes later waits for the next time.
        harness.config_map("a", "later", DUE);
        harness.observe();
        harness.pass(599);
        assert_eq!(harness.take_deleted(), [""; 0]);
        harness.pass(1);
        assert_eq!(harness.take_deleted(), ["later"]);
    }
}

#[test]
fn what_was_missed_is_made_up_by_one_run() {
    let mut harness = Harness::new();
    harness.create(&cluster_policy(""));
    harness.observe();
    harness.pass(570);
    harness.config_map("a", "one", DUE);
    // Nobody leads for three hours.
    harness.now += 10_800_000;
    harness.restart();
    harness.settle();
    assert_eq!(harness.take_deleted(), ["one"]);
    harness.config_map("a", "two", DUE);
    harness.restart();
    harness.settle();
    assert_eq!(harness.take_deleted(), [""; 0], "the run counts, although the process knows nothing of it");
}

#[test]
fn policies_of_a_namespace_stay_in_it() {
    let cleanup = cluster_policy("namespace: a").replace("ClusterCleanupPolicy", "CleanupPolicy");
    for policy in [cleanup, deleting("NamespacedDeletingPolicy", "namespace: a")] {
        let mut harness = Harness::new();
        harness.config_map("a", "own", DUE);
        harness.config_map("b", "foreign", DUE);
        harness.create(&policy);
        harness.observe();
        harness.pass(600);
        assert_eq!(harness.take_deleted(), ["own"]);
    }
}

#[test]
fn exceptions_keep_what_they_name() {
    let mut harness = Harness::new();
    harness.config_map("a", "one", DUE);
    harness.config_map("a", "two", DUE);
    harness.create(&deleting("DeletingPolicy", ""));
    harness.create(
        "{apiVersion: policies.kyverno.io/v1beta1, kind: PolicyException, metadata: {name: e, namespace: a}, spec: \
         {policyRefs: [{name: p, kind: DeletingPolicy}], matchConditions: \
         [{name: one, expression: \"object.metadata.name == 'one'\"}]}}",
    );
    harness.observe();
    harness.pass(600);
    assert_eq!(harness.take_deleted(), ["two"]);
}

#[test]
fn managed_objects_stay_if_the_operator_wants_it() {
    for protect_managed in [false, true] {
        let mut harness = Harness::with(CleanupOptions { protect_managed, limit: None }, "");
        harness.config_map("a", "made", "labels: {due: 'yes', app.kubernetes.io/managed-by: kyverno}");
        harness.create(&cluster_policy(""));
        harness.observe();
        harness.pass(600);
        assert_eq!(harness.has("a", "made"), protect_managed);
    }
}

#[test]
fn an_audit_deletes_nothing_and_says_what_it_would() {
    let annotation = "annotations: {ephor.dev/cleanup-mode: audit}";
    for (policy, kind, keys) in [
        (cluster_policy(annotation), CLUSTER, &["conditions"][..]),
        (deleting("DeletingPolicy", annotation), DELETING, &["conditionStatus", "conditions"]),
    ] {
        let mut harness = Harness::new();
        harness.config_map("a", "one", DUE);
        harness.config_map("b", "two", DUE);
        harness.create(&policy);
        harness.observe();
        harness.pass(600);
        assert_eq!(harness.take_deleted(), [""; 0]);
        let said = condition(&status(&harness, kind), keys).unwrap();
        assert_eq!(said, ("Audited".into(), "2 objects would be deleted: ConfigMap a/one, ConfigMap b/two".into()));
        assert!(harness.metrics.text().contains("ephor_cleanup_audited_objects_total{"), "{}", harness.metrics.text());
    }
}

#[test]
fn a_run_that_would_delete_too_much_deletes_nothing() {
    for (policy, by_flag) in
        [(cluster_policy("annotations: {ephor.dev/cleanup-limit: '2'}"), None), (cluster_policy(""), Some(2))]
    {
        let mut harness = Harness::with(CleanupOptions { limit: by_flag, protect_managed: false }, "");
        for name in ["one", "two", "three"] {
            harness.config_map("a", name, DUE);
        }
        harness.create(&policy);
        harness.observe();
        harness.pass(600);
        assert_eq!(harness.take_deleted(), [""; 0]);
        let (reason, message) = condition(&status(&harness, CLUSTER), &["conditions"]).unwrap();
        assert_eq!(reason, "LimitExceeded");
        assert!(message.starts_with("the run would delete more than 2 objects"), "{message}");
        // As many as the limit may go.
        remove(&harness.inner, "a", "three");
        harness.observe();
        harness.pass(600);
        assert_eq!(harness.take_deleted().len(), 2);
        assert_eq!(condition(&status(&harness, CLUSTER), &["conditions"]).unwrap().0, "Succeeded");
    }
}

#[test]
fn annotations_that_cannot_be_read_delete_nothing() {
    for annotation in ["ephor.dev/cleanup-mode: dry", "ephor.dev/cleanup-limit: few", "ephor.dev/cleanup-limit: '-1'"] {
        let mut harness = Harness::new();
        harness.config_map("a", "one", DUE);
        harness.create(&cluster_policy(&format!("annotations: {{{annotation}}}")));
        harness.observe();
        harness.pass(6000);
        assert!(harness.has("a", "one"), "{annotation}");
    }
}

#[test]
fn what_is_refused_is_said_and_tried_at_the_next_time() {
    let mut harness = Harness::new();
    harness.config_map("a", "one", DUE);
    harness.create(&cluster_policy(""));
    harness.observe();
    harness.allowed.store(false, Ordering::SeqCst);
    harness.pass(600);
    let (reason, message) = condition(&status(&harness, CLUSTER), &["conditions"]).unwrap();
    assert_eq!((&*reason, harness.has("a", "one")), ("Failed", true));
    assert!(message.contains("ConfigMap a/one") && message.contains("you may not delete it"), "{message}");
    harness.allowed.store(true, Ordering::SeqCst);
    harness.observe();
    harness.pass(600);
    assert_eq!(harness.take_deleted(), ["one"]);
    assert_eq!(condition(&status(&harness, CLUSTER), &["conditions"]).unwrap().0, "Succeeded");
}

#[test]
fn another_object_of_the_name_stays_and_a_changed_one_is_judged_again() {
    type Change = fn(&MemoryCluster, &str);
    let recreate: Change = |cluster, name| {
        remove(cluster, "a", name);
        create(cluster, &config_map("a", name, DUE));
    };
    let keep: Change = |cluster, name| {
        let resource = cluster.resolve("v1", "ConfigMap").unwrap();
        let patch = Patch::merge(Value::from_json(r#"{"metadata":{"labels":{"due":"no"}}}"#).unwrap());
        cluster.patch(&resource, Some("a"), name, &patch, &WriteOptions::default()).unwrap();
    };
    let touch: Change = |cluster, name| {
        let resource = cluster.resolve("v1", "ConfigMap").unwrap();
        let patch = Patch::merge(Value::from_json(r#"{"data":{"x":"y"}}"#).unwrap());
        cluster.patch(&resource, Some("a"), name, &patch, &WriteOptions::default()).unwrap();
    };
    for (change, stays) in [(recreate, true), (keep, true), (touch, false)] {
        let mut harness = Harness::new();
        harness.config_map("a", "one", DUE);
        harness.create(&cluster_policy(""));
        harness.observe();
        *harness.race.lock().unwrap() = Some(Box::new(change));
        harness.pass(600);
        assert_eq!(harness.has("a", "one"), stays);
    }
}

#[test]
fn a_policy_that_is_made_anew_begins_anew() {
    let mut harness = Harness::new();
    harness.create(&cluster_policy(""));
    harness.observe();
    harness.pass(600);
    let before = uid(&harness.get(CLUSTER, ("", "p")).unwrap());
    let resource = harness.resource(CLUSTER.0, CLUSTER.1);
    harness.inner.delete(&resource, None, "p", &DeleteOptions::default()).unwrap();
    harness.create(&cluster_policy(""));
    assert_ne!(uid(&harness.get(CLUSTER, ("", "p")).unwrap()), before);
    harness.config_map("a", "one", DUE);
    harness.observe();
    harness.pass(9);
    assert_eq!(harness.take_deleted(), [""; 0]);
    harness.pass(600);
    assert_eq!(harness.take_deleted(), ["one"]);
}

#[test]
fn who_does_not_lead_deletes_nothing() {
    let mut harness = Harness::new();
    harness.config_map("a", "one", DUE);
    harness.config_map("a", "short", "labels: {cleanup.kyverno.io/ttl: 1s}");
    harness.create(&cluster_policy(""));
    harness.observe();
    harness.leads.store(false, Ordering::SeqCst);
    harness.pass(600);
    assert_eq!((harness.take_deleted(), status(&harness, CLUSTER)), (Vec::new(), Value::Null));
    harness.leads.store(true, Ordering::SeqCst);
    harness.pass(60);
    assert_eq!(harness.take_deleted().len(), 2);
}

#[test]
fn a_clock_that_goes_back_stops_no_policy() {
    let mut harness = Harness::new();
    harness.create(&cluster_policy(""));
    harness.observe();
    let begin = harness.now;
    harness.to(begin + 86_400_000);
    harness.config_map("a", "one", DUE);
    harness.observe();
    harness.to(begin + 3_600_000);
    assert_eq!(harness.take_deleted(), [""; 0]);
    harness.to(begin + 3_600_000 + 600_000);
    assert_eq!(harness.take_deleted(), ["one"], "its last run lies in the future, which counts as now");
}

#[test]
fn patterns_of_kinds_select_nothing() {
    let mut harness = Harness::new();
    harness.config_map("a", "one", DUE);
    harness.create(&cluster_policy("").replace("kinds: [ConfigMap]", "kinds: ['*']"));
    harness.observe();
    harness.pass(1200);
    assert!(harness.has("a", "one"));
}
