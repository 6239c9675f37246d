//! What the settings say holds in the background too.

use super::bed::Bed;

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

fn failures(bed: &Bed) -> String {
    let state = bed.controller.state();
    state.failures.values().flat_map(|failed| failed.values()).map(ToString::to_string).collect()
}

#[test]
fn a_context_larger_than_the_settings_allow_is_an_error() {
    let mut bed = Bed::new();
    bed.set("{maxContextSize: '20'}");
    bed.apply(POLICY);
    bed.apply(LARGE);
    bed.apply(TRIGGER);
    bed.settle();
    let why = failures(&bed);
    assert!(why.contains("context data exceed 20 bytes (maxContextSize)"), "{why}");
    assert!(bed.find(MADE).is_none());

    bed.set("{maxContextSize: 1Mi}");
    bed.controller.resync(bed.now);
    bed.settle();
    let made = bed.find(MADE).unwrap();
    assert_eq!(made.str_at(&["stringData", "k"]), Some("a text of some length"));
}

#[test]
fn for_a_hidden_trigger_nothing_is_made_and_what_there_is_stays() {
    let policy = POLICY.replace("name: made", "name: 'of-{{ request.object.metadata.name }}'");
    let made = |name: &str| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: of-{name}}}}}");
    let trigger = |name: &str, on: &str| TRIGGER.replace("name: t", &format!("name: {name}")).replace("yes", on);
    for existing in ["true", "false"] {
        let mut bed = Bed::new();
        bed.apply(
            &policy.replace("synchronize: true", &format!("generateExisting: {existing}\n      synchronize: true")),
        );
        bed.apply(LARGE);
        bed.apply(&trigger("a", "yes"));
        bed.settle();
        assert!(bed.find(&made("a")).is_some());

        bed.set("{resourceFilters: '[ConfigMap,default,a][ConfigMap,default,b]'}");
        bed.apply(&trigger("a", "no"));
        bed.apply(&trigger("b", "yes"));
        bed.apply(&trigger("c", "yes"));
        bed.settle();
        bed.controller.resync(bed.now);
        bed.settle();
        assert_eq!(bed.pending_requests(), 0);
        let there: Vec<bool> = ["a", "b", "c"].iter().map(|name| bed.find(&made(name)).is_some()).collect();
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
        let mut bed = Bed::new();
        bed.set(&format!("{{resourceFilters: '{filters}'}}"));
        bed.apply("{apiVersion: v1, kind: Secret, metadata: {name: target}}");
        bed.apply(TRIGGER);
        bed.apply(policy);
        bed.apply(&TRIGGER.replace("name: t", "name: u"));
        bed.settle();
        let target = bed.find("{apiVersion: v1, kind: Secret, metadata: {name: target}}").unwrap();
        assert_eq!(target.at(&["metadata", "labels", "by"]).is_some(), filters.contains("elsewhere"));
    }
}
