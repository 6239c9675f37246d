//! What Prometheus sees.

use std::time::Duration;

use ephor_expr::yaml::parse_value;

use super::*;
use crate::decision::answer::Answer;
use crate::decision::observe::Observer;
use crate::decision::path::Webhook;
use crate::decision::request::{AdmissionRequest, AdmissionReview};
use crate::policies::{ExceptionScope, StoredKind};

fn store() -> PolicyStore {
    PolicyStore::new(ExceptionScope::Disabled)
}

fn policy(name: &str, action: &str) -> Value {
    parse_value(&format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: {name}}}, spec: {{rules: [{{name: r, match: \
         {{any: [{{resources: {{kinds: [Service]}}}}]}}, validate: {{failureAction: {action}, deny: {{}}}}}}]}}, status: \
         {{conditions: [{{type: Ready, status: 'True'}}]}}}}"
    ))
    .unwrap()
}

fn lines(metrics: &Metrics, name: &str) -> Vec<String> {
    let text = metrics.text();
    let mut lines: Vec<String> = text.lines().filter(|line| line.contains(name)).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn counters_are_declared_with_their_suffix() {
    let metrics = Metrics::default();
    metrics.http_request("POST", "/validate/fail", Duration::from_millis(1));
    insta::assert_snapshot!(lines(&metrics, "kyverno_http_requests_total").join("\n"), @r#"
# HELP kyverno_http_requests_total HTTP requests.
# TYPE kyverno_http_requests_total counter
kyverno_http_requests_total{http_method="POST",http_url="/validate/fail"} 1
"#);
    insta::assert_snapshot!(lines(&metrics, "kyverno_info").join("\n").replace(env!("CARGO_PKG_VERSION"), "VERSION"), @r#"
# HELP kyverno_info Which version runs.
# TYPE kyverno_info gauge
kyverno_info{version="VERSION"} 1
"#);
    assert_eq!(lines(&metrics, "kyverno_events_dropped_total").last().unwrap(), "kyverno_events_dropped_total 0");
    assert!(!metrics.text().contains("EOF"));
}

#[test]
fn policies_and_their_changes_are_counted() {
    let (metrics, store) = (Metrics::default(), store());
    metrics.follow_policies(&store);
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Reset(vec![policy("a", "Audit"), policy("b", "Audit")]));
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(policy("a", "Enforce")));
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Delete(policy("b", "Audit")));
    insta::assert_snapshot!(lines(&metrics, "kyverno_policy_").join("\n"), @r#"
# HELP kyverno_policy_changes_total Policies created, updated and deleted.
# HELP kyverno_policy_rule_info_total The rules there are.
# TYPE kyverno_policy_changes_total counter
# TYPE kyverno_policy_rule_info_total gauge
kyverno_policy_changes_total{policy_validation_mode="audit",policy_type="cluster",policy_background_mode="true",policy_namespace="-",policy_name="a",policy_change_type="created"} 1
kyverno_policy_changes_total{policy_validation_mode="audit",policy_type="cluster",policy_background_mode="true",policy_namespace="-",policy_name="b",policy_change_type="created"} 1
kyverno_policy_changes_total{policy_validation_mode="audit",policy_type="cluster",policy_background_mode="true",policy_namespace="-",policy_name="b",policy_change_type="deleted"} 1
kyverno_policy_changes_total{policy_validation_mode="enforce",policy_type="cluster",policy_background_mode="true",policy_namespace="-",policy_name="a",policy_change_type="updated"} 1
kyverno_policy_rule_info_total{policy_validation_mode="enforce",policy_type="cluster",policy_background_mode="true",policy_namespace="-",policy_name="a",rule_name="r",rule_type="validate",status_ready="true"} 1
"#);
}

#[test]
fn what_is_switched_off_is_not_there_and_hidden_labels_are_summed() {
    let exposure = |text: &str| {
        let data = Map::from_iter([(Str::new("metricsExposure"), Value::from(text))]);
        Exposure::of_data(&data).0
    };
    let metrics = Metrics::new(exposure("{kyverno_http_requests: {disabledLabelDimensions: [http_url]}}"));
    metrics.http_request("POST", "/validate/fail", Duration::ZERO);
    metrics.http_request("POST", "/mutate/fail", Duration::ZERO);
    assert_eq!(lines(&metrics, "requests_total{"), [r#"kyverno_http_requests_total{http_method="POST"} 2"#]);
    metrics.expose(exposure("{kyverno_http_requests: {enabled: false}}"));
    metrics.http_request("POST", "/validate/fail", Duration::ZERO);
    assert_eq!(lines(&metrics, "kyverno_http_requests_total"), [""; 0]);
    assert_eq!(lines(&metrics, "seconds_count{").len(), 1);
}

#[test]
fn the_number_of_events_dropped_outlives_a_change_of_exposure() {
    let metrics = Metrics::default();
    metrics.events_dropped().inc();
    metrics.expose(Exposure::of_data(&Map::from_iter([(Str::new("bucketBoundaries"), Value::from("1"))])).0);
    assert_eq!(lines(&metrics, "kyverno_events_dropped_total 1").len(), 1);
}

/// A review of an object that somebody may have made up.
fn review_of(kind: &str, namespace: &str) -> AdmissionRequest {
    let kind = format!(r#"{{"group":"","version":"v1","kind":"{kind}"}}"#);
    let text = format!(
        r#"{{"request":{{"uid":"u","kind":{kind},"requestKind":{kind},"resource":{{"group":"","version":"v1","resource":"x"}},
        "operation":"CREATE","namespace":"{namespace}","userInfo":{{}}}}}}"#
    );
    AdmissionReview::parse(text.as_bytes()).unwrap().request
}

