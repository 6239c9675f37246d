//! One object, made to exist as it is wanted.

use ephor_cluster::ErrorKind;
use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};
use ephor_runtime::content::{Written, essence, fingerprint};
use ephor_runtime::update_request::ResourceSpec;

use super::pass::{Failure, LOOK_AGAIN, TRIES};
use super::work::Work;
use crate::contest::Contest;
use crate::plan::{Action, Claim, Reason, Stamp, Wanted, plan_downstream};
use crate::rules::GenerateInfo;
use crate::state::{Standing, key_of};

impl Work<'_, '_> {
    /// Makes one object exist as it is wanted.
    pub(super) fn ensure(&mut self, rule: &GenerateInfo, wanted: &Wanted) -> Result<(), Failure> {
        let api_version = wanted.object.str_at(&["apiVersion"]).unwrap_or_default();
        let mut live: Option<Value> = None;
        let settled = self.known(rule, wanted);
        if settled == Some(true) {
            return Ok(());
        }
        // A creation fails if the object is there, but an apply changes it: whether it creates must be known before.
        if settled.is_some() || rule.terms.server_side_apply {
            live = self.pass.env.read(api_version, &wanted.id)?;
        }
        for _ in 0..TRIES {
            if let Some(live) = &live
                && rule.terms.synchronize
                && let Some(claim) = Claim::of(live).filter(|claim| !self.is_own(rule, claim))
            {
                match self.pass.lock().stands(&claim.owner, &wanted.id) {
                    // Several triggers can want the same object; the first that has it keeps it.
                    Standing::Firm => return Ok(()),
                    Standing::Open => {
                        return Err(Failure::Later(
                            5 * LOOK_AGAIN,
                            format!("{} belongs to another trigger", wanted.id),
                        ));
                    }
                    Standing::Fallen => {}
                }
            }
            let written = self.pass.lock().written.get(&wanted.id).cloned();
            let Some(change) = plan_downstream(&rule.terms, wanted, live.as_ref(), written.as_ref()) else {
                if let Some(live) = &live {
                    self.pass.lock().note(live, self.pass.now);
                    self.met.insert(wanted.id.clone(), ResourceSpec::of_object(live));
                }
                return Ok(());
            };
            let content = fingerprint(&essence(&wanted.object));
            let corrects = change.reason == Reason::Differs;
            if corrects {
                self.look_for_contest(wanted, &content)?;
            }
            match self.pass.env.writer(&self.key.policy).apply(&change) {
                Ok(stored) => {
                    if let Some(stored) = stored {
                        let (sent, creates) = match &change.action {
                            Action::Replace { after, .. } | Action::Apply { before: Some(_), after } => (after, false),
                            Action::Create(after) | Action::Apply { before: None, after } => (after, true),
                            Action::Delete { before, .. } => (before, false),
                        };
                        let known = written.as_ref().and_then(|written| written.created.clone());
                        let uid = stored.str_at(&["metadata", "uid"]).map(Str::new);
                        let created = if creates { uid } else { known };
                        {
                            let mut state = self.pass.lock();
                            if rule.terms.synchronize {
                                state.look_after(api_version, &wanted.id);
                            }
                            let applied = matches!(change.action, Action::Apply { .. });
                            let written = Written { applied, created, ..Written::new(sent, &stored) };
                            state.note_own(written, &stored, self.pass.now);
                            if corrects {
                                state.contests.note(&wanted.id, content, self.pass.now);
                            }
                        }
                        self.met.insert(wanted.id.clone(), ResourceSpec::of_object(&stored));
                        // Whoever has forgotten what it wrote last writes once more; that may change nothing.
                        if live.as_ref().is_some_and(|live| same_version(live, &stored)) {
                            return Ok(());
                        }
                        self.pass.tell(self.key, &rule.name, self.trigger.as_ref(), &change, stored);
                    }
                    self.done.changes += 1;
                    return Ok(());
                }
                Err(error) if error.is(ErrorKind::AlreadyExists) || error.is(ErrorKind::Conflict) => {
                    live = self.pass.env.read(api_version, &wanted.id)?;
                }
                Err(error) if error.is(ErrorKind::NotFound) && live.is_some() => live = None,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::Failed(format!("{} changes all the time", wanted.id)))
    }

    /// Whether a claim is that of the work at hand, or of another event that the same rule is about.
    fn is_own(&self, rule: &GenerateInfo, claim: &Claim) -> bool {
        let owner = key_of(&claim.owner);
        let of_event = claim.stamp.as_ref().is_some_and(Stamp::is_of_event);
        owner == *self.key || of_event && owner.policy == self.key.policy && claim.owner.rule == rule.name
    }

    /// Fails if the object has been written too often lately.
    fn look_for_contest(&self, wanted: &Wanted, content: &str) -> Result<(), Failure> {
        let id = &wanted.id;
        match self.pass.lock().contests.contest(id, content, self.pass.now) {
            None => Ok(()),
            Some(Contest::Fight) => Err(Failure::Failed(format!("{id} is changed again and again by somebody else"))),
            Some(Contest::Flood(wait)) => Err(Failure::Later(wait, format!("{id} changes too often"))),
        }
    }

    /// What is known of a wanted object: whether it is settled; `None` if it is not known to exist.
    pub(super) fn known(&self, rule: &GenerateInfo, wanted: &Wanted) -> Option<bool> {
        let mut state = self.pass.lock();
        let Some(seen) = state.index.find(&wanted.id) else {
            // Of kinds that nobody follows nothing is known. For a trigger that changes it was made before, most likely.
            let admission = self.asked.and_then(|asked| asked.admission.as_ref());
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
        let adopted = downstream.claim.stamp.as_ref().is_some_and(|stamp| stamp.adopted);
        let object = if adopted { wanted.adopted().object } else { wanted.object.clone() };
        let sent = fingerprint(&essence(&object));
        let as_written = state.written.get(&wanted.id).is_some_and(|w| {
            w.stored == downstream.essence && w.sent == sent && (w.applied || !rule.terms.server_side_apply)
        });
        let settled = as_written || downstream.essence == sent;
        if settled && !as_written {
            let stored = downstream.essence.clone();
            let written = Written { sent, stored, applied: false, created: None };
            state.written.entry(wanted.id.clone()).or_insert(written);
        }
        Some(settled)
    }
}

fn same_version(a: &Value, b: &Value) -> bool {
    let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).map(Str::new);
    version(a).is_some() && version(a) == version(b)
}
