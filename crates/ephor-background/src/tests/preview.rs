//! What a plan says, the controller then does.

use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_expr::{Map, Value};
use ephor_runtime::content::ADOPTED_LABEL;
use ephor_runtime::policies::PolicyId;

use super::harness::{Harness, document, documents};
use crate::plan::{Change, diff};
use crate::preview::{Preview, Proposal, preview};
use crate::writer::Note;

/// A harness on which each event is planned before it happens, and what then happens is compared.
pub(super) struct PlannedBed {
    pub(super) harness: Harness,
    /// How many changes were planned.
    pub(super) planned: usize,
    pub(super) differences: Vec<String>,
}

impl PlannedBed {
    pub(super) fn new() -> Self {
        Self { harness: Harness::new(), planned: 0, differences: Vec::new() }
    }

    pub(super) fn apply(&mut self, object: &Value) {
        // The harness replaces objects: what is left out is taken away.
        let live = self.harness.read(object).unwrap_or_default();
        let applied = vec![["labels", "annotations"].into_iter().fold(object.clone(), |mut object, field| {
            let entries = live.at(&["metadata", field]).and_then(Value::as_object);
            let left_out = entries.into_iter().flat_map(Map::keys);
            for key in left_out.filter(|key| object.at(&["metadata", field, key]).is_none()).collect::<Vec<_>>() {
                let metadata = object.as_object_mut().unwrap().entry("metadata").as_object_mut().unwrap();
                let entries = metadata.entry(field);
                if entries.is_null() {
                    *entries = Value::object(Map::new());
                }
                entries.as_object_mut().unwrap().insert(key.clone(), Value::Null);
            }
            object
        })];
        let planned = self.plan(&Proposal { applied, ..Proposal::default() });
        self.harness.apply_object(object);
        self.compare(&planned, object);
    }

    pub(super) fn delete(&mut self, object: &Value) {
        let proposal = Proposal { deleted: vec![object.clone()], ..Proposal::default() };
        let planned = self.plan(&proposal);
        Harness::delete(&mut self.harness, &object.to_json());
        self.compare(&planned, object);
    }

    fn plan(&self, proposal: &Proposal) -> Preview {
        let cluster: Arc<dyn Cluster> = Arc::new(self.harness.cluster.clone());
        let revision = self.harness.cluster.revision();
        let now = jiff::Timestamp::from_millisecond(i64::try_from(self.harness.now + 1_000).unwrap()).unwrap();
        let planned = preview(&cluster, proposal, now).unwrap().0;
        assert_eq!(self.harness.cluster.revision(), revision, "a plan changes nothing");
        planned
    }

    /// Lets the controller work and compares what it does with what was planned.
    fn compare(&mut self, planned: &Preview, event: &Value) {
        self.harness.notes.lock().unwrap().clear();
        self.harness.settle();
        let mut wanted: Vec<String> = planned.changes.iter().map(|p| told(&p.policy, &p.rule, &p.change)).collect();
        let mut done: Vec<String> = Vec::new();
        for note in self.harness.notes.lock().unwrap().iter() {
            if let Note::Changed { policy, rule, change, object, .. } = note
                && let Some(change) = change.as_stored(object)
            {
                done.push(told(policy, rule, &change));
            }
        }
        self.planned += wanted.len();
        wanted.sort();
        done.sort();
        if wanted != done {
            let (wanted, done) = (wanted.join(""), done.join(""));
            self.differences.push(format!("planned:\n{wanted}done:\n{done}because of {}", event.to_json()));
        }
        let rest = self.plan(&Proposal::default()).changes;
        if !rest.is_empty() {
            self.differences.push(format!("there is something left to plan: {rest:?}"));
        }
    }
}

