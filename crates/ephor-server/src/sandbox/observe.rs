//! What the live view shows.

use std::time::Duration;

use ephor_cluster::{Cluster as _, LabelSelector, ListQuery, MemoryCluster};
use ephor_engine::outcome::Verdict;
use ephor_expr::{Map, Str, Value};
use jiff::Timestamp;

use super::engine::spawn;
use crate::admission::observe::{Decided, Observer};
use crate::admission::path::Webhook;
use crate::admission::{AdmissionRequest, Answer};
use crate::events::Recorder;
use crate::live::{Live, Topic};
use crate::policies::PolicyStore;
use crate::stop::Stop;

/// How often the lists are looked at while things change.
const LOOK: Duration = Duration::from_millis(250);

/// Shows each decision of rules, and tells it in the cluster.
pub(super) struct ShownDecisions {
    live: Live,
    events: Recorder,
}

impl ShownDecisions {
    pub(super) fn new(live: Live, events: Recorder) -> Self {
        Self { live, events }
    }
}

impl Observer for ShownDecisions {
    fn decided(&self, decided: &Decided<'_>) {
        self.events.decided(decided);
        let rules: Vec<Value> = decided
            .outcomes
            .iter()
            .filter(|outcome| outcome.verdict != Verdict::Skip)
            .map(|outcome| {
                let policy = decided.programs.get(outcome.policy).map(|program| program.name.clone());
                let step =
                    Value::from([("place", Value::from("")), ("text", Value::from(outcome.message.to_string()))]);
                Value::from([
                    ("policy", Value::from(policy.unwrap_or_default())),
                    ("rule", Value::from(outcome.rule.clone())),
                    ("steps", Value::array(vec![step])),
                    ("verdict", Value::from(outcome.verdict.as_str())),
                ])
            })
            .collect();
        if rules.is_empty() {
            return;
        }
        let request = decided.request;
        self.live.show(
            Topic::Decision,
            &Value::from([
                ("time", Value::from(Timestamp::now().strftime("%H:%M:%S").to_string())),
                ("operation", Value::from(request.operation.as_str())),
                ("kind", Value::from(decided.gvk.kind.clone())),
                ("subresource", Value::from(request.sub_resource.clone())),
                ("namespace", Value::from(request.namespace.clone())),
                ("name", Value::from(request.object_name())),
                ("user", Value::from(request.user.username.clone())),
                ("allowed", Value::Bool(!decided.blocked)),
                ("message", Value::from("")),
                ("rules", Value::array(rules)),
                ("changed", Value::from("")),
            ]),
        );
    }

    fn answered(&self, request: &AdmissionRequest, webhook: Webhook, answer: &Answer, took: Duration) {
        self.events.answered(request, webhook, answer, took);
    }
}

/// Keeps the lists of policies and of generated objects shown.
pub(super) fn show_lists(cluster: &MemoryCluster, live: &Live, policies: &PolicyStore, stop: &Stop) {
    let (cluster, live, policies, stop) = (cluster.clone(), live.clone(), policies.clone(), stop.clone());
    spawn("live view", move || {
        let mut seen = 0;
        while !stop.is_stopped() {
            let revision = cluster.wait_for_change(seen, LOOK);
            if revision != seen {
                seen = revision;
                live.show(Topic::Policies, &policies_shown(&policies));
                live.show(Topic::Objects, &generated(&cluster));
                stop.wait(LOOK);
            }
        }
    });
}

fn policies_shown(policies: &PolicyStore) -> Value {
    let snapshot = policies.snapshot();
    let shown = snapshot.policies.values().map(|policy| {
        let rules = policy.document.at(&["spec", "rules"]).and_then(Value::as_array).unwrap_or_default();
        let names: Vec<Value> = rules.iter().filter_map(|rule| rule.get("name").cloned()).collect();
        let findings: Vec<String> = policy.findings.iter().map(ToString::to_string).collect();
        Value::from([
            ("findings", Value::from(findings)),
            ("name", Value::from(policy.key.name.clone())),
            ("namespace", Value::from(policy.key.namespace.clone())),
            ("ready", Value::Bool(policy.program.is_some())),
            ("rules", Value::array(names)),
        ])
    });
    Value::array(shown.collect())
}

const PREFIX: &str = "generate.kyverno.io/";

/// All objects that rules have made, with the labels that say why.
fn generated(cluster: &MemoryCluster) -> Value {
    let Ok(discovery) = cluster.discovery() else { return Value::array(Vec::new()) };
    let Ok(selector) = LabelSelector::parse("app.kubernetes.io/managed-by=kyverno") else {
        return Value::array(Vec::new());
    };
    let query = ListQuery::all().labels(selector).metadata_only();
    let mut seen = std::collections::BTreeSet::new();
    let mut shown = Vec::new();
    for resource in discovery.iter().filter(|r| r.stored && seen.insert((r.group.clone(), r.plural.clone()))) {
        let Ok(list) = cluster.list(resource, &query) else { continue };
        for object in &list.items {
            let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
            let lineage: Map = labels
                .into_iter()
                .flat_map(Map::iter)
                .filter_map(|(key, value)| Some((Str::new(key.strip_prefix(PREFIX)?), value.clone())))
                .collect();
            if lineage.get("policy-name").is_none() {
                continue;
            }
            let text = |key: &str| object.str_at(&["metadata", key]).unwrap_or_default();
            shown.push(Value::from([
                ("kind", Value::from(resource.kind.clone())),
                ("lineage", Value::object(lineage)),
                ("name", Value::from(text("name"))),
                ("namespace", Value::from(text("namespace"))),
            ]));
        }
    }
    Value::array(shown)
}
