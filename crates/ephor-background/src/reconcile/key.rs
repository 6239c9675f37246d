//! Reconciles one policy with one trigger.

use std::collections::{BTreeMap, BTreeSet};

use ephor_engine::redact::Redactor;
use ephor_expr::Value;

use super::context::{Done, POLL_INTERVAL, ReconcileContext, ReconcileError, TriggerRequest};
use super::reconciler::PolicyReconciler;
use crate::plan::{Cause, ObjectId};
use crate::queue::{Task, WorkKey};
use crate::rules::PolicyInfo;
use crate::state::{Reading, State};
use crate::trigger::TriggerRef;
use crate::writer::Words;

impl ReconcileContext<'_> {
    /// Makes good what a policy wants for a trigger.
    pub fn reconcile(&self, key: &WorkKey, request: Option<&TriggerRequest>) -> Result<Done, ReconcileError> {
        let reading = Reading::begin(self.state, key);
        let (info, owned, trigger, forced) = {
            let state = self.lock();
            let owned = state.index.owned(key);
            let info = state.infos.get(&key.policy).cloned();
            let trigger = Self::locate(&state, key, info.as_deref(), &owned, request);
            (info, owned, trigger, state.events.forced(key).cloned().unwrap_or_default())
        };
        let Some(info) = info else { return self.without_policy(key, &owned) };
        if info.program.is_none() {
            // A policy that is refused says nothing, so that nothing is done on its account.
            self.lock().forget_key(key, self.now);
            return Ok(Done::default());
        }
        let mut work = PolicyReconciler {
            context: self,
            key,
            info: &info,
            trigger,
            object: Value::Null,
            request,
            forced,
            rendered: BTreeMap::new(),
            met: BTreeMap::new(),
            done: Done::default(),
            verdicts: BTreeSet::new(),
            unjudged: false,
            failure: None,
            secrets: Redactor::default(),
            words: Words::default(),
        };
        work.run(owned)?;
        let PolicyReconciler { rendered, done, unjudged, failure, trigger, .. } = work;
        let mut state = self.lock();
        state.set_rendered(key, rendered, self.now);
        // A key that fails is judged again. A request that fails may be given up, so its reads prove nothing.
        let failed = failure.is_some() || done.others_failed;
        if !unjudged && (!failed || request.is_none()) {
            state.judged(key, reading.pass());
        }
        if done.changes > 0 && state.is_overtaken(key, reading.pass()) {
            // The younger pass has read newer objects, and may have written before this one.
            state.queue.add(Task::Reconcile(key.clone()), self.now);
        }
        if !state.infos.contains_key(&key.policy) {
            // The trigger was deleted in between, so what was recorded about it just now must be dropped here.
            state.queue.add(Task::Reconcile(key.clone()), self.now);
        }
        if done.others_failed {
            state.queue.add(Task::Reconcile(key.clone()), self.now);
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        if !done.others_failed && request.is_none_or(|request| !request.alone) {
            state.events.unforce(key);
        }
        state.events.unname(key);
        // No watch reports triggers of this kind, so the trigger is forgotten once its downstreams are deleted.
        let made = state.ownership.rendered(key).is_some();
        if let Some(trigger) = trigger.filter(|trigger| made && !trigger.uid.is_empty())
            && state.index.find(&trigger.id()).is_none()
        {
            state.events.name(key, trigger);
        }
        if done.trigger_gone {
            state.forget_key(key, self.now);
        }
        let needs = |rule: &str| info.rule(rule).is_some_and(|r| r.terms.synchronize && r.traits.remembers_any());
        state.forget_contexts(key, needs, self.now);
        Ok(done)
    }

    pub(super) fn locate(
        state: &State,
        key: &WorkKey,
        info: Option<&PolicyInfo>,
        owned: &[ObjectId],
        request: Option<&TriggerRequest>,
    ) -> Option<TriggerRef> {
        if let Some(request) = request {
            let context =
                request.update_request.spec.rule_context.iter().find(|context| context.trigger.uid == key.trigger);
            if let Some(context) = context {
                return Some(TriggerRef::of_spec(&context.trigger));
            }
        }
        if info.is_some()
            && let Some(seen) = state.index.with_uid(state.index.kinds(), &key.trigger)
        {
            return Some(TriggerRef::of_seen(seen));
        }
        let claimed = owned.iter().filter_map(|id| state.index.find(id)?.downstream.as_ref());
        state
            .events
            .trigger(key)
            .cloned()
            .or_else(|| state.contexts.trigger(key))
            .or_else(|| claimed.map(|d| TriggerRef::of_claim(&d.claim)).max_by_key(|trigger| !trigger.name.is_empty()))
    }

    /// Handles a key whose policy is not in the store. Checks with the API server before anything is removed.
    pub(super) fn without_policy(&self, key: &WorkKey, owned: &[ObjectId]) -> Result<Done, ReconcileError> {
        if !owned.is_empty() && self.policy_document(key)?.is_some() {
            let known = self.lock().snapshot.policies.contains_key(&key.policy);
            // It is there but has no rules of this sort any more; or it came a moment ago.
            if !known {
                return Err(ReconcileError::RetryAfter(
                    POLL_INTERVAL,
                    format!("policy {} is not known yet", key.policy),
                ));
            }
        }
        let mut done = Done::default();
        for id in owned {
            done.changes += self.remove(key, id, Cause::PolicyGone, None)?;
        }
        let mut state = self.lock();
        state.forget_key(key, self.now);
        state.set_rendered(key, BTreeMap::new(), self.now);
        state.forget_former(&key.policy, 1);
        done.trigger_gone = true;
        Ok(done)
    }
}