/// A change in full, but for what a plan cannot know: UIDs, and which objects the running controller remembers to have
/// created.
fn told(policy: &PolicyId, rule: &str, change: &Change) -> String {
    let uid = |line: &str| line.split_once("-uid: ").map(|(label, _)| format!("{label}-uid"));
    let full = diff::render(change);
    let known = full.lines().filter(|line| !line.contains(ADOPTED_LABEL));
    let lines: Vec<String> = known.map(|line| uid(line).unwrap_or_else(|| line.to_owned())).collect();
    format!("{policy} {rule}: {}\n", lines.join("\n").replace(r#""adopted":true,"#, ""))
}

/// Plays a story: documents that are applied, and deleted if their text begins with `-`.
fn play(steps: &[&str]) -> PlannedBed {
    let mut planned = PlannedBed::new();
    for step in steps {
        match step.strip_prefix('-') {
            Some(reference) => planned.delete(&document(reference)),
            None => documents(step).iter().for_each(|object| planned.apply(object)),
        }
    }
    assert!(planned.differences.is_empty(), "{}", planned.differences.join("\n"));
    planned
}

const MUTATE: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  mutateExistingOnPolicyUpdate: true
  rules:
  - name: mark
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {make: 'yes'}}}}]}
    mutate:
      mutateExistingOnPolicyUpdate: true
      targets: [{apiVersion: v1, kind: Secret, name: target, namespace: default}]
      patchStrategicMerge: {metadata: {labels: {marked: '{{ request.object.data.v }}'}}}
";

#[test]
fn a_plan_writes_subresources_as_the_controller_does() {
    let mut harness = PlannedBed::new();
    let [deployment, policy, trigger] = documents(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 1,
          selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}},
          spec: {containers: [{name: main, image: example}]}}}}
---
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r,
  match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {
    targets: [{apiVersion: apps/v1, kind: Deployment/scale, name: web, namespace: default}],
    patchStrategicMerge: {spec: {replicas: 4}}}}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: dog, namespace: default}}",
    )
    .try_into()
    .unwrap();
    harness.apply(&deployment);
    harness.apply(&policy);
    harness.apply(&trigger);
    assert_eq!(harness.differences, [""; 0]);
    assert_eq!(harness.planned, 1);
}

#[test]
fn existing_targets_that_a_new_policy_mutates_are_planned() {
    let trigger = |v: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: t, labels: {{make: 'yes'}}}}, data: {{v: {v}}}}}")
    };
    let target = "{apiVersion: v1, kind: Secret, metadata: {name: target}}";
    let played = play(&[&trigger("one"), target, MUTATE]);
    assert_eq!(played.planned, 1);
}

const GENERATE: &str = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {make: 'yes'}}}}]}
    generate:
      generateExisting: true
      synchronize: SYNC
      apiVersion: v1
      kind: Secret
      name: '{{ request.object.metadata.name }}-data'
      namespace: default
      data: {data: {k: '{{ request.object.data.v }}'}}
";

#[test]
fn triggers_that_exist_are_planned_when_a_policy_asks_for_them() {
    let trigger = |name: &str, v: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{make: 'yes'}}}}, data: {{v: {v}}}}}"
        )
    };
    for synchronize in ["true", "false"] {
        let policy = GENERATE.replace("SYNC", synchronize);
        let away = "-{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}}";
        let gone = "-{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
        let steps =
            [&trigger("a", "v1"), &trigger("b", "v1"), &policy, &trigger("a", "v2"), &trigger("c", "v1"), gone, away];
        let planned = play(&steps).planned;
        assert_eq!(planned, if synchronize == "true" { 7 } else { 3 }, "synchronize {synchronize}");
    }
}

#[test]
fn what_one_policy_makes_is_the_trigger_of_the_next() {
    let first = GENERATE.replace("SYNC", "true");
    let second = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: q}
spec:
  rules:
  - name: r
    skipBackgroundRequests: false
    match: {any: [{resources: {kinds: [Secret], names: ['*-data']}}]}
    generate:
      generateExisting: true
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: next
      namespace: default
      data: {data: {of: '{{ request.object.metadata.name }}'}}
