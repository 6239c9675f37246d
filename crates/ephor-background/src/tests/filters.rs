//! Triggers that the settings hide from policies.

use super::harness::Harness;

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate:
      synchronize: true
      generateExisting: false
      apiVersion: v1
      kind: Secret
      name: made
      namespace: '{{ request.object.metadata.namespace }}'
      data: {stringData: {k: '{{ request.object.data.v }}'}}
";

const TRIGGER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: hidden}, data: {v: x}}";
const FILTER: &str = "[ConfigMap,hidden,*]";

fn made(harness: &Harness) -> Option<String> {
    let secret = harness.find("{apiVersion: v1, kind: Secret, metadata: {name: made, namespace: hidden}}")?;
    secret.str_at(&["stringData", "k"]).map(ToOwned::to_owned)
}

fn settings(filters: &str) -> String {
    format!("{{resourceFilters: '{filters}'}}")
}

fn harness(policy: &str, filters: &str) -> Harness {
    let mut harness = Harness::new();
    harness.set(&settings(filters));
    harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: hidden}}");
    harness.apply(policy);
    harness.settle();
    harness.apply(TRIGGER);
    harness.settle();
    harness
}

#[test]
fn nothing_is_made_for_a_hidden_trigger_until_it_is_shown() {
    for policy in [POLICY.to_owned(), POLICY.replace("generateExisting: false", "generateExisting: true")] {
        let mut harness = harness(&policy, FILTER);
        assert_eq!(made(&harness), None);
        harness.restart();
        harness.settle();
        harness.controller.resync(harness.now);
        harness.settle();
        assert_eq!(made(&harness), None);
        harness.set(&settings("[ConfigMap,other,*]"));
        harness.settle();
        assert!(made(&harness).is_some(), "the filters have changed");
    }
}

#[test]
fn what_was_made_for_a_trigger_that_is_hidden_then_stays_until_its_policy_goes() {
    let mut harness = harness(POLICY, "[ConfigMap,other,*]");
    let before = made(&harness);
    assert!(before.is_some());
    harness.set(&settings(FILTER));
    harness.settle();
    harness.apply(&TRIGGER.replace("v: x", "v: y"));
    harness.settle();
    assert_eq!(made(&harness), before, "nobody looks at the trigger");
    harness.delete(TRIGGER);
    harness.settle();
    harness.restart();
    harness.settle();
    assert_eq!(made(&harness), before, "nor at its end");
    harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    harness.settle();
    assert_eq!(made(&harness), None);
}

#[test]
fn hidden_triggers_are_none_for_rules_that_look_at_existing_ones_once() {
    let once = POLICY.replace("synchronize: true", "synchronize: false").replace("Existing: false", "Existing: true");
    for (filters, hidden) in [(FILTER, true), ("[ConfigMap,other,*]", false)] {
        let mut harness = Harness::new();
        harness.set(&settings(filters));
        harness.apply("{apiVersion: v1, kind: Namespace, metadata: {name: hidden}}");
        harness.apply(TRIGGER);
        harness.apply(&once);
        harness.settle();
        assert_eq!(made(&harness).is_none(), hidden);
    }
}
