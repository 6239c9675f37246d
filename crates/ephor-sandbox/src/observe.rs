//! Decisions for the live view: the answers of all handlers to one write, and the changes of background rules.

use std::collections::VecDeque;
use std::time::Duration;

use ephor_background::plan::{Action, Change};
use ephor_background::trigger::TriggerRef;
use ephor_background::writer::Note;
use ephor_cluster::ClusterError;
use ephor_cluster::admission::Attributes;
use ephor_engine::outcome::{Phase, Verdict};
use ephor_expr::{Str, Value};
use ephor_runtime::decision::observe::{Decided, Observer};
use ephor_runtime::decision::path::Webhook;
use ephor_runtime::decision::{AdmissionRequest, Answer};
use ephor_runtime::events::Recorder;
use ephor_runtime::explain::{ExplainedRule, ExplainedStep, difference};
use ephor_runtime::policies::PolicyId;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::engine::NAMESPACE;
use crate::live::{Decision, Ended, Live, Topic};

/// Writes of which only a part was heard yet: one that fails between mutation and validation is never heard of again.
const UNFINISHED: usize = 64;

/// Shows each decision of rules, and tells it in the cluster.
pub(super) struct ShownDecisions {
    live: Live,
    events: Recorder,
    unfinished: Mutex<VecDeque<Unfinished>>,
}

/// What was heard about a write so far.
struct Unfinished {
    uid: Str,
    rules: Vec<ExplainedRule>,
    /// The object before and after mutation.
    mutated: Option<(Value, Value)>,
}

impl ShownDecisions {
    pub(super) fn new(live: Live, events: Recorder) -> Self {
        Self { live, events, unfinished: Mutex::default() }
    }

    /// A write was let in or refused, after the requests of that UID.
    pub(super) fn finished(&self, uid: &str, write: &Attributes, refused: Option<&ClusterError>) {
        let heard = {
            let mut unfinished = self.unfinished.lock();
            let place = unfinished.iter().position(|write| write.uid == uid);
            place.and_then(|place| unfinished.remove(place))
        };
        let (rules, mutated) = heard.map(|heard| (heard.rules, heard.mutated)).unwrap_or_default();
        let topic = if rules.is_empty() && refused.is_none() { Topic::Request } else { Topic::Decision };
        if topic == Topic::Request && is_own(&write.user.name) {
            return;
        }
        let changed = mutated.map(|(before, after)| difference(&before, &after)).unwrap_or_default();
        let namespace = Some(write.namespace.as_str()).filter(|_| write.resource.namespaced);
        let path =
            if write.name.is_empty() { String::new() } else { write.resource.path(namespace, Some(&write.name)) };
        let decision = Decision {
            verb: write.operation.text().to_lowercase().into(),
            kind: write.resource.kind.clone(),
            subresource: write.subresource.clone(),
            namespace: namespace.map(Str::new).unwrap_or_default(),
            name: write.name.clone(),
            path,
            user: write.user.name.clone(),
            dry_run: write.dry_run,
            ended: if refused.is_some() { Ended::Denied } else { Ended::Allowed },
            message: refused.map(ToString::to_string).unwrap_or_default(),
            rules,
            changed,
        };
        self.show(topic, &decision);
    }

    /// A background controller did something.
    pub(super) fn worked(&self, note: &Note) {
        let decision = match note {
            Note::Excepted { policy, rule, trigger, verdict, words } => Decision {
                verb: "pass over".into(),
                kind: trigger.kind.clone(),
                namespace: trigger.namespace.clone(),
                name: trigger.name.clone(),
                ended: Ended::Done,
                rules: vec![explained(policy, rule, *verdict, vec![ExplainedStep::plain(words.message.as_str())])],
                ..Decision::default()
            },
            Note::Changed { policy, rule, trigger, change, object, .. } => {
                let text = |key: &str| Str::new(object.str_at(&["metadata", key]).unwrap_or_default());
                let reason = ExplainedStep::plain(change.reason.as_str());
                let steps = made_for(trigger.as_ref()).into_iter().chain([reason]).collect();
                Decision {
                    verb: change.verb().into(),
                    kind: Str::new(object.str_at(&["kind"]).unwrap_or_default()),
                    namespace: text("namespace"),
                    name: text("name"),
                    ended: Ended::Done,
                    rules: vec![explained(policy, rule, Verdict::Pass, steps)],
                    changed: before_and_after(change).map(|(old, new)| difference(old, new)).unwrap_or_default(),
                    ..Decision::default()
                }
            }
            Note::Failed { policy, rule, trigger, message } => {
                let place = trigger.clone().unwrap_or_default();
                let steps = vec![ExplainedStep::plain(message.as_str())];
                Decision {
                    verb: "act on".into(),
                    kind: place.kind,
                    namespace: place.namespace,
                    name: place.name,
                    ended: Ended::Failed,
                    rules: vec![explained(policy, rule, Verdict::Error, steps)],
                    ..Decision::default()
                }
            }
        };
        self.show(Topic::Decision, &decision);
    }

    fn show(&self, topic: Topic, decision: &Decision) {
        self.live.show(topic, &decision.value(Timestamp::now()));
    }
}

/// Whether a user is one of Ephor's own accounts, whose writes say nothing to a reader unless a policy matched.
fn is_own(user: &str) -> bool {
    user.strip_prefix("system:serviceaccount:")
        .and_then(|rest| rest.split_once(':'))
        .is_some_and(|(namespace, _)| namespace == NAMESPACE)
}

fn explained(policy: &PolicyId, rule: &Str, verdict: Verdict, steps: Vec<ExplainedStep>) -> ExplainedRule {
    ExplainedRule {
        key: policy.to_string().into(),
        verdict: Some(verdict),
        steps,
        ..ExplainedRule::named(rule.clone())
    }
}

fn made_for(trigger: Option<&TriggerRef>) -> Option<ExplainedStep> {
    let TriggerRef { kind, namespace, name, .. } = trigger?;
    let slash = if namespace.is_empty() { "" } else { "/" };
    Some(ExplainedStep::plain(format!("for {kind} {namespace}{slash}{name}")))
}

/// The states of an object that is there before and after; a new one is no difference.
fn before_and_after(change: &Change) -> Option<(&Value, &Value)> {
    match &change.action {
        Action::Replace { before, after } | Action::Apply { before: Some(before), after } => Some((before, after)),
        Action::Create(_) | Action::Apply { before: None, .. } | Action::Delete { .. } => None,
    }
}

impl Observer for ShownDecisions {
    fn decided(&self, decided: &Decided<'_>) {
        self.events.decided(decided);
        if decided.explained.is_empty() {
            return;
        }
        let uid = &decided.request.uid;
        let mut unfinished = self.unfinished.lock();
        let place = unfinished.iter().position(|write| write.uid == *uid);
        let heard = place.and_then(|place| unfinished.remove(place));
        let mut heard = heard.unwrap_or_else(|| Unfinished { uid: uid.clone(), rules: Vec::new(), mutated: None });
        heard.rules.extend(decided.explained.iter().cloned());
        if decided.phase == Phase::Mutate {
            let before = heard.mutated.map_or_else(|| decided.request.object.clone(), |(before, _)| before);
            heard.mutated = Some((before, decided.object.clone()));
        }
        if unfinished.len() >= UNFINISHED {
            unfinished.pop_front();
        }
        unfinished.push_back(heard);
    }

    fn answered(&self, request: &AdmissionRequest, webhook: Webhook, answer: &Answer, took: Duration) {
        self.events.answered(request, webhook, answer, took);
    }
}