";
    let trigger = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {make: 'yes'}}, data: {v: v1}}";
    let played = play(&[&first, second, trigger, "-{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"]);
    assert_eq!(played.planned, 4);
}

#[test]
fn values_of_secrets_that_rules_read_are_known_to_be_secret() {
    let mut harness = Harness::new();
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: source}, data: {k: aHVudGVyMg==}}");
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Namespace]}}]}
    context:
    - name: secret
      apiCall: {urlPath: /api/v1/namespaces/default/secrets/source}
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: leak
      namespace: '{{ request.object.metadata.name }}'
      data: {data: {k: '{{ secret.data.k | base64_decode(@) }}'}}
";
    let applied = [document(policy), document("{apiVersion: v1, kind: Namespace, metadata: {name: a}}")];
    let cluster: Arc<dyn Cluster> = Arc::new(harness.cluster.clone());
    let proposal = Proposal { applied: applied.to_vec(), ..Proposal::default() };
    let found = preview(&cluster, &proposal, jiff::Timestamp::UNIX_EPOCH).unwrap().0;
    assert_eq!(found.failures, []);
    let text = diff::render(&found.changes[0].change);
    assert!(text.contains("hunter2"));
    assert!(!found.secrets.text(&text).contains("hunter2"));
}

#[test]
fn settings_and_global_context_count_in_a_plan_as_in_the_controller() {
    let mut harness = Harness::new();
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: source}, data: {k: aHVudGVyMg==}}");
    let entry = "
apiVersion: kyverno.io/v2
kind: GlobalContextEntry
metadata: {name: secrets}
spec:
  kubernetesResource: {version: v1, resource: secrets, namespace: default}
  projections: [{name: first, jmesPath: '[0].data.k | base64_decode(@)'}]
";
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Namespace]}}]}
    context: [{name: first, globalReference: {name: secrets.first}}]
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: leak
      namespace: '{{ request.object.metadata.name }}'
      data: {data: {k: '{{ first }}'}}
";
    let settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: kyverno, namespace: kyverno}, \
                     data: {resourceFilters: '[*/*,hidden-*,*]'}}";
    let plan = |harness: &Harness, applied: &[&str]| {
        let cluster: Arc<dyn Cluster> = Arc::new(harness.cluster.clone());
        let applied = applied.iter().map(|text| document(text)).collect();
        preview(&cluster, &Proposal { applied, ..Proposal::default() }, jiff::Timestamp::now()).unwrap().0
    };
    let shown = |planned: &Preview| {
        let [change] = planned.changes.as_slice() else { panic!("{planned:?}") };
        assert!(diff::render(&change.change).contains("hunter2"));
        assert!(!planned.secrets.text(&diff::render(&change.change)).contains("hunter2"));
        (change.trigger.clone(), planned.hidden.clone())
    };
    let (seen, hidden) = ("{apiVersion: v1, kind: Namespace, metadata: {name: seen}}", "Namespace hidden-a");
    let unseen = "{apiVersion: v1, kind: Namespace, metadata: {name: hidden-a}}";
    let wanted = ("Namespace seen".to_owned(), vec![hidden.to_owned()]);
    // Proposed along with the rest, then stored.
    assert_eq!(shown(&plan(&harness, &[policy, entry, settings, seen, unseen])), wanted);
    let missing = plan(&harness, &[policy, settings, seen]);
    assert!(missing.failures[0].why.contains("global context entry `secrets.first` not found"), "{missing:?}");
    harness.apply(entry);
    harness.apply(settings);
    assert_eq!(shown(&plan(&harness, &[policy, seen, unseen])), wanted);
}

#[test]
fn what_goes_or_changes_does_not_show_what_it_was_made_of() {
    let mut harness = Harness::new();
    let secret =
        |value: &str| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: s}}, stringData: {{k: {value}}}}}");
    harness.apply(&secret("hunter2"));
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], names: [t]}}]}
    context: [{name: s, apiCall: {urlPath: /api/v1/namespaces/default/secrets/s}}]
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: made
      namespace: default
      data: {data: {k: '{{ s.stringData.k }}'}}
