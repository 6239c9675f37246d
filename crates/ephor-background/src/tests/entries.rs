//! Global context entries that rules read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ephor_engine::fetch::{Fact, Fetch};
use ephor_expr::{Str, Value};
use ephor_runtime::facts::Source;

use super::bed::Bed;

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
    let mut bed = Bed::new();
    let says = |bed: &Bed, value: &str| {
        bed.entries.0.lock().unwrap().insert("colour".into(), Value::from(value));
    };
    says(&bed, "red");
    bed.apply(POLICY);
    bed.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    bed.settle();
    let made = |bed: &Bed| {
        bed.find("{apiVersion: v1, kind: Secret, metadata: {name: t}}")
            .unwrap()
            .str_at(&["stringData", "k"])
            .unwrap()
            .to_owned()
    };
    assert_eq!(made(&bed), "red");
    says(&bed, "green");
    bed.settle();
    assert_eq!(made(&bed), "green");
    let revision = bed.cluster.revision();
    bed.settle();
    assert_eq!(bed.cluster.revision(), revision);
    bed.delete("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}");
    bed.settle();
    assert!(bed.controller.state().asked_of_entries().is_empty());
}

#[test]
fn an_entry_is_asked_while_a_judgement_depends_on_it() {
    let mut bed = Bed::new();
    bed.entries.0.lock().unwrap().insert("colour".into(), Value::from("red"));
    bed.apply(&POLICY.replace("kinds: [ConfigMap]", "kinds: [ConfigMap], selector: {matchLabels: {make: 'yes'}}"));
    for (make, asked) in [("yes", 1), ("no", 0), ("yes", 1)] {
        bed.apply(&format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: t, labels: {{make: '{make}'}}}}}}"));
        bed.settle();
        assert_eq!(bed.controller.state().asked_of_entries().len(), asked, "make: {make}");
    }
}
