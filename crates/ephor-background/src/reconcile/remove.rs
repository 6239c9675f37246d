//! Removes objects that their rule does not want any more.

use ephor_cluster::ErrorKind;

use super::context::{ReconcileContext, ReconcileError, TRIES};
use super::reconciler::PolicyReconciler;
use crate::plan::{Action, Cause, Claim, ObjectId, Removal, Terms, is_adopted, plan_removal};
use crate::queue::{Task, WorkKey};
use crate::rules::GenerateInfo;
use crate::trigger::TriggerRef;

impl ReconcileContext<'_> {
    /// Takes away an object that a key owns, if it may; how many changes that took.
    pub(super) fn remove(
        &self,
        key: &WorkKey,
        id: &ObjectId,
        cause: Cause,
        terms: Option<&Terms>,
    ) -> Result<usize, ReconcileError> {
        for _ in 0..TRIES {
            let (api_version, rendered, others) = {
                let state = self.lock();
                let version = state.index.find(id).map(|seen| seen.api_version.clone());
                let rendered = state.ownership.renders(key, id);
                (version, rendered, state.others_wanting(id, key))
            };
            let Some(api_version) = api_version else { return Ok(0) };
            let Some(live) = self.env.read(&api_version, id)? else {
                self.forget(id);
                return Ok(0);
            };
            let Some(claim) = Claim::of(&live).filter(|claim| claim.owner.key() == *key) else {
                self.lock().note(&live, self.now);
                return Ok(0);
            };
            let (former, adopted) = {
                let state = self.lock();
                let former = state.former.get(&(key.policy.clone(), claim.owner.rule.clone())).cloned();
                (former, is_adopted(&live, state.ownership.written(id)) == Some(true))
            };
            let removal = Removal {
                live: &live,
                claim: &claim,
                cause,
                terms: terms.or(former.as_ref()),
                rendered,
                recorded: false,
                adopted,
            };
            let Some(change) = plan_removal(&removal) else { return Ok(0) };
            let lets_go = match &change.action {
                Action::Replace { after, .. } => Claim::of(after).is_none(),
                action => matches!(action, Action::Delete { .. }),
            };
            if !others.is_empty() && lets_go {
                // Another trigger wants it: it takes the object over.
                let mut state = self.lock();
                for other in others {
                    state.queue.add(Task::Reconcile(other), self.now);
                }
                return Ok(0);
            }
            match self.env.writer(&key.policy).apply(&change) {
                Ok(stored) => {
                    match stored {
                        Some(stored) => self.lock().note(&stored, self.now),
                        None => self.forget_object(id, &live),
                    }
                    let trigger = Some(TriggerRef::of_claim(&claim)).filter(|trigger| !trigger.name.is_empty());
                    self.tell(key, &claim.owner.rule, trigger.as_ref(), &change, live);
                    return Ok(1);
                }
                Err(error) if error.is(ErrorKind::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ReconcileError::Failed(format!("{id} changes all the time")))
    }
}

impl PolicyReconciler<'_, '_> {
    pub(super) fn remove_all(
        &mut self,
        rule: &GenerateInfo,
        own: &[ObjectId],
        cause: Cause,
    ) -> Result<(), ReconcileError> {
        for id in own {
            self.done.changes += self.context.remove(self.key, id, cause, Some(&rule.terms))?;
        }
        Ok(())
    }
}
