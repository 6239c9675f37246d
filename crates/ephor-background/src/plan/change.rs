//! One change of a cluster, with its reason and proof of ownership.

use ephor_expr::{Str, Value};
use ephor_runtime::content::normalized_content;

use super::identity::ObjectId;

/// Something to do to one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The object.
    pub id: ObjectId,
    /// The `apiVersion` to address it by.
    pub api_version: Str,
    /// What to do.
    pub action: Action,
    /// Why.
    pub reason: Reason,
}

impl Change {
    /// What to do to an object that says which one it is.
    pub(super) fn of(object: &Value, action: Action, reason: Reason) -> Self {
        let api_version = Str::new(object.str_at(&["apiVersion"]).unwrap_or_default());
        Self { id: ObjectId::of(object), api_version, action, reason }
    }
}

/// What to do to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Create it; that it is there already is a reason to look again.
    Create(Value),
    /// Replace what is there, if it is still this very object in this version.
    Replace {
        /// The object as it was seen.
        before: Value,
        /// The object as it shall be, with the UID and version of the one seen.
        after: Value,
    },
    /// Apply it on the server's side.
    Apply {
        /// The object as it was seen, if there was one.
        before: Option<Value>,
        /// What shall be said.
        after: Value,
    },
    /// Delete it, if it is still this very object in this version.
    Delete {
        /// The object as it was seen.
        before: Value,
        /// What proves that it may be deleted.
        proof: Proof,
    },
}

/// Why a change is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// It is wanted and not there.
    Missing,
    /// It is not what its rule renders.
    Differs,
    /// What is noted on it about its rule is no longer true.
    AnnotationChanged,
    /// The author moved the rule's target or source; what is there stays, on its own.
    Released,
    /// Its trigger is gone.
    TriggerGone,
    /// Its trigger is no longer matched, or its preconditions are false.
    TriggerUnmatched,
    /// Its rule renders something else for the trigger.
    NoLongerRendered,
    /// What it was copied from is gone.
    SourceGone,
    /// Its rule is gone.
    RuleGone,
    /// Its policy is gone.
    PolicyGone,
    /// A mutate rule patches it.
    Mutated,
}

impl Reason {
    /// The reason in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "it is not there",
            Self::Differs => "it is not what the rule renders",
            Self::AnnotationChanged => "what is noted on it about its rule has changed",
            Self::Released => "the rule's target or source was moved",
            Self::TriggerGone => "its trigger is gone",
            Self::TriggerUnmatched => "its trigger is no longer matched",
            Self::NoLongerRendered => "the rule renders something else for its trigger",
            Self::SourceGone => "its source is gone",
            Self::RuleGone => "its rule is gone",
            Self::PolicyGone => "its policy is gone",
            Self::Mutated => "a mutate rule patches it",
        }
    }
}

/// What proves that an object is the policy's to delete. Labels alone prove nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proof {
    /// Its rule renders an object of that kind, namespace and name for its trigger, or did so when last asked.
    Rendered,
    /// The annotation on it was made for this very object.
    Stamped,
    /// A request's `generatedResources` name it.
    Recorded,
}

impl Change {
    /// The change as it turns out, when that is stored then; `None` if it changes nothing.
    #[must_use]
    pub fn as_stored(&self, stored: &Value) -> Option<Self> {
        let action = match &self.action {
            Action::Replace { before, .. } => Action::Replace { before: before.clone(), after: stored.clone() },
            Action::Apply { before: Some(before), .. } => {
                Action::Apply { before: Some(before.clone()), after: stored.clone() }
            }
            action => return Some(Self { action: action.clone(), ..self.clone() }),
        };
        let (Action::Replace { before, .. } | Action::Apply { before: Some(before), .. }) = &action else {
            return None;
        };
        let says = |object: &Value| (normalized_content(object), object.get("status").cloned());
        (says(before) != says(stored)).then(|| Self { action, ..self.clone() })
    }

    /// The verb for the user.
    pub fn verb(&self) -> &'static str {
        match &self.action {
            _ if self.reason == Reason::Mutated => "mutate",
            Action::Create(_) | Action::Apply { before: None, .. } => "create",
            Action::Replace { .. } | Action::Apply { .. } => "change",
            Action::Delete { .. } => "delete",
        }
    }
}
