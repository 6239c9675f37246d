//! What generate rules and mutate rules for existing targets did, left for the report of their trigger.
//!
//! The form is upstream's: a generate rule passes with the property `generated-resources`, a mutate rule with a message
//! and the property `patched-target`. Several objects of one rule stand in one result.

use std::collections::BTreeSet;
use std::time::Duration;

use ephor_engine::compile::Program;
use ephor_engine::outcome::{RuleKind, Verdict};
use ephor_expr::{Map, Str, Value};
use ephor_reports::Entry;
use ephor_reports::entry::PolicyFacts;
use ephor_reports::entry::ResultRule;
use ephor_reports::ephemeral::Origin;
use ephor_reports::report::{Reported, Scope};
use ephor_runtime::policies::{PolicyId, Snapshot};
use ephor_runtime::results::{QueueSettings, ResultQueue, Results, reported_version};

use crate::plan::Reason;
use crate::trigger::TriggerRef;
use crate::writer::Note;

/// How long results of a trigger stay in the queue: its rules are carried out one after the other.
const HOLD: Duration = Duration::from_secs(1);
/// The objects of one result are named up to this length, so that a rule with many targets fits into a report.
const MAX_NAMES: usize = 4 << 10;

/// How many triggers have results in the queue at most.
const CAPACITY: usize = 10_000;

/// The settings of the queue for results of this role.
pub fn queue_settings(max_ephemeral: usize, lease: Option<Str>) -> QueueSettings {
    QueueSettings { origin: Origin::Background, hold: HOLD, capacity: CAPACITY, max_ephemeral, lease }
}

/// Takes what rules did. Clones share the queue.
#[derive(Debug, Clone)]
pub struct WorkResults {
    queue: ResultQueue,
    reported: BTreeSet<Reported>,
}

/// What one note says about a rule.
struct Said {
    result: Verdict,
    message: String,
    /// The property that names an object, and its name.
    object: Option<(&'static str, String)>,
    /// Further properties.
    properties: Map,
}

impl WorkResults {
    /// Puts the results of these sorts of rules into `queue`.
    pub fn new(queue: ResultQueue, reported: BTreeSet<Reported>) -> Self {
        Self { queue, reported }
    }

    /// Takes a note of the writer.
    pub fn observe(&self, note: &Note, snapshot: &Snapshot) {
        let (policy, rule, trigger) = match note {
            Note::Changed { policy, rule, trigger, .. } | Note::Failed { policy, rule, trigger, .. } => {
                (policy, rule, trigger.as_ref())
            }
            Note::Excepted { policy, rule, trigger, .. } => (policy, rule, Some(trigger)),
        };
        let Some(trigger) = trigger.filter(|trigger| is_reported(trigger)) else { return };
        let Some(program) = snapshot.policies.get(policy).and_then(|policy| policy.program.as_ref()) else { return };
        let Some(kind) = program.rules.iter().find(|known| known.name == *rule).map(|rule| rule.body.kind()) else {
            return;
        };
        if !sort(kind).is_some_and(|sort| self.reported.contains(&sort)) {
            return;
        }
        if let (Some(said), Some(version)) = (said(note, kind), reported_version(snapshot, policy)) {
            self.add(program, policy, rule, trigger, version, said);
        }
    }

