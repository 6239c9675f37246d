//! Triggers that are events: deletions, connections, subresources. And what is rendered once.

use ephor_cluster::Cluster;
use ephor_expr::Value;

use super::harness::{Harness, document};

fn policy(kinds: &str, more: &str, generate: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{rules: [{{name: r,
          match: {{any: [{{resources: {{kinds: [{kinds}]{more}}}}}]}}, generate: {{{generate}}}}}]}}}}"
    )
}

const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, labels: {'on': 'yes'}}, data: {v: x}}";

fn made(harness: &Harness) -> Option<Value> {
    harness.find("{apiVersion: v1, kind: Secret, metadata: {name: made}}")
}

fn exec(number: usize) -> Value {
    document(&format!(
        "{{uid: exec-{number}, operation: CONNECT, kind: {{group: '', version: v1, kind: PodExecOptions}},
          resource: {{group: '', version: v1, resource: pods}}, subResource: exec, name: pod, namespace: default,
          requestKind: {{group: '', version: v1, kind: PodExecOptions}},
          requestResource: {{group: '', version: v1, resource: pods}}, requestSubResource: exec,
          userInfo: {{username: ann}}, dryRun: false, oldObject: null,
          object: {{apiVersion: v1, kind: PodExecOptions, command: [sh], container: main}}}}"
    ))
}

#[test]
fn two_shells_are_two_events() {
    let mut harness = Harness::new();
    harness.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: main, image: example}]}}",
    );
    let event = "synchronize: false, apiVersion: v1, kind: Event, namespace: default,
      name: \"exec-{{ request.uid }}\",
      data: {involvedObject: {namespace: default}, reason: \"{{ request.userInfo.username }}\"}";
    harness.apply(&policy("Pod/exec", "", event).replace("spec: {rules", "spec: {background: false, rules"));
    harness.settle();
    harness.admission.ask(&exec(1));
    harness.admission.ask(&exec(2));
    assert_eq!(harness.pending_requests(), 2);
    harness.settle();
    let events = harness.list("v1", "Event");
    let mut names: Vec<&str> = events.iter().filter_map(|event| event.str_at(&["metadata", "name"])).collect();
    names.sort_unstable();
    assert_eq!(names, ["exec-exec-1", "exec-exec-2"]);
    assert!(events.iter().all(|event| event.str_at(&["reason"]) == Some("ann")));
    assert_eq!(harness.pending_requests(), 0);
}

