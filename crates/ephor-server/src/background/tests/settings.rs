//! What the settings say holds in the background too.

use super::bed::{Bed, document};
use crate::feed::Change;

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

fn set(bed: &Bed, data: &str) {
    bed.config.apply(Change::Set(document(&format!("{{data: {data}}}"))));
}

fn failures(bed: &Bed) -> String {
    let state = bed.controller.state();
    state.failures.values().flat_map(|failed| failed.values()).map(ToString::to_string).collect()
}

#[test]
fn a_context_larger_than_the_settings_allow_is_an_error() {
    let mut bed = Bed::new();
    set(&bed, "{maxContextSize: '20'}");
    bed.apply(POLICY);
    bed.apply(LARGE);
    bed.apply(TRIGGER);
    bed.settle();
    let why = failures(&bed);
    assert!(why.contains("context data exceed 20 bytes (maxContextSize)"), "{why}");
    assert!(bed.find(MADE).is_none());

    set(&bed, "{maxContextSize: 1Mi}");
    bed.controller.resync(bed.now);
    bed.settle();
    let made = bed.find(MADE).unwrap();
    assert_eq!(made.str_at(&["stringData", "k"]), Some("a text of some length"));
}
