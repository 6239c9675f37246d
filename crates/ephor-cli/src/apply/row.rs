//! What one rule said about one resource, ready for output.

use std::fmt;
use std::sync::Arc;

use ephor_engine::outcome::{Detail, RuleKind, Verdict};
use ephor_expr::{Str, Value};

use crate::output::plain;

/// A resource as output names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its API version.
    pub api_version: Str,
    /// Its kind.
    pub kind: Str,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
    /// Its uid, if it has one.
    pub uid: Str,
    /// The file it comes from.
    pub file: Arc<str>,
    /// The line where its document begins, from 1; 0 if it is in no file.
    pub line: u32,
}

impl Subject {
    /// The subject that `object` is.
    pub fn of(object: &Value, file: Arc<str>, line: u32) -> Self {
        let text = |keys: &[&str]| Str::new(object.str_at(keys).unwrap_or_default());
        Self {
            api_version: text(&["apiVersion"]),
            kind: text(&["kind"]),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]),
            uid: text(&["metadata", "uid"]),
            file,
            line,
        }
    }
}

/// `namespace/Kind/name`; of a cluster-scoped resource `/Kind/name`.
/// On one line: a name with a line break begins no line of the output.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [namespace, kind, name] = [&self.namespace, &self.kind, &self.name].map(|part| plain::line(part));
        write!(f, "{namespace}/{kind}/{name}")
    }
}

/// What was done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A rule of a policy.
    Rule(RuleKind),
    /// A cleanup policy, which has no rules.
    Cleanup,
}

/// What one rule said about one resource.
#[derive(Debug, Clone)]
pub struct Row {
    /// Index of the policy's policy in the plan.
    pub policy: usize,
    /// Index of the rule in its policy.
    pub index: usize,
    /// The rule's name; empty for policies without rules.
    pub rule: Str,
    /// What was done.
    pub action: Action,
    /// The verdict, after `--audit-warn`.
    pub verdict: Verdict,
    /// Whether the verdict is a violation that `--audit-warn` made a warning.
    pub audited: bool,
    /// The text for the user.
    pub message: Str,
    /// The resource.
    pub subject: Arc<Subject>,
    /// Where an error arose, exceptions, properties, failed Pod Security controls.
    pub detail: Option<Box<Detail>>,
}
