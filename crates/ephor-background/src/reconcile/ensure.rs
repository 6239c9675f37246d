//! Creates or updates one wanted object.

use ephor_cluster::ErrorKind;
use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};
use ephor_runtime::content::{Origin, Written, fingerprint, normalized_content};
use ephor_runtime::update_request::ResourceSpec;

use super::context::{POLL_INTERVAL, ReconcileError, TRIES};
use super::reconciler::PolicyReconciler;
use crate::plan::{Action, Claim, OwnershipAnnotation, Reason, Wanted, plan_downstream, says_adopted};
use crate::rules::GenerateInfo;
use crate::state::OwnerState;
use crate::write_limit::WriteLimit;
use crate::writer::Note;

impl PolicyReconciler<'_, '_> {
    /// Makes one object exist as it is wanted.
    pub(super) fn ensure(&mut self, rule: &GenerateInfo, wanted: &Wanted) -> Result<(), ReconcileError> {
        let api_version = wanted.object.str_at(&["apiVersion"]).unwrap_or_default();
        let mut live: Option<Value> = None;
        let settled = self.known(rule, wanted);
        if settled == Some(true) {
            return Ok(());
        }
        // A creation fails if the object is there, but an apply changes it: whether it creates must be known before.
        if settled.is_some() || rule.terms.server_side_apply {
            live = self.context.env.read(api_version, &wanted.id)?;
        }
        for _ in 0..TRIES {
            if let Some(live) = &live
                && rule.terms.synchronize
                && let Some(claim) = Claim::of(live).filter(|claim| !self.is_own(rule, claim))
            {
                match self.context.lock().owner_state(&claim.owner, &wanted.id) {
                    // Several triggers can want the same object; the first that has it keeps it.
                    OwnerState::Active => return Ok(()),
                    OwnerState::Unknown => {
                        return Err(ReconcileError::RetryAfter(
                            5 * POLL_INTERVAL,
                            format!("{} belongs to another trigger", wanted.id),
                        ));
                    }
                    OwnerState::Stale => {}
                }
            }
            let written = self.context.lock().ownership.written(&wanted.id).cloned();
            let Some(change) = plan_downstream(&rule.terms, wanted, live.as_ref(), written.as_ref()) else {
                if let Some(live) = &live {
                    self.context.lock().note(live, self.context.now);
                    self.met.insert(wanted.id.clone(), ResourceSpec::of_object(live));
                }
                return Ok(());
            };
            let content = fingerprint(&normalized_content(&wanted.object));
            let corrects = change.reason == Reason::Differs;
            if corrects {
                self.check_write_limit(wanted, &content)?;
            }
            match self.context.env.writer(&self.key.policy).apply(&change) {
                Ok(stored) => {
                    if let Some(stored) = stored {
                        let (sent, creates) = match &change.action {
                            Action::Replace { after, .. } | Action::Apply { before: Some(_), after } => (after, false),
                            Action::Create(after) | Action::Apply { before: None, after } => (after, true),
                            Action::Delete { before, .. } => (before, false),
                        };
                        let known = written.as_ref().and_then(|written| written.origin.clone());
                        let uid = stored.str_at(&["metadata", "uid"]).map(Str::new);
                        let origin = if creates {
                            uid.map(Origin::Created)
                        } else if says_adopted(sent) {
                            uid.map(Origin::Found)
                        } else {
                            known
                        };
                        {
                            let mut state = self.context.lock();
                            if rule.terms.synchronize {
                                state.look_after(api_version, &wanted.id);
                            }
                            let applied = matches!(change.action, Action::Apply { .. });
                            let written = Written { applied, origin, ..Written::new(sent, &stored) };
                            state.note_own(written, &stored, self.context.now);
                            if corrects {
                                state.recent_writes.record(&wanted.id, content, self.context.now);
                            }
                        }
                        self.met.insert(wanted.id.clone(), ResourceSpec::of_object(&stored));
                        // After a restart, the controller repeats its last write, which may change nothing.
                        if live.as_ref().is_some_and(|live| same_version(live, &stored)) {
                            return Ok(());
                        }
                        (self.context.env.observer)(&Note::Changed {
                            policy: self.key.policy.clone(),
                            rule: rule.name.clone(),
                            trigger: self.trigger.clone(),
                            change: Box::new(change),
                            object: stored,
                            words: self.words.clone(),
                        });
                    }
                    self.done.changes += 1;
                    return Ok(());
                }
                Err(error) if error.is(ErrorKind::AlreadyExists) || error.is(ErrorKind::Conflict) => {
                    live = self.context.env.read(api_version, &wanted.id)?;
                }
                Err(error) if error.is(ErrorKind::NotFound) && live.is_some() => live = None,
                Err(error) => return Err(error.into()),
            }
        }
        Err(ReconcileError::Failed(format!("{} changes all the time", wanted.id)))
    }

