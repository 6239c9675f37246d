//! Copies whose rule names another source than the one they were copied from.
//!
//! An edit of a rule's `clone` or `cloneList` leaves its copies as they are. A copy follows the new source once that
//! source changes, its trigger changes, or a user edits the copy.
//!
//! Only the memory of this process lets a copy wait. Everything that an object says about itself its owner can write,
//! and an owner who could make a copy wait could keep any content in it. So after a restart all copies follow their
//! rule.

use ephor_engine::outcome::Form;
use ephor_expr::Value;
use ephor_runtime::content::{fingerprint, normalized_content, set_entry};

use super::memory::State;
use crate::index::Seen;
use crate::plan::ObjectId;
use crate::plan::claim::CLONE_SOURCE;
use crate::queue::WorkKey;
use crate::rules::PolicyInfo;

/// A copy that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Fingerprint of the copy when the rule was edited.
    normalized_content: String,
    /// What it waits for a change of; `None` until its key is looked at.
    inputs: Option<Inputs>,
}

/// Fingerprints of what a copy is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    source: Option<String>,
    trigger: String,
}

impl Inputs {
    /// Of the source, if it exists, and the trigger.
    pub fn of(source: Option<&Value>, trigger: &Value) -> Self {
        let unmarked = |source: &Value| {
            let mut source = source.clone();
            // Ephor itself marks sources.
            set_entry(&mut source, "labels", CLONE_SOURCE, None);
            fingerprint(&normalized_content(&source))
        };
        Self { source: source.map(unmarked), trigger: fingerprint(&normalized_content(trigger)) }
    }
}

impl State {
    /// Lets the copies of rules wait that name other sources or targets now. Only a copy that is as this process knows
    /// it to be right waits: an edit of it that was not corrected yet must not stay.
    pub(super) fn await_changes(&mut self, before: &PolicyInfo, after: &PolicyInfo) {
        let edited = |rule: &str| match (before.rule(rule), after.rule(rule)) {
            (Some(a), Some(b)) => b.terms.synchronize && b.copies && a.terms.references != b.terms.references,
            _ => false,
        };
        let triggers = self.index.triggers_of(&after.key).into_iter();
        let keys = triggers.map(|trigger| WorkKey { policy: after.key.clone(), trigger });
        let owned = keys.flat_map(|key| self.index.owned(&key));
        let waiting = owned.filter_map(|id| {
            let seen = self.index.find(&id)?;
            let downstream = seen.downstream.as_ref()?;
            let copied = downstream.claim.annotation.as_ref().is_some_and(|annotation| annotation.form != Form::Data);
            let right =
                self.ownership.written(&id).is_some_and(|written| written.stored == downstream.normalized_content);
            let waits = copied && right && edited(&downstream.claim.owner.rule);
            waits.then(|| (id, Waiting { normalized_content: downstream.normalized_content.clone(), inputs: None }))
        });
        let waiting: Vec<_> = waiting.collect();
        self.ownership.let_wait(waiting);
    }

    /// Whether a copy still waits, made of these inputs by now. One that was copied from that very source does not.
    pub fn waits(&mut self, id: &ObjectId, source: Option<&Value>, inputs: &Inputs) -> bool {
        let Some(waiting) = self.ownership.waiting_mut(id) else { return false };
        let copy = self.index.find(id).and_then(|seen: &Seen| seen.downstream.as_ref());
        let uid = source.and_then(|source| source.str_at(&["metadata", "uid"]));
        let unchanged = copy.is_some_and(|copy| {
            copy.normalized_content == waiting.normalized_content && uid.is_none_or(|uid| copy.claim.source != uid)
        });
        let waits = unchanged && waiting.inputs.get_or_insert_with(|| inputs.clone()) == inputs;
        if !waits {
            self.ownership.end_wait(id);
        }
        waits
    }
}
