//! An Event, and the closed sets of its words.

use ephor_expr::{Str, Value};

use crate::policies::StoredPolicy;

/// What happened to what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// The object that the event is shown with.
    pub regarding: Reference,
    /// Another object that had a part in it.
    pub related: Option<Reference>,
    /// Why it was written.
    pub reason: Reason,
    /// The result for the request or target.
    pub action: Action,
    /// Who tells.
    pub component: Component,
    /// The text; cut when it is written.
    pub note: Str,
}

/// An object that an event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Its API version.
    pub api_version: Str,
    /// Its kind.
    pub kind: Str,
    /// Its namespace; empty for none.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
    /// Its identity; empty if it has none yet.
    pub uid: Str,
}

impl Reference {
    /// The reference to an object.
    pub fn of(object: &Value) -> Self {
        let text = |keys: &[&str]| Str::new(object.str_at(keys).unwrap_or_default());
        Self {
            api_version: text(&["apiVersion"]),
            kind: text(&["kind"]),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]),
            uid: text(&["metadata", "uid"]),
        }
    }

    /// The reference to a policy.
    pub fn policy(policy: &StoredPolicy) -> Self {
        Self::of(&policy.document)
    }

    /// `namespace/name`, or the name of what has no namespace.
    pub fn place(&self) -> String {
        if self.namespace.is_empty() { self.name.to_string() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

/// Why an event was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// An object breaks a policy.
    Violation,
    /// A policy was satisfied, or did its work.
    Applied,
    /// A policy could not be judged.
    Error,
    /// An exception kept a policy from being applied.
    Skipped,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Violation, Self::Applied, Self::Error, Self::Skipped];

    /// The word in events and in `omitEvents`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Violation => "PolicyViolation",
            Self::Applied => "PolicyApplied",
            Self::Error => "PolicyError",
            Self::Skipped => "PolicySkipped",
        }
    }

    /// The reason of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// `Normal` or `Warning`.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Applied | Self::Skipped => "Normal",
            Self::Violation | Self::Error => "Warning",
        }
    }
}

/// The result for a request or target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// The request went through.
    Passed,
    /// The request was denied.
    Blocked,
    /// Something was created.
    Generated,
    /// Something was changed.
    Mutated,
    /// Something was deleted.
    CleanedUp,
    /// Nothing that an event could name.
    None,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Passed, Self::Blocked, Self::Generated, Self::Mutated, Self::CleanedUp, Self::None];

    /// The words in events and in `successEventActions`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "Resource Passed",
            Self::Blocked => "Resource Blocked",
            Self::Generated => "Resource Generated",
            Self::Mutated => "Resource Mutated",
            Self::CleanedUp => "Resource Cleaned Up",
            Self::None => "None",
        }
    }

    /// The action of these words.
    pub fn parse(words: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == words)
    }
}

/// Who tells: the part of the engine that the user knows, whatever process it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// The admission of requests.
    Admission,
    /// The scan of what exists.
    Scan,
    /// Generation.
    Generate,
    /// Mutation of what exists.
    Mutate,
    /// Cleanup.
    Cleanup,
}

impl Component {
    /// `reportingController` of its events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admission => "kyverno-admission",
            Self::Scan => "kyverno-scan",
            Self::Generate => "kyverno-generate",
            Self::Mutate => "kyverno-mutate",
            Self::Cleanup => "kyverno-cleanup",
        }
    }
}
