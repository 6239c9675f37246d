//! What a rule's body says, before it becomes an outcome.

use ephor_expr::Str;
use ephor_expr::value::Path;

use crate::outcome::{Detail, Fault, Verdict};
use crate::scope::ScopeError;

/// Evaluation must stop until more facts are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending;

/// A body's verdict with its text; `None` where the rule gives no response at all.
pub(crate) type Judged = Result<Option<Judgement>, Pending>;

/// A verdict with its text.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) message: Str,
    pub(crate) detail: Option<Box<Detail>>,
}

impl Judgement {
    pub(crate) fn new(verdict: Verdict, message: impl Into<Str>) -> Self {
        Self { verdict, message: message.into(), detail: None }
    }

    /// An error whose place in the policy is known.
    pub(crate) fn error_at(message: impl Into<Str>, fault: Fault) -> Self {
        Self::new(Verdict::Error, message).with(|detail| detail.fault = Some(fault))
    }

    /// The same with details.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Detail)) -> Self {
        change(self.detail.get_or_insert_default());
        self
    }
}

/// The error of a template at `base` in the policy as a judgement that reads `prefix` and the error; facts that are
/// missing are passed on.
pub(crate) fn scope_error(prefix: &str, base: &Path, error: &ScopeError) -> Result<Judgement, Pending> {
    if error.is_pending() {
        return Err(Pending);
    }
    Ok(Judgement::error_at(format!("{prefix}{error}"), fault(base, error)))
}

/// Where an error of a template at `base` stands.
pub(crate) fn fault(base: &Path, error: &ScopeError) -> Fault {
    let (inner, offset) = error.place();
    let mut path = base.clone();
    path.0.extend(inner.0);
    Fault { path, offset, help: error.help() }
}
