//! Triggers that the settings hide from policies.

use super::bed::Bed;

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

fn made(bed: &Bed) -> Option<String> {
    let secret = bed.find("{apiVersion: v1, kind: Secret, metadata: {name: made, namespace: hidden}}")?;
    secret.str_at(&["stringData", "k"]).map(ToOwned::to_owned)
}

fn settings(filters: &str) -> String {
    format!("{{resourceFilters: '{filters}'}}")
}

fn bed(policy: &str, filters: &str) -> Bed {
    let mut bed = Bed::new();
    bed.set(&settings(filters));
    bed.apply("{apiVersion: v1, kind: Namespace, metadata: {name: hidden}}");
    bed.apply(policy);
    bed.settle();
    bed.apply(TRIGGER);
    bed.settle();
    bed
}

#[test]
fn nothing_is_made_for_a_hidden_trigger_until_it_is_shown() {
    for policy in [POLICY.to_owned(), POLICY.replace("generateExisting: false", "generateExisting: true")] {
        let mut bed = bed(&policy, FILTER);
        assert_eq!(made(&bed), None);
        bed.restart();
        bed.settle();
        bed.controller.resync(bed.now);
        bed.settle();
        assert_eq!(made(&bed), None);
        bed.set(&settings("[ConfigMap,other,*]"));
        bed.settle();
        assert!(made(&bed).is_some(), "the filters have changed");
    }
}

#[test]
fn what_was_made_for_a_trigger_that_is_hidden_then_stays_until_its_policy_goes() {
    let mut bed = bed(POLICY, "[ConfigMap,other,*]");
    let before = made(&bed);
    assert!(before.is_some());
    bed.set(&settings(FILTER));
    bed.settle();
    bed.apply(&TRIGGER.replace("v: x", "v: y"));
    bed.settle();
    assert_eq!(made(&bed), before, "nobody looks at the trigger");
    bed.delete(TRIGGER);
    bed.settle();
    bed.restart();
    bed.settle();
    assert_eq!(made(&bed), before, "nor at its end");
    bed.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    bed.settle();
    assert_eq!(made(&bed), None);
}

#[test]
fn hidden_triggers_are_none_for_rules_that_look_at_existing_ones_once() {
    let once = POLICY.replace("synchronize: true", "synchronize: false").replace("Existing: false", "Existing: true");
    for (filters, hidden) in [(FILTER, true), ("[ConfigMap,other,*]", false)] {
        let mut bed = Bed::new();
        bed.set(&settings(filters));
        bed.apply("{apiVersion: v1, kind: Namespace, metadata: {name: hidden}}");
        bed.apply(TRIGGER);
        bed.apply(&once);
        bed.settle();
        assert_eq!(made(&bed).is_none(), hidden);
    }
}
