//! The outcome of a rule.

use ephor_expr::value::Path;
use ephor_expr::{Map, Str, Value};

use crate::policy::Operation;
use crate::rules::validate::admission::Decision;
use crate::rules::validate::pod_security::PodSecurityFailure;

/// The verdict of one rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// Satisfied, patched or generated.
    Pass,
    /// Violated.
    Fail,
    /// Violated, but the policy is not scored.
    Warn,
    /// Could not be judged.
    Error,
    /// Did not apply: preconditions, anchors, exceptions, nothing to do.
    Skip,
}

impl Detail {
    /// Whether there are objects in it.
    pub(crate) fn has_objects(&self) -> bool {
        !self.generated.is_empty()
            || !self.targets.is_empty()
            || self.incomplete.is_some()
            || self.partly_patched.is_some()
    }
}

impl Verdict {
    /// The word in reports and tests.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Warn => "warn",
            Verdict::Error => "error",
            Verdict::Skip => "skip",
        }
    }

    /// The verdict of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pass, Self::Fail, Self::Warn, Self::Error, Self::Skip].into_iter().find(|v| v.as_str() == word)
    }
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleKind {
    /// Changes objects.
    Mutate,
    /// Checks objects.
    Validate,
    /// Creates objects.
    Generate,
    /// Deletes objects.
    Delete,
}

/// The longest message of a rule, in bytes, as Kubernetes bounds those of its own policies.
pub const MAX_MESSAGE: usize = 5 * 1024;

/// A message, or a text of a report, that is not longer than [`MAX_MESSAGE`]. Messages hold texts of objects, and each
/// rule that fails keeps its own.
pub fn bounded(message: Str) -> Str {
    if message.len() <= MAX_MESSAGE { message } else { Str::from(cut(message.as_str(), MAX_MESSAGE)) }
}

/// At most `most` bytes of a text; what is cut ends in `…`.
pub fn cut(text: &str, most: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(MARK.len()));
    format!("{}{MARK}", text.get(..end).unwrap_or_default())
}

/// The outcome of one rule for one review. A rule that gave no response (not matched, a pattern on DELETE, an empty
/// loop) has no outcome.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Index of the policy in its set.
    pub policy: usize,
    /// Index of the rule in its policy.
    pub index: usize,
    /// The rule's name (of an auto-generated rule its own).
    pub rule: Str,
    /// What the rule does.
    pub kind: RuleKind,
    /// The verdict.
    pub verdict: Verdict,
    /// The text for the user; upstream's wording where it fixes one.
    pub message: Str,
    /// Details that most outcomes do not have.
    pub detail: Option<Box<Detail>>,
}

/// Details of an outcome.
#[derive(Debug, Clone, Default)]
pub struct Detail {
    /// Where in the policy an error arose.
    pub fault: Option<Fault>,
    /// Keys (`namespace/name`) of the exceptions that applied.
    pub exceptions: Vec<Str>,
    /// `reportProperties`, substituted.
    pub properties: Map,
    /// What a podSecurity rule found violated.
    pub pod_security: Option<Box<PodSecurityFailure>>,
    /// What a policy of Kubernetes says, binding by binding; of a `MutatingAdmissionPolicy` its failures.
    pub decisions: Vec<Decision>,
    /// The object after those patches of a `MutatingAdmissionPolicy` that did not fail, if some failed.
    pub partly_patched: Option<Value>,
    /// Objects that a generate rule wants to exist.
    pub generated: Vec<Downstream>,
    /// Objects that a mutate-existing rule changes.
    pub targets: Vec<PatchedTarget>,
    /// Whether a mutate rule failed because a target that it names does not exist.
    pub no_target: bool,
    /// What a generate rule that failed for want of sources made of the others.
    pub incomplete: Option<Incomplete>,
}

/// What is left of a generate rule some of whose sources do not exist.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Incomplete {
    /// Objects that should exist all the same.
    pub generated: Vec<Downstream>,
    /// Objects that cannot exist without their source.
    pub unsourced: Vec<Unsourced>,
}

/// An object whose source does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsourced {
    /// Its API version.
    pub api_version: Str,
    /// Its kind.
    pub kind: Str,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
}

/// Where in the policy an error arose, and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The path in the policy document.
    pub path: Path,
    /// Where in the string at `path`, as a byte offset.
    pub offset: Option<usize>,
    /// What would be right, for example the keys that exist.
    pub help: Option<String>,
}

/// An object that a generate rule wants to exist.
#[derive(Debug, Clone, PartialEq)]
pub struct Downstream {
    /// The object, with the labels that tie it to policy, rule, trigger and source.
    pub object: Value,
    /// The object it was copied from.
    pub source: Option<Value>,
    /// Where its content comes from.
    pub form: Form,
}

/// Where the content of a downstream comes from. That decides when the downstream is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// The policy.
    Data,
    /// One object that the policy names.
    Clone,
    /// Objects that the policy selects.
    CloneList,
}

/// An object that a mutate-existing rule changes.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchedTarget {
    /// The verdict for this target.
    pub verdict: Verdict,
    /// The text for the user.
    pub message: Str,
    /// The object before.
    pub before: Value,
    /// The object after; the same when nothing changed.
    pub after: Value,
    /// What it is a part of, if the rule means a subresource. Name and namespace are the same.
    pub below: Option<Box<Below>>,
}

/// The object that a subresource belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// Its `apiVersion`.
    pub api_version: Str,
    /// Its kind.
    pub kind: Str,
    /// The subresource, for example `scale`.
    pub subresource: Str,
}

/// The phase of an evaluation: mutations are seen by validations, both come before generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Mutate rules for the trigger itself.
    Mutate,
    /// Validate rules.
    Validate,
    /// Generate rules.
    Generate,
    /// Mutate rules for existing targets.
    MutateExisting,
    /// What deletes objects. It is about objects as they are stored, not about requests.
    Delete,
}

impl Phase {
    /// Operations that a rule without `operations` is registered for by default.
    pub fn default_operations(self) -> &'static [Operation] {
        match self {
            Phase::Mutate | Phase::MutateExisting => &[Operation::Create, Operation::Update],
            Phase::Validate | Phase::Generate => {
                &[Operation::Create, Operation::Update, Operation::Delete, Operation::Connect]
            }
            Phase::Delete => &[],
        }
    }
}
