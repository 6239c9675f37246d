//! Synchronizing rules about subresources: each request is an event.

use ephor_expr::Value;

use super::harness::{Harness, document};

fn policy(kind: &str, data: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{rules: [{{name: r,
          match: {{any: [{{resources: {{kinds: [{kind}]}}}}]}}, generate: {{synchronize: true, apiVersion: v1,
            kind: Secret, name: made, namespace: default, data: {{data: {{k: '{data}'}}}}}}}}]}}}}"
    )
}

const DEPLOYMENT: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {
  replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
    spec: {containers: [{name: main, image: example}]}}}}";

fn made(harness: &Harness) -> Option<String> {
    let made = harness.find("{apiVersion: v1, kind: Secret, metadata: {name: made}}")?;
    Some(made.str_at(&["data", "k"]).unwrap_or_default().to_owned())
}

fn scale(harness: &Harness, number: usize, replicas: usize) {
    let uid = harness.find(DEPLOYMENT).unwrap().str_at(&["metadata", "uid"]).unwrap().to_owned();
    let object = format!(
        "{{apiVersion: autoscaling/v1, kind: Scale, metadata: {{name: web, namespace: default, uid: {uid}}},
          spec: {{replicas: {replicas}}}}}"
    );
    harness.admission.ask(&document(&format!(
        "{{uid: scale-{number}, operation: UPDATE, kind: {{group: autoscaling, version: v1, kind: Scale}},
          resource: {{group: apps, version: v1, resource: deployments}}, subResource: scale, name: web,
          namespace: default, requestKind: {{group: autoscaling, version: v1, kind: Scale}},
          requestResource: {{group: apps, version: v1, resource: deployments}}, requestSubResource: scale,
          userInfo: {{username: ann}}, dryRun: false, object: {object}, oldObject: {object}}}"
    )));
}

fn failures(harness: &Harness) -> Vec<String> {
    harness.controller.state().failures.values().flat_map(|failures| failures.values().cloned()).collect()
}

#[test]
fn what_a_scaling_made_stays_and_the_next_one_changes_it() {
    let mut harness = Harness::new();
    harness.apply(DEPLOYMENT);
    harness.apply(&policy("Deployment/scale", "n{{ request.object.spec.replicas }}"));
    harness.settle();
    for (number, replicas) in [(1, 3), (2, 5)] {
        scale(&harness, number, replicas);
        harness.settle();
        assert_eq!(made(&harness).as_deref(), Some(&*format!("n{replicas}")));
        harness.restart();
        harness.settle();
        assert_eq!(made(&harness).as_deref(), Some(&*format!("n{replicas}")), "after a restart");
    }
    harness.apply(&DEPLOYMENT.replace("replicas: 1", "replicas: 2"));
    harness.controller.resync(harness.now);
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("n5"));
    assert_eq!(failures(&harness), [] as [&str; 0]);
    harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    harness.settle();
    assert_eq!(made(&harness), None, "it goes with its policy");
}

#[test]
fn what_a_shell_made_stays_and_nothing_fails() {
    let mut harness = Harness::new();
    harness.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: main, image: example}]}}",
    );
    harness.apply(&policy("Pod/exec", "{{ request.object.container }}"));
    harness.settle();
    harness.admission.ask(&document(
        "{uid: exec-1, operation: CONNECT, kind: {group: '', version: v1, kind: PodExecOptions},
          resource: {group: '', version: v1, resource: pods}, subResource: exec, name: pod, namespace: default,
          requestKind: {group: '', version: v1, kind: PodExecOptions},
          requestResource: {group: '', version: v1, resource: pods}, requestSubResource: exec,
          userInfo: {username: ann}, dryRun: false, oldObject: null,
          object: {apiVersion: v1, kind: PodExecOptions, command: [sh], container: main}}",
    ));
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("main"));
    let mut touched = harness.find("{apiVersion: v1, kind: Secret, metadata: {name: made}}").unwrap();
    ephor_runtime::content::set_entry(&mut touched, "labels", "touched", Some("yes"));
    harness.apply_object(&touched);
    harness.settle();
    harness.restart();
    harness.settle();
    assert_eq!(made(&harness).as_deref(), Some("main"));
    assert_eq!(failures(&harness), [] as [&str; 0]);
    assert_eq!(harness.list("kyverno.io/v2", "UpdateRequest"), [] as [Value; 0]);
}