";
    harness.apply(policy);
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    harness.settle();
    let cluster: Arc<dyn Cluster> = Arc::new(harness.cluster.clone());
    let proposals = [
        Proposal { deleted: vec![document(policy)], ..Proposal::default() },
        Proposal { applied: vec![document(&secret("hunter3"))], ..Proposal::default() },
    ];
    for proposal in proposals {
        let planned = preview(&cluster, &proposal, jiff::Timestamp::now()).unwrap().0;
        let text = diff::readable(&planned.changes[0].change, &planned.secrets);
        assert!(text.contains("k: <redacted>") && !text.contains("hunter"), "{text}");
    }
}

#[test]
fn a_plan_masks_a_secret_whose_record_the_controller_has_dropped() {
    let mut harness = Harness::new();
    let secret = |name: &str, value: &str| {
        format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}, stringData: {{k: {value}}}}}")
    };
    let pointer = |to: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: pointer, namespace: default}}, data: {{to: {to}}}}}"
        )
    };
    // The first policy reads the Secret that a ConfigMap names, the second has that ConfigMap name `right`.
    let policies = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: a}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], names: [t]}}]}
    context:
    - {name: pointer, apiCall: {urlPath: /api/v1/namespaces/default/configmaps/pointer}}
    - {name: s, apiCall: {urlPath: '/api/v1/namespaces/default/secrets/{{ pointer.data.to }}'}}
    generate:
      {synchronize: true, apiVersion: v1, kind: ConfigMap, name: made, namespace: default,
       data: {data: {k: '{{ s.stringData.k }}'}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: b}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], names: [t]}}]}
    generate:
      {synchronize: true, apiVersion: v1, kind: ConfigMap, name: pointer, namespace: default,
       data: {data: {to: right}}}
";
    harness.apply(&secret("right", "innocent"));
    harness.apply(&secret("wrong", "hunter2"));
    harness.apply(policies);
    harness.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: t}}");
    harness.settle();
    let cluster: Arc<dyn Cluster> = Arc::new(harness.cluster.clone());
    let trigger = document("{apiVersion: v1, kind: ConfigMap, metadata: {name: t, namespace: default}, data: {a: b}}");
    let applied = vec![trigger, document(&pointer("wrong")), document(&secret("wrong", "hunter3"))];
    let planned = preview(&cluster, &Proposal { applied, ..Proposal::default() }, jiff::Timestamp::now()).unwrap().0;
    let made =
        |planned: &Preview| planned.changes.iter().map(|planned| diff::render(&planned.change)).collect::<String>();
    assert!(made(&planned).contains("hunter3"), "it was read for a while: {}", made(&planned));
    let shown = planned.secrets.text("innocent hunter2 hunter3").into_owned();
    assert!(!shown.contains("innocent") && !shown.contains("hunter"), "{shown}");
}

#[test]
fn a_plan_masks_a_secret_that_the_controller_knew_without_asking() {
    let mut harness = Harness::new();
    harness.apply("{apiVersion: v1, kind: Secret, metadata: {name: source}, stringData: {k: hunter2}}");
    let policy = "
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      {synchronize: true, apiVersion: v1, kind: Secret, name: copy, namespace: '{{ request.object.metadata.name }}',
       clone: {namespace: default, name: source}}
";
    let applied = vec![document(policy), document("{apiVersion: v1, kind: Namespace, metadata: {name: a}}")];
    let cluster: Arc<dyn Cluster> = Arc::new(harness.cluster.clone());
    let planned = preview(&cluster, &Proposal { applied, ..Proposal::default() }, jiff::Timestamp::now()).unwrap().0;
    assert_eq!((planned.changes.len(), planned.secrets.text("hunter2").contains("hunter2")), (1, false));
}
