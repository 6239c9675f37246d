//! What a plan says, the controller then does.

use std::collections::BTreeSet;
use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_expr::Value;

use super::bed::Bed;
use crate::background::preview::preview;
use crate::background::writer::Note;
use crate::facts::{Answers, ClusterFacts};
use crate::feed::Change;
use crate::policies::{ExceptionScope, PolicyStore};

const POLICY: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: data
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {make: 'yes'}}}}]}
    generate:
      generateExisting: true
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: '{{ request.object.metadata.name }}-data'
      namespace: default
      data: {data: {k: '{{ request.object.data.v }}'}}
  - name: clone
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {make: 'yes'}}}}]}
    generate:
      generateExisting: true
      synchronize: true
      apiVersion: v1
      kind: Secret
      name: '{{ request.object.metadata.name }}-copy'
      namespace: default
      clone: {namespace: default, name: source}
";

fn said(notes: &[Note]) -> BTreeSet<(String, String)> {
    let changes = notes.iter().filter_map(|note| match note {
        Note::Changed { change, .. } => Some((change.verb().to_owned(), change.id.to_string())),
        Note::Failed { .. } => None,
    });
    changes.collect()
}

fn planned(bed: &Bed) -> BTreeSet<(String, String)> {
    let store = PolicyStore::new(ExceptionScope::Disabled);
    store.apply("ClusterPolicy", Change::Reset(bed.list("kyverno.io/v1", "ClusterPolicy")));
    let cluster: Arc<dyn Cluster> = Arc::new(bed.cluster.clone());
    let answers: Arc<dyn Answers> = Arc::new(ClusterFacts::new(Arc::clone(&cluster)));
    let triggers: Vec<Value> = bed.list("v1", "ConfigMap");
    let revision = bed.cluster.revision();
    let preview = preview(&cluster, &answers, &store.snapshot(), &triggers, jiff::Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(bed.cluster.revision(), revision, "a plan changes nothing");
    assert_eq!(preview.failures, []);
    preview.changes.iter().map(|p| (p.change.verb().to_owned(), p.change.id.to_string())).collect()
}

/// Plans, lets the controller work, and compares.
fn agrees(bed: &mut Bed, want: &[(&str, &str)]) {
    let want: BTreeSet<_> =
        want.iter().map(|(verb, id)| ((*verb).to_owned(), format!("Secret default/{id}"))).collect();
    assert_eq!(planned(bed), want);
    bed.notes.lock().unwrap().clear();
    bed.restart();
    bed.settle();
    let did = said(&bed.notes.lock().unwrap());
    assert_eq!(did, want);
    assert_eq!(planned(bed), BTreeSet::new(), "and then there is nothing left to plan");
}

#[test]
fn a_plan_and_the_controller_agree() {
    let mut bed = Bed::new();
    bed.admission = false;
    bed.stop();
    let secret =
        |name: &str, v: &str| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}, data: {{k: {v}}}}}");
    let trigger = |name: &str, make: &str, v: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{make: '{make}'}}}}, data: {{v: {v}}}}}"
        )
    };
    bed.apply(&secret("source", "s1"));
    bed.apply(&trigger("a", "yes", "v1"));
    bed.apply(&trigger("b", "yes", "v1"));
    bed.apply(POLICY);
    let all = [("create", "a-data"), ("create", "a-copy"), ("create", "b-data"), ("create", "b-copy")];
    agrees(&mut bed, &all);
    bed.stop();
    bed.apply(&trigger("a", "yes", "v2"));
    bed.apply(&trigger("b", "no", "v1"));
    agrees(&mut bed, &[("change", "a-data"), ("delete", "b-data"), ("delete", "b-copy")]);
    bed.stop();
    bed.apply(&secret("source", "s2"));
    bed.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}");
    agrees(&mut bed, &[("change", "a-copy")]);
    bed.stop();
    bed.delete("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
    agrees(&mut bed, &[("delete", "a-data"), ("delete", "a-copy")]);
}
