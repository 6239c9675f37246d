//! Global context entries that rules read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ephor_engine::fetch::{Fact, Fetch};
use ephor_expr::{Str, Value};
use ephor_runtime::facts::Source;

use super::harness::Harness;

/// What global context entries say. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Entries(pub(super) Arc<Mutex<BTreeMap<Str, Value>>>);

impl Source for Entries {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        let Fetch::Global { name } = fetch else { return None };
        Some(self.0.lock().unwrap().get(name).cloned().map_or(Fact::Missing, Fact::Found))
    }
}

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: [{name: colour, globalReference: {name: colour}}]
    generate:
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: t
      namespace: default
      data: {stringData: {k: '{{ colour }}'}}
";

#[test]
fn other_data_of_a_global_context_entry_is_followed() {
    let mut harness = Harness::new();
    let says = |harness: &Harness, value: &str| {
        harness.entries.0.lock().unwrap().insert("colour".into(), Value::from(value));
    };
    says(&harness, "red");
    harness.apply(POLICY);
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    harness.settle();
    let made = |harness: &Harness| {
        harness
            .find("{apiVersion: v1, kind: Secret, metadata: {name: t}}")
            .unwrap()
            .str_at(&["stringData", "k"])
            .unwrap()
            .to_owned()
    };
    assert_eq!(made(&harness), "red");
    says(&harness, "green");
    harness.settle();
    assert_eq!(made(&harness), "green");
    let revision = harness.cluster.revision();
    harness.settle();
    assert_eq!(harness.cluster.revision(), revision);
    harness.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    harness.settle();
    assert!(harness.controller.state().asked_of_entries().is_empty());
}

#[test]
fn an_entry_is_asked_while_a_judgement_depends_on_it() {
    let mut harness = Harness::new();
    harness.entries.0.lock().unwrap().insert("colour".into(), Value::from("red"));
    harness.apply(&POLICY.replace("kinds: [ConfigMap]", "kinds: [ConfigMap], selector: {matchLabels: {make: 'yes'}}"));
    for (make, asked) in [("yes", 1), ("no", 0), ("yes", 1)] {
        harness
            .apply(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: t, labels: {{make: '{make}'}}}}}}"));
        harness.settle();
        assert_eq!(harness.controller.state().asked_of_entries().len(), asked, "make: {make}");
    }
}
