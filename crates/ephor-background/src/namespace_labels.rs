//! Re-evaluates triggers when the labels of their Namespace change.
//!
//! Only rules with a `namespaceSelector` are affected. A trigger that a rule selects now and did not select before
//! counts as a new trigger. Other changes of labels do nothing: deleted downstreams are not created again, and triggers
//! that are older than their rule stay unaffected.

use std::sync::Arc;

use ephor_engine::compile::CompiledRule;
use ephor_engine::matching::{MatchInput, NamespaceLabels, applies};
use ephor_engine::policy::Operation;
use ephor_engine::review::Review;
use ephor_expr::{Map, Value};
use ephor_runtime::queue::Settled;

use super::queue::{Task, WorkKey};
use super::reconcile::{ReconcileContext, ReconcileError};
use super::rules::{GenerateInfo, PolicyInfo};
use super::trigger::{TriggerRef, review_of_existing};

/// The labels of a namespace before a change and after it.
struct Labels {
    before: Map,
    after: Map,
}

impl ReconcileContext<'_> {
    /// Evaluates the triggers in a namespace whose labels changed.
    pub fn namespace_labels_changed(&self, namespace: &str) -> Settled {
        let (before, after, infos) = {
            let mut state = self.lock();
            let Some((before, after)) = state.take_changed_labels(namespace) else { return Settled::Done };
            let infos: Vec<Arc<PolicyInfo>> = state.infos.values().cloned().collect();
            (before, after, infos)
        };
        let members = |labels: &Value| labels.as_object().cloned().unwrap_or_default();
        let labels = Labels { before: members(&before), after: members(&after) };
        for info in infos.iter().filter(|info| info.sees(namespace)) {
            for rule in info.generate.iter().filter(|rule| rule.traits.namespace_selector) {
                match self.look_again(info, rule, namespace, &labels) {
                    Ok(()) => {}
                    Err(ReconcileError::LostLease) => return Settled::Done,
                    Err(_) => {
                        self.lock().put_changed_labels(namespace, before);
                        return Settled::Failed;
                    }
                }
            }
        }
        Settled::Done
    }

    fn look_again(
        &self,
        info: &PolicyInfo,
        rule: &GenerateInfo,
        namespace: &str,
        labels: &Labels,
    ) -> Result<(), ReconcileError> {
        let compiled = info.set.programs().iter().flat_map(|program| &program.rules).find(|r| r.name == rule.name);
        let Some(compiled) = compiled else { return Ok(()) };
        for object in self.triggers(info, rule.kinds.as_deref(), Some(namespace))? {
            let (did, does) = (selects(compiled, &object, &labels.before), selects(compiled, &object, &labels.after));
            // Whom a request was by is known only where the last one is.
            let unclear = rule.traits.event_bound && rule.terms.synchronize;
            if !unclear && (did == does || !(does || rule.terms.synchronize)) {
                continue;
            }
            let trigger = TriggerRef::of_object(&object);
            let key = WorkKey { policy: info.key.clone(), trigger: trigger.uid.clone() };
            let mut state = self.lock();
            if does && !did {
                state.events.name(&key, trigger);
                state.events.force(&key, [rule.name.clone()]);
            }
            state.queue.add(Task::Reconcile(key), self.now);
        }
        Ok(())
    }
}

/// Whether a rule's blocks apply to an object, as it comes or as it changes, in a namespace with such labels.
fn selects(rule: &CompiledRule, object: &Value, labels: &Map) -> bool {
    [Operation::Create, Operation::Update].into_iter().any(|operation| {
        let review = review_of_existing(object, operation, "", jiff::Timestamp::UNIX_EPOCH);
        if let Some(constraints) = rule.body.constraints() {
            let namespace_labels = Some(labels.clone().into());
            return constraints.selects_namespace(&Review { namespace_labels, ..review }) == Some(true);
        }
        let input = MatchInput {
            gvk: &review.gvk,
            subresource: "",
            name: &review.name,
            generate_name: "",
            namespace: &review.namespace,
            object,
            operation,
            user: None,
            namespace_labels: NamespaceLabels::Known(labels),
        };
        applies(&rule.matches, rule.exclude.as_ref(), &input) == Ok(true)
    })
}