    /// Whether a claim belongs to this reconciliation, or to another event of the same rule.
    fn is_own(&self, rule: &GenerateInfo, claim: &Claim) -> bool {
        let of_event = claim.annotation.as_ref().is_some_and(OwnershipAnnotation::is_of_event);
        claim.owner.key() == *self.key
            || of_event && claim.owner.policy == self.key.policy && claim.owner.rule == rule.name
    }

    /// Fails if the object has been written too often lately.
    fn check_write_limit(&self, wanted: &Wanted, content: &str) -> Result<(), ReconcileError> {
        let id = &wanted.id;
        match self.context.lock().recent_writes.check(id, content, self.context.now) {
            None => Ok(()),
            Some(WriteLimit::Loop) => {
                Err(ReconcileError::Failed(format!("{id} is changed again and again by another client")))
            }
            Some(WriteLimit::Rate(wait)) => Err(ReconcileError::RetryAfter(wait, format!("{id} changes too often"))),
        }
    }

    /// What is known of a wanted object: whether it is settled; `None` if it is not known to exist.
    pub(super) fn known(&self, rule: &GenerateInfo, wanted: &Wanted) -> Option<bool> {
        let mut state = self.context.lock();
        let Some(seen) = state.index.find(&wanted.id) else {
            // Nothing is known about kinds that are not watched. A trigger that changes most likely has its downstream
            // already.
            let admission = self.request.and_then(|request| request.admission.as_ref());
            let changes = admission.is_some_and(|admission| admission.operation == Operation::Update);
            return (changes && !rule.terms.synchronize).then_some(false);
        };
        if !state.index.is_synced(&wanted.id.group_kind()) {
            return Some(false);
        }
        let Some(downstream) = &seen.downstream else { return Some(!rule.terms.synchronize) };
        if downstream.claim.owner != wanted.owner || !rule.terms.synchronize {
            return Some(false);
        }
        let known = state.ownership.written(&wanted.id).and_then(|written| written.is_found(&seen.uid));
        let adopted = known.unwrap_or(downstream.claim.adopted);
        let object = if adopted { wanted.adopted().object } else { wanted.object.clone() };
        let sent = fingerprint(&normalized_content(&object));
        let as_written = state.ownership.written(&wanted.id).is_some_and(|w| {
            w.stored == downstream.normalized_content && w.sent == sent && w.applied == rule.terms.server_side_apply
        });
        let settled = as_written || downstream.normalized_content == sent;
        if settled && !as_written {
            let stored = downstream.normalized_content.clone();
            let origin = adopted.then(|| Origin::Found(seen.uid.clone()));
            let written = Written { sent, stored, applied: false, origin };
            state.ownership.set_written_once(wanted.id.clone(), written);
        }
        Some(settled)
    }
}

fn same_version(a: &Value, b: &Value) -> bool {
    let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).map(Str::new);
    version(a).is_some() && version(a) == version(b)
}