#[test]
fn a_deletion_makes_what_its_rule_says() {
    let mut harness = Harness::new();
    let secret = "synchronize: false, apiVersion: v1, kind: Secret, namespace: default, name: made,
      data: {data: {k: \"{{ request.oldObject.data.v }}\"}}";
    harness.apply(&policy("ConfigMap", ", operations: [DELETE]", secret));
    harness.settle();
    harness.apply(TRIGGER);
    harness.settle();
    assert_eq!(made(&harness), None);
    harness.delete(TRIGGER);
    harness.settle();
    assert_eq!(made(&harness).unwrap().str_at(&["data", "k"]), Some("x"));
}

#[test]
fn an_end_that_is_refused_makes_nothing() {
    let mut harness = Harness::new();
    let secret = "synchronize: true, apiVersion: v1, kind: Secret, namespace: default, name: made,
      data: {data: {k: \"{{ request.oldObject.data.v }}\"}}";
    harness.apply(&policy("ConfigMap", ", operations: [DELETE]", secret));
    harness.apply(TRIGGER);
    harness.settle();
    harness.admission.refuse(true);
    let trigger = document(TRIGGER);
    let refused = harness.cluster.delete(
        &harness.resource(&trigger),
        Some("default"),
        "t",
        &ephor_cluster::DeleteOptions::default(),
    );
    assert!(refused.is_err());
    harness.admission.refuse(false);
    harness.settle();
    assert_eq!(made(&harness), None);
    harness.delete(TRIGGER);
    harness.settle();
    assert!(made(&harness).is_some());
}

#[test]
fn what_an_end_made_follows_the_last_word_of_its_policy() {
    let policy = policy(
        "ConfigMap",
        ", operations: [DELETE]",
        "synchronize: true, orphanDownstreamOnPolicyDelete: false, apiVersion: v1, kind: Secret, namespace: default,
         name: made, data: {data: {k: v}}",
    );
    for orphan in [true, false] {
        let mut harness = Harness::new();
        harness.apply(&policy.replace("Delete: false", &format!("Delete: {}", !orphan)));
        harness.apply(TRIGGER);
        harness.delete(TRIGGER);
        harness.settle();
        harness.apply(&policy.replace("Delete: false", &format!("Delete: {orphan}")));
        harness.settle();
        harness.stop();
        harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
        harness.restart();
        harness.settle();
        assert_eq!(made(&harness).is_some(), orphan);
    }
}

#[test]
fn what_chance_and_the_clock_are_in_is_rendered_once() {
    let mut harness = Harness::new();
    let secret = "synchronize: true, generateExisting: true, apiVersion: v1, kind: Secret, namespace: default,
      name: made, data: {data: {k: \"{{ random('[a-z]{12}') }}\", at: \"{{ time_now_utc() }}\"}}";
    harness.apply(&policy("ConfigMap", ", selector: {matchLabels: {'on': 'yes'}}", secret));
    harness.apply(TRIGGER);
    harness.settle();
    let first = made(&harness).unwrap();
    harness.apply(&TRIGGER.replace("v: x", "v: y"));
    harness.settle();
    harness.restart();
    harness.settle();
    harness.controller.resync(harness.now);
    harness.settle();
    assert_eq!(made(&harness).unwrap(), first, "not rendered again");
    harness.delete("{apiVersion: v1, kind: Secret, metadata: {name: made}}");
    harness.settle();
    assert!(made(&harness).is_some(), "made again where it is gone");
    harness.apply(&TRIGGER.replace("'yes'", "'no'"));
    harness.settle();
    assert_eq!(made(&harness), None, "and taken away with its trigger");
}

#[test]
fn names_by_chance_stay_as_they_were_drawn() {
    let mut harness = Harness::new();
    let secret = "synchronize: true, generateExisting: true, apiVersion: v1, kind: Secret, namespace: default,
      name: \"made-{{ random('[a-z]{12}') }}\", data: {data: {k: v}}";
    harness.apply(&policy("ConfigMap", ", selector: {matchLabels: {'on': 'yes'}}", secret));
    harness.apply(TRIGGER);
    harness.settle();
    let first = harness.list("v1", "Secret");
    assert_eq!(first.len(), 1);
    harness.restart();
    harness.settle();
    harness.apply(&TRIGGER.replace("v: x", "v: y"));
    harness.settle();
    assert_eq!(harness.list("v1", "Secret"), first);
    harness.delete(TRIGGER);
    harness.settle();
    assert_eq!(harness.list("v1", "Secret"), []);
}

#[test]
fn a_target_without_api_version_is_of_the_one_group_that_serves_its_kind() {
    let mut harness = Harness::new();
    let secret = "synchronize: true, kind: Secret, namespace: default, name: made,
      clone: {namespace: default, name: source}";
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: source}, data: {k: v}}");
    harness.apply(&policy("ConfigMap", "", secret));
    harness.apply(TRIGGER);
    harness.settle();
    assert_eq!(made(&harness).unwrap().str_at(&["data", "k"]), Some("v"));
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: source}, data: {k: w}}");
    harness.settle();
    assert_eq!(made(&harness).unwrap().str_at(&["data", "k"]), Some("w"), "and it follows its source");
}

#[test]
fn what_is_rendered_once_is_rendered_in_full() {
    let mut harness = Harness::new();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: one}}");
    harness.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r,
          match: {any: [{resources: {kinds: [ConfigMap]}}]},
          context: [{name: at, variable: {jmesPath: 'time_now_utc()'}}],
          generate: {synchronize: true, foreach: [{list: \"split(request.object.data.spaces, ',')\", apiVersion: v1, kind: Secret,
            namespace: '{{ element }}', name: made, data: {data: {at: '{{ at }}'}}}]}}]}}",
    );
    harness.settle();
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {spaces: 'one,two'}}");
    let made = |harness: &Harness, space: &str| {
        harness.find(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: made, namespace: {space}}}}}"))
    };
    while made(&harness, "one").is_none() {
        harness.pump();
        harness.controller.step(harness.now);
    }
    let first = made(&harness, "one");
    harness.settle();
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: two}}");
    harness.settle();
    assert!(made(&harness, "two").is_some(), "{:?}", harness.controller.state().failures);
    assert_eq!(made(&harness, "one"), first, "what is there is not rendered again");
}