#[test]
fn kinds_and_namespaces_that_are_made_up_take_no_place_from_real_ones() {
    let (metrics, store) = (Metrics::default(), store());
    metrics.follow_policies(&store);
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Reset(vec![policy("a", "Audit")]));
    let namespaces = NamespaceLabels::default();
    namespaces.apply(StoreEvent::Apply(parse_value("{metadata: {name: team-a}}").unwrap()));
    metrics.know_namespaces(&namespaces);
    let answered = |kind: &str, namespace: &str| {
        metrics.answered(&review_of(kind, namespace), Webhook::Validate, &Answer::allow(), Duration::ZERO);
    };
    for i in 0..3000 {
        answered(&format!("Forged{i}"), "team-a");
        answered("Service", &format!("forged-{i}"));
    }
    // A change of policies gives no new room for what is made up.
    store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(policy("a", "Enforce")));
    for i in 3000..6000 {
        answered(&format!("Forged{i}"), "team-a");
    }
    answered("Service", "team-a");
    let lines = lines(&metrics, "kyverno_admission_requests_total{");
    assert_eq!(lines.len(), 500 + 3, "{:?}", lines.last());
    for (kind, namespace, count) in [("Service", "team-a", 1), ("Service", "_other", 3000), ("_other", "_other", 5500)]
    {
        let about = format!(r#"resource_kind="{kind}",resource_namespace="{namespace}""#);
        let line = lines.iter().find(|line| line.contains(&about));
        assert!(line.is_some_and(|line| line.ends_with(&format!(" {count}"))), "{about}: {line:?}");
    }
}

#[test]
fn policies_of_a_namespace_leave_series_to_others_and_go_with_their_policy() {
    let families = Families::new(Exposure::default(), Counter::default());
    let labels = |namespace: &'static str, name: &'static str, rule: &str| {
        families.policy_results.handle(&[("policy_namespace", namespace), ("policy_name", name), ("rule_name", rule)])
    };
    let made = |namespace, name| (0..20_000).filter(|n| labels(namespace, name, &n.to_string()).is_some()).count();
    assert_eq!((made("team-a", "p"), made("team-b", "p")), (500, 500));
    assert!(labels("team-a", "q", "r").is_none());
    families.policy_results.forget("team-a", "p");
    assert!(labels("team-a", "q", "r").is_some());
    assert_eq!(made("-", "cluster"), 10_000 - 501);
}
