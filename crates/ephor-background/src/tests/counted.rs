//! What metrics say about the work, and what is told of it.

use super::harness::Harness;
use crate::writer::Note;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {layer: business}}}}]}
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: made
      namespace: '{{ request.object.metadata.name }}'
      clone: {namespace: default, name: source}
";

fn value(harness: &Harness, series: &str) -> Option<String> {
    let text = harness.metrics.text();
    text.lines().find_map(|line| line.strip_prefix(series)).map(|value| value.trim().to_owned())
}

#[test]
fn failures_are_counted_until_they_are_made_good() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.settle();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {layer: business}}}");
    harness.settle();
    let labels = r#"{policy_namespace="-",policy_name="p"}"#;
    let retries = format!("ephor_background_retries_total{labels}");
    let lag = format!("ephor_background_convergence_lag_seconds_count{labels}");
    assert!(value(&harness, &retries).is_some_and(|count| count != "0"), "{}", harness.metrics.text());
    let health = harness.controller.state().health(harness.now);
    assert_eq!(health.failing.len(), 1, "{health:?}");
    assert!(health.backlog["reconcile"].depth == 1 && health.backlog["reconcile"].age.as_secs() > 60);
    let failed = harness.notes.lock().unwrap().iter().any(|note| match note {
        Note::Failed { trigger, .. } => trigger.as_ref().is_some_and(|trigger| trigger.name == "ns-a"),
        Note::Changed { .. } | Note::Excepted { .. } => false,
    });
    assert!(failed, "it is told of the trigger");

    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: source}, data: {k: v}}");
    harness.settle();
    let health = harness.controller.state().health(harness.now);
    assert!(health.failing.is_empty() && health.backlog.values().all(|backlog| backlog.depth == 0), "{health:?}");
    assert!(value(&harness, &lag).is_some_and(|count| count != "0"), "{}", harness.metrics.text());
    let text = harness.metrics.text();
    let judged = |line: &&str| {
        line.contains(r#"rule_execution_cause="background_scan""#) && line.contains(r#"rule_result="pass""#)
    };
    assert!(text.lines().any(|line| judged(&line)), "{text}");
    assert!(!text.contains(r#"resource_namespace="ns-a",resource_request_operation"#), "a series for each Namespace");
}

#[test]
fn a_deletion_is_told_of_the_trigger() {
    let mut harness = Harness::new();
    harness.apply(POLICY);
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: source}, data: {k: v}}");
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {layer: business}}}");
    harness.settle();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ns-a, labels: {layer: other}}}");
    harness.settle();
    let notes = harness.notes.lock().unwrap();
    let deleted = notes.iter().find_map(|note| match note {
        Note::Changed { change, trigger, .. } if change.verb() == "delete" => trigger.clone(),
        _ => None,
    });
    assert_eq!(deleted.map(|trigger| (trigger.kind, trigger.name)), Some(("Namespace".into(), "ns-a".into())));
}