    fn add(&self, program: &Program, policy: &PolicyId, rule: &Str, trigger: &TriggerRef, version: Str, said: Said) {
        let scope = Scope {
            api_version: trigger.api_version.clone(),
            kind: trigger.kind.clone(),
            namespace: trigger.namespace.clone(),
            name: trigger.name.clone(),
            uid: trigger.uid.clone(),
        };
        self.queue.update(
            &trigger.uid,
            || Results::about(scope),
            |known| {
                known.policies.insert(policy.clone(), version);
                let of_rule = ResultRule::new(policy, rule.clone());
                let before = known.results.iter().position(|result| ResultRule::of(result) == of_rule);
                let before = before.map(|place| known.results.remove(place));
                known.results.push(rendered(program, rule, said, before.as_ref()));
            },
        );
    }
}

/// Events are no objects that a report is about, and what cannot be named cannot be found.
fn is_reported(trigger: &TriggerRef) -> bool {
    !(trigger.uid.is_empty() || trigger.name.is_empty() || trigger.kind == "Event")
}

fn sort(kind: RuleKind) -> Option<Reported> {
    match kind {
        RuleKind::Validate => Some(Reported::Validate),
        RuleKind::Mutate => Some(Reported::MutateExisting),
        RuleKind::Generate => Some(Reported::Generate),
        // What is gone has no report.
        RuleKind::Delete => None,
    }
}

fn said(note: &Note, kind: RuleKind) -> Option<Said> {
    let without_object =
        |result, message: String, properties: Map| Some(Said { result, message, object: None, properties });
    let (change, object, words) = match note {
        Note::Failed { message, .. } => return without_object(Verdict::Error, message.clone(), Map::new()),
        Note::Excepted { verdict, words, .. } => {
            return without_object(*verdict, words.message.to_string(), words.properties.clone());
        }
        Note::Changed { change, object, words, .. } => (change, object, words),
    };
    let text = |path: &[&str]| object.str_at(path).unwrap_or_default();
    let (namespace, name) = (text(&["metadata", "namespace"]), text(&["metadata", "name"]));
    let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
    let named = format!("{}/{name}{place}", text(&["kind"]));
    if change.verb() == "delete" {
        let unmatched = change.reason == Reason::TriggerUnmatched;
        let message = format!("deleted {named}: {}", change.reason.as_str());
        return unmatched.then_some(()).and_then(|()| without_object(Verdict::Skip, message, Map::new()));
    }
    let (property, message) = match (kind, change.reason) {
        (_, Reason::Released | Reason::AnnotationChanged) => return None,
        (RuleKind::Mutate, _) => ("patched-target", format!("mutated {named}")),
        _ => ("generated-resources", words.message.to_string()),
    };
    let (group, version) = ephor_cluster::resource::split_api_version(text(&["apiVersion"]));
    let full = format!("{group}/{version}, Kind={} Name={name} Namespace={namespace}", text(&["kind"]));
    Some(Said { result: Verdict::Pass, message, object: Some((property, full)), properties: words.properties.clone() })
}

/// The result, with the objects of an earlier one of the same verdict.
fn rendered(program: &Program, rule: &Str, said: Said, before: Option<&Value>) -> Value {
    let before = before.filter(|before| before.str_at(&["result"]) == Some(said.result.as_str()));
    let joined = |earlier: Option<&str>, new: String| match earlier {
        Some(earlier) if earlier.split("; ").any(|known| known == new) => earlier.to_owned(),
        Some(earlier) if earlier.len() + new.len() > MAX_NAMES => earlier.to_owned(),
        Some(earlier) => format!("{earlier}; {new}"),
        None => new,
    };
    let earlier = before.and_then(|before| before.str_at(&["message"])).filter(|earlier| *earlier != said.message);
    let message = joined(earlier, said.message);
    let mut entry = Entry::new(PolicyFacts::of(program), Some(rule.clone()), said.result, &Str::from(message), None);
    for (key, value) in said.properties.iter() {
        entry.properties.insert(key.clone(), value.clone());
    }
    if let Some((property, object)) = said.object {
        let earlier = before.and_then(|before| before.str_at(&["properties", property]));
        let mut properties = Map::clone(&entry.properties);
        properties.insert(property, joined(earlier, object));
        entry.properties = properties;
    }
    Value::object(entry.members())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use ephor_cluster::{Cluster, ListQuery, MemoryCluster};
    use ephor_expr::yaml::parse_value;
    use ephor_reports::ephemeral::API_VERSION;
    use ephor_runtime::policies::{ExceptionScope, PolicyStore, StoredKind};
    use ephor_runtime::watcher::StoreEvent;

    use super::*;
    use crate::plan::{Action, Change, ObjectId, Proof};
    use crate::writer::Words;

    const POLICY: &str = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p, resourceVersion: '7'}, spec: {rules: [
        {name: make, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {synchronize: true, apiVersion: v1,
         kind: ConfigMap, name: made, namespace: a, data: {}}},
        {name: patch, match: {any: [{resources: {kinds: [Namespace]}}]}, mutate: {targets: [{apiVersion: v1, kind: Secret}],
         patchStrategicMerge: {metadata: {labels: {a: b}}}}}]}}";

    fn changed(rule: &str, reason: Reason, kind: &str, name: &str) -> Note {
        let object =
            parse_value(&format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: {name}, namespace: a}}}}"));
        let object = object.unwrap();
        let id = ObjectId::of(&object);
        let action = match reason {
            Reason::TriggerUnmatched => Action::Delete { before: object.clone(), proof: Proof::Rendered },
            Reason::Mutated => Action::Replace { before: object.clone(), after: object.clone() },
            _ => Action::Create(object.clone()),
        };
        let change = Change { id, api_version: "v1".into(), action, reason };
        Note::Changed {
            policy: PolicyId::parse("p"),
            rule: rule.into(),
            trigger: Some(trigger()),
            change: Box::new(change),
            object,
            words: Words::default(),
        }
    }

    fn trigger() -> TriggerRef {
        TriggerRef {
            api_version: "v1".into(),
            kind: "Namespace".into(),
            name: "team".into(),
            uid: "u".into(),
            ..TriggerRef::default()
        }
    }

    /// The results that are written after these notes.
    fn reported(sorts: &[Reported], notes: &[Note]) -> Vec<String> {
        let cluster: Arc<dyn Cluster> = Arc::new(MemoryCluster::default());
        let store = PolicyStore::new(ExceptionScope::Disabled);
        store.apply(StoredKind::CLUSTER_POLICY, StoreEvent::Apply(parse_value(POLICY).unwrap()));
        let queue = ResultQueue::new(&cluster, queue_settings(10, None));
        let results = WorkResults::new(queue.clone(), sorts.iter().copied().collect());
        for note in notes {
            results.observe(note, &store.snapshot());
        }
        queue.flush(Instant::now());
        let kind = cluster.resolve(API_VERSION, "ClusterEphemeralReport").unwrap();
        let reports = cluster.list(&kind, &ListQuery::all()).unwrap().items;
        assert!(reports.len() <= 1, "{reports:?}");
        let results = |report: &Value| report.at(&["spec", "results"]).and_then(Value::as_array).unwrap().to_vec();
        reports.iter().flat_map(results).map(|result| result.to_json()).collect()
    }

    #[test]
    fn one_result_of_a_rule_names_all_its_objects() {
        let notes = [
            changed("make", Reason::Missing, "ConfigMap", "one"),
            changed("make", Reason::Missing, "ConfigMap", "two"),
            changed("make", Reason::Differs, "ConfigMap", "one"),
            changed("patch", Reason::Mutated, "Secret", "s"),
        ];
        assert_eq!(
            reported(&Reported::ALL, &notes),
            [
                r#"{"policy":"p","properties":{"generated-resources":"/v1, Kind=ConfigMap Name=one Namespace=a; /v1, Kind=ConfigMap Name=two Namespace=a","process":"background scan"},"result":"pass","rule":"make","scored":true,"source":"kyverno"}"#,
                r#"{"message":"mutated Secret/s in namespace a","policy":"p","properties":{"patched-target":"/v1, Kind=Secret Name=s Namespace=a","process":"background scan"},"result":"pass","rule":"patch","scored":true,"source":"kyverno"}"#,
            ]
        );
        assert_eq!(reported(&[Reported::MutateExisting], &notes).len(), 1);
        assert_eq!(reported(&[Reported::Validate], &notes), [""; 0]);
    }

    #[test]
    fn a_failure_replaces_what_was_said_before_and_the_next_success_replaces_it() {
        let failed = || Note::Failed {
            policy: PolicyId::parse("p"),
            rule: "make".into(),
            trigger: Some(trigger()),
            message: "quota".into(),
        };
        let made = || changed("make", Reason::Missing, "ConfigMap", "one");
        let result = |notes: &[Note]| {
            let results = reported(&Reported::ALL, notes);
            assert_eq!(results.len(), 1);
            parse_value(&results[0]).unwrap().str_at(&["result"]).unwrap().to_owned()
        };
        assert_eq!(result(&[made(), failed()]), "error");
        assert_eq!(result(&[failed(), made()]), "pass");
        assert_eq!(result(&[made(), changed("make", Reason::TriggerUnmatched, "ConfigMap", "one")]), "skip");
    }

    #[test]
    fn what_cannot_be_reported_leaves_nothing() {
        let note = |change: fn(&mut TriggerRef)| {
            let mut note = changed("make", Reason::Missing, "ConfigMap", "one");
            if let Note::Changed { trigger: Some(trigger), .. } = &mut note {
                change(trigger);
            }
            note
        };
        for note in [
            note(|trigger| trigger.uid = Str::default()),
            note(|trigger| trigger.name = Str::default()),
            note(|trigger| trigger.kind = "Event".into()),
            changed("gone", Reason::Missing, "ConfigMap", "one"),
            changed("make", Reason::Released, "ConfigMap", "one"),
        ] {
            assert_eq!(reported(&Reported::ALL, &[note]), [""; 0]);
        }
    }
}
