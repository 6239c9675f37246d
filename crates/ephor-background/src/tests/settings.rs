//! What the settings say holds in the background too.

use super::harness::Harness;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {on: 'yes'}}}}]}
    context: [{name: large, configMap: {name: large, namespace: default}}]
    generate:
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: made
      namespace: default
      data: {stringData: {k: '{{ large.data.text }}'}}
";
const LARGE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: large}, data: {text: 'a text of some length'}}";
const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, labels: {on: 'yes'}}}";
const MADE: &str = "{apiVersion: v1, kind: Secret, metadata: {name: made}}";

fn failures(harness: &Harness) -> String {
    let state = harness.controller.state();
    state.failures.values().flat_map(|failed| failed.values()).map(ToString::to_string).collect()
}

#[test]
fn a_context_larger_than_the_settings_allow_is_an_error() {
    let mut harness = Harness::new();
    harness.set("{maxContextSize: '20'}");
    harness.apply(POLICY);
    harness.apply(LARGE);
    harness.apply(TRIGGER);
    harness.settle();
    let why = failures(&harness);
    assert!(why.contains("context data exceed 20 bytes (maxContextSize)"), "{why}");
    assert!(harness.find(MADE).is_none());

    harness.set("{maxContextSize: 1Mi}");
    harness.controller.resync(harness.now);
    harness.settle();
    let made = harness.find(MADE).unwrap();
    assert_eq!(made.str_at(&["stringData", "k"]), Some("a text of some length"));
}

#[test]
fn for_a_hidden_trigger_nothing_is_made_and_what_there_is_stays() {
    let policy = POLICY.replace("name: made", "name: 'of-{{ request.object.metadata.name }}'");
    let made = |name: &str| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: of-{name}}}}}");
    let trigger = |name: &str, on: &str| TRIGGER.replace("name: t", &format!("name: {name}")).replace("yes", on);
    for existing in ["true", "false"] {
        let mut harness = Harness::new();
        harness.apply(
            &policy.replace("synchronize: true", &format!("generateExisting: {existing}\n      synchronize: true")),
        );
        harness.apply(LARGE);
        harness.apply(&trigger("a", "yes"));
        harness.settle();
        assert!(harness.find(&made("a")).is_some());

        harness.set("{resourceFilters: '[ConfigMap,default,a][ConfigMap,default,b]'}");
        harness.apply(&trigger("a", "no"));
        harness.apply(&trigger("b", "yes"));
        harness.apply(&trigger("c", "yes"));
        harness.settle();
        harness.controller.resync(harness.now);
        harness.settle();
        assert_eq!(harness.pending_requests(), 0);
        let there: Vec<bool> = ["a", "b", "c"].iter().map(|name| harness.find(&made(name)).is_some()).collect();
        assert_eq!(there, [true, false, true], "generateExisting {existing}");
    }
}

#[test]
fn for_a_hidden_trigger_nothing_is_mutated() {
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {on: 'yes'}}}}]}
    mutate:
      mutateExistingOnPolicyUpdate: true
      targets: [{apiVersion: v1, kind: Secret, name: target, namespace: default}]
      patchStrategicMerge: {metadata: {labels: {by: '{{ request.object.metadata.name }}'}}}
";
    for filters in ["[ConfigMap,default,*]", "[ConfigMap,elsewhere,*]"] {
        let mut harness = Harness::new();
        harness.set(&format!("{{resourceFilters: '{filters}'}}"));
        harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: target}}");
        harness.apply(TRIGGER);
        harness.apply(policy);
        harness.apply(&TRIGGER.replace("name: t", "name: u"));
        harness.settle();
        let target = harness.find("{apiVersion: v1, kind: Secret, metadata: {name: target}}").unwrap();
        assert_eq!(target.at(&["metadata", "labels", "by"]).is_some(), filters.contains("elsewhere"));
    }
}
