//! Reports the changes and failures of the controller to the log, as Events, as metrics and in reports of triggers.

use std::sync::Arc;

use ephor_engine::outcome::RuleKind;
use ephor_runtime::events::notes::{Generated, failed, generated, mutated_existing, removed};
use ephor_runtime::events::{Component, Recorder, Reference};
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::{PolicyId, PolicyStore, Snapshot};

use super::results::WorkResults;
use super::trigger::TriggerRef;
use super::writer::{Note, Observer};
use crate::plan::Reason;

/// Reports all changes and failures of the policies in `store`, also to `listener`, and to `results`.
pub fn observer(
    events: Recorder,
    metrics: Metrics,
    store: PolicyStore,
    listener: Option<Observer>,
    results: Option<WorkResults>,
) -> Observer {
    Arc::new(move |note| {
        if let Some(listener) = &listener {
            listener(note);
        }
        let snapshot = store.snapshot();
        if let Some(results) = &results {
            results.observe(note, &snapshot);
        }
        let told = |key| snapshot.policies.get(key).map(|policy| Reference::policy(policy));
        match note {
            Note::Excepted { .. } => {}
            Note::Changed { policy: key, rule, trigger, change, object, .. } => {
                let verb = change.verb();
                tracing::info!(policy = %key, %rule, verb, kind = ?object.str_at(&["kind"]),
                    namespace = ?object.str_at(&["metadata", "namespace"]), name = ?object.str_at(&["metadata", "name"]));
                metrics.background_changed(key, rule, verb);
                let known = told(key);
                let exists = known.is_some();
                let (policy, object) = (known.unwrap_or_else(|| named(key)), Reference::of(object));
                let trigger = trigger.as_ref().filter(|_| change.reason != Reason::TriggerGone).and_then(reference);
                let made = Generated { policy: &policy, rule, trigger: trigger.as_ref(), object: &object };
                events.record(match verb {
                    "delete" => removed(&made, exists),
                    _ if !exists || change.reason == Reason::Released => Vec::new(),
                    "mutate" => mutated_existing(&made),
                    _ => generated(&made),
                });
            }
            Note::Failed { policy: key, rule, trigger, message } => {
                let about = trigger.as_ref().map(ToString::to_string);
                tracing::warn!(policy = %key, %rule, trigger = about, %message, "failed");
                let Some(policy) = told(key) else { return };
                let component = component(&snapshot, key, rule);
                let rule = Some(rule.as_str()).filter(|rule| !rule.is_empty());
                events.record(failed(component, &policy, rule, trigger.as_ref().and_then(reference), message));
            }
        }
    })
}

/// The trigger as Events name it; `None` for what cannot be named.
fn reference(trigger: &TriggerRef) -> Option<Reference> {
    let TriggerRef { api_version, kind, namespace, name, uid } = trigger.clone();
    let named = !(kind.is_empty() || name.is_empty());
    named.then_some(Reference { api_version, kind, namespace, name, uid })
}

/// A policy that is gone.
fn named(key: &PolicyId) -> Reference {
    Reference { namespace: key.namespace.clone().unwrap_or_default(), name: key.name.clone(), ..Reference::default() }
}

/// Who tells of a rule.
fn component(snapshot: &Snapshot, policy: &PolicyId, rule: &str) -> Component {
    let program = snapshot.policies.get(policy).and_then(|policy| policy.program.as_ref());
    let rule = program.and_then(|program| program.rules.iter().find(|known| known.name == rule));
    match rule.map(|rule| rule.body.kind()) {
        Some(RuleKind::Mutate) => Component::Mutate,
        _ => Component::Generate,
    }
}
