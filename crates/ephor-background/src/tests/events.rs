//! Triggers that are events: deletions, connections, subresources. And what is rendered once.

use ephor_cluster::Cluster;
use ephor_expr::Value;

use super::bed::{Bed, document};

fn policy(kinds: &str, more: &str, generate: &str) -> String {
    format!(
        "{{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {{name: p}}, spec: {{rules: [{{name: r,
          match: {{any: [{{resources: {{kinds: [{kinds}]{more}}}}}]}}, generate: {{{generate}}}}}]}}}}"
    )
}

const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, labels: {'on': 'yes'}}, data: {v: x}}";

fn made(bed: &Bed) -> Option<Value> {
    bed.find("{apiVersion: v1, kind: Secret, metadata: {name: made}}")
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
    let mut bed = Bed::new();
    bed.apply("{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: main, image: example}]}}");
    let event = "synchronize: false, apiVersion: v1, kind: Event, namespace: default,
      name: \"exec-{{ request.uid }}\",
      data: {involvedObject: {namespace: default}, reason: \"{{ request.userInfo.username }}\"}";
    bed.apply(&policy("Pod/exec", "", event).replace("spec: {rules", "spec: {background: false, rules"));
    bed.settle();
    bed.door.ask(&exec(1));
    bed.door.ask(&exec(2));
    assert_eq!(bed.pending_requests(), 2);
    bed.settle();
    let events = bed.list("v1", "Event");
    let mut names: Vec<&str> = events.iter().filter_map(|event| event.str_at(&["metadata", "name"])).collect();
    names.sort_unstable();
    assert_eq!(names, ["exec-exec-1", "exec-exec-2"]);
    assert!(events.iter().all(|event| event.str_at(&["reason"]) == Some("ann")));
    assert_eq!(bed.pending_requests(), 0);
}

#[test]
fn a_deletion_makes_what_its_rule_says() {
    let mut bed = Bed::new();
    let secret = "synchronize: false, apiVersion: v1, kind: Secret, namespace: default, name: made,
      data: {data: {k: \"{{ request.oldObject.data.v }}\"}}";
    bed.apply(&policy("ConfigMap", ", operations: [DELETE]", secret));
    bed.settle();
    bed.apply(TRIGGER);
    bed.settle();
    assert_eq!(made(&bed), None);
    bed.delete(TRIGGER);
    bed.settle();
    assert_eq!(made(&bed).unwrap().str_at(&["data", "k"]), Some("x"));
}

#[test]
fn an_end_that_is_refused_makes_nothing() {
    let mut bed = Bed::new();
    let secret = "synchronize: true, apiVersion: v1, kind: Secret, namespace: default, name: made,
      data: {data: {k: \"{{ request.oldObject.data.v }}\"}}";
    bed.apply(&policy("ConfigMap", ", operations: [DELETE]", secret));
    bed.apply(TRIGGER);
    bed.settle();
    bed.door.refuse(true);
    let trigger = document(TRIGGER);
    let refused =
        bed.cluster.delete(&bed.resource(&trigger), Some("default"), "t", &ephor_cluster::DeleteOptions::default());
    assert!(refused.is_err());
    bed.door.refuse(false);
    bed.settle();
    assert_eq!(made(&bed), None);
    bed.delete(TRIGGER);
    bed.settle();
    assert!(made(&bed).is_some());
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
        let mut bed = Bed::new();
        bed.apply(&policy.replace("Delete: false", &format!("Delete: {}", !orphan)));
        bed.apply(TRIGGER);
        bed.delete(TRIGGER);
        bed.settle();
        bed.apply(&policy.replace("Delete: false", &format!("Delete: {orphan}")));
        bed.settle();
        bed.stop();
        bed.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
        bed.restart();
        bed.settle();
        assert_eq!(made(&bed).is_some(), orphan);
    }
}

#[test]
fn what_chance_and_the_clock_are_in_is_rendered_once() {
    let mut bed = Bed::new();
    let secret = "synchronize: true, generateExisting: true, apiVersion: v1, kind: Secret, namespace: default,
      name: made, data: {data: {k: \"{{ random('[a-z]{12}') }}\", at: \"{{ time_now_utc() }}\"}}";
    bed.apply(&policy("ConfigMap", ", selector: {matchLabels: {'on': 'yes'}}", secret));
    bed.apply(TRIGGER);
    bed.settle();
    let first = made(&bed).unwrap();
    bed.apply(&TRIGGER.replace("v: x", "v: y"));
    bed.settle();
    bed.restart();
    bed.settle();
    bed.controller.resync(bed.now);
    bed.settle();
    assert_eq!(made(&bed).unwrap(), first, "not rendered again");
    bed.delete("{apiVersion: v1, kind: Secret, metadata: {name: made}}");
    bed.settle();
    assert!(made(&bed).is_some(), "made again where it is gone");
    bed.apply(&TRIGGER.replace("'yes'", "'no'"));
    bed.settle();
    assert_eq!(made(&bed), None, "and taken away with its trigger");
}

#[test]
fn names_by_chance_stay_as_they_were_drawn() {
    let mut bed = Bed::new();
    let secret = "synchronize: true, generateExisting: true, apiVersion: v1, kind: Secret, namespace: default,
      name: \"made-{{ random('[a-z]{12}') }}\", data: {data: {k: v}}";
    bed.apply(&policy("ConfigMap", ", selector: {matchLabels: {'on': 'yes'}}", secret));
    bed.apply(TRIGGER);
    bed.settle();
    let first = bed.list("v1", "Secret");
    assert_eq!(first.len(), 1);
    bed.restart();
    bed.settle();
    bed.apply(&TRIGGER.replace("v: x", "v: y"));
    bed.settle();
    assert_eq!(bed.list("v1", "Secret"), first);
    bed.delete(TRIGGER);
    bed.settle();
    assert_eq!(bed.list("v1", "Secret"), []);
}

#[test]
fn a_target_without_api_version_is_of_the_one_group_that_serves_its_kind() {
    let mut bed = Bed::new();
    let secret = "synchronize: true, kind: Secret, namespace: default, name: made,
      clone: {namespace: default, name: source}";
    bed.apply("{apiVersion: v1, kind: Secret, metadata: {name: source}, data: {k: v}}");
    bed.apply(&policy("ConfigMap", "", secret));
    bed.apply(TRIGGER);
    bed.settle();
    assert_eq!(made(&bed).unwrap().str_at(&["data", "k"]), Some("v"));
    bed.apply("{apiVersion: v1, kind: Secret, metadata: {name: source}, data: {k: w}}");
    bed.settle();
    assert_eq!(made(&bed).unwrap().str_at(&["data", "k"]), Some("w"), "and it follows its source");
}

#[test]
fn what_is_rendered_once_is_rendered_in_full() {
    let mut bed = Bed::new();
    bed.apply("{apiVersion: v1, kind: Namespace, metadata: {name: one}}");
    bed.apply(
        "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r,
          match: {any: [{resources: {kinds: [ConfigMap]}}]},
          context: [{name: at, variable: {jmesPath: 'time_now_utc()'}}],
          generate: {synchronize: true, foreach: [{list: \"split(request.object.data.spaces, ',')\", apiVersion: v1, kind: Secret,
            namespace: '{{ element }}', name: made, data: {data: {at: '{{ at }}'}}}]}}]}}",
    );
    bed.settle();
    bed.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}, data: {spaces: 'one,two'}}");
    let made = |bed: &Bed, space: &str| {
        bed.find(&format!("{{apiVersion: v1, kind: Secret, metadata: {{name: made, namespace: {space}}}}}"))
    };
    while made(&bed, "one").is_none() {
        bed.pump();
        bed.controller.step(bed.now);
    }
    let first = made(&bed, "one");
    bed.settle();
    bed.apply("{apiVersion: v1, kind: Namespace, metadata: {name: two}}");
    bed.settle();
    assert!(made(&bed, "two").is_some(), "{:?}", bed.controller.state().failures);
    assert_eq!(made(&bed, "one"), first, "what is there is not rendered again");
}
