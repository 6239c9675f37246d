//! Why a text with variables has no value.

use ephor_expr::Str;
use ephor_expr::budget::BudgetError;
use ephor_expr::jmespath::{CompileError, EvalError};
use ephor_expr::value::Path;

/// Why a template could not be resolved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScopeError {
    /// A variable has no value. The wording is the reference's.
    #[error("failed to resolve {variable} at path {}: {cause}", path.slashed())]
    Unresolved {
        /// The expression.
        variable: Str,
        /// Where in the template.
        path: Path,
        /// Where in the string there, as a byte offset.
        offset: Option<usize>,
        /// Why.
        cause: Box<Cause>,
    },
    /// A member's name resolved to something other than a string.
    #[error("failed to substitute variables in key `{key}`: not a string")]
    KeyNotString {
        /// The name as written.
        key: Str,
        /// Where in the template.
        path: Path,
    },
    /// A variable brought in a key, or an item of a list, that would say how to read what is around it.
    #[error("`{text}` comes from a variable and would count as an anchor or a directive; write it in the policy")]
    Directive {
        /// The key or item.
        text: Str,
        /// Where in the template.
        path: Path,
    },
    /// A variable brought in a wildcard, which would select other objects than the policy's author meant.
    #[error("`{text}` comes from a variable and would count as a wildcard; write wildcards in the policy")]
    Wildcard {
        /// What the variable gave.
        text: Str,
        /// Where in the template.
        path: Path,
    },
    /// A variable gave a key that the object has already.
    #[error("the variables of key `{written}` give `{key}`, which the object has already")]
    KeyTwice {
        /// The key.
        key: Str,
        /// As written.
        written: Str,
        /// Where in the template.
        path: Path,
    },
    /// The work allowed is used up.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// Data from outside is needed first. Never shown to a user.
    #[error("data is being fetched")]
    Pending,
}

/// Why a variable has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Cause {
    /// Its expression fails.
    #[error("JMESPath query failed: {0}")]
    Query(EvalError),
    /// It is no expression.
    #[error("incorrect query: {0}")]
    Syntax(CompileError),
    /// A context entry that it mentions cannot be loaded.
    #[error("{message}")]
    Context {
        /// Which entry and why.
        message: String,
        /// What kept it from loading.
        lack: Lack,
    },
}

/// What a context entry lacks that cannot be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// A value: what the expressions of variables read does not have one.
    Value,
    /// Data from outside, which could not be fetched.
    Data,
    /// Data that the host cannot provide at all, so that no default replaces it.
    Host,
}

impl Cause {
    pub(super) fn lack(&self) -> Lack {
        match self {
            Cause::Context { lack, .. } => *lack,
            Cause::Query(_) | Cause::Syntax(_) => Lack::Value,
        }
    }
}

impl ScopeError {
    /// Whether data must be fetched first.
    pub fn is_pending(&self) -> bool {
        matches!(self, ScopeError::Pending)
    }

    /// The same error, seen from the value that holds the template as its member or item `segments`.
    #[must_use]
    pub(crate) fn below(mut self, segment: ephor_expr::value::Segment) -> Self {
        if let Some(path) = self.path_mut() {
            path.0.insert(0, segment);
        }
        self
    }

    /// The same error, for a template whose parts have no paths in the policy.
    #[must_use]
    pub(crate) fn at_root(mut self) -> Self {
        if let Some(path) = self.path_mut() {
            path.0.clear();
        }
        self
    }

    fn path_mut(&mut self) -> Option<&mut Path> {
        match self {
            ScopeError::Unresolved { path, .. }
            | ScopeError::KeyNotString { path, .. }
            | ScopeError::Directive { path, .. }
            | ScopeError::Wildcard { path, .. }
            | ScopeError::KeyTwice { path, .. } => Some(path),
            ScopeError::Budget(_) | ScopeError::Pending => None,
        }
    }

    /// Whether a member is missing where the expression itself looks for it.
    pub fn is_unknown_key(&self) -> bool {
        matches!(self.cause(), Some(Cause::Query(error)) if error.is_unknown_key())
    }

    /// Whether a variable has no value although all data that it reads was there.
    pub(crate) fn is_unresolved(&self) -> bool {
        matches!(self, ScopeError::Unresolved { .. }) && self.lack() == Lack::Value
    }

    /// What the context entry lacks that the variable mentions; [`Lack::Value`] if the fault is not in an entry.
    pub(super) fn lack(&self) -> Lack {
        self.cause().map_or(Lack::Value, Cause::lack)
    }

    fn cause(&self) -> Option<&Cause> {
        match self {
            ScopeError::Unresolved { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// The cause alone, without the variable and the place.
    pub fn cause_text(&self) -> String {
        self.cause().map_or_else(|| self.to_string(), ToString::to_string)
    }

    /// Where in the template, and where in the string there.
    pub fn place(&self) -> (Path, Option<usize>) {
        match self {
            ScopeError::Unresolved { path, offset, .. } => (path.clone(), *offset),
            ScopeError::KeyNotString { path, .. }
            | ScopeError::Directive { path, .. }
            | ScopeError::Wildcard { path, .. }
            | ScopeError::KeyTwice { path, .. } => (path.clone(), None),
            ScopeError::Budget(_) | ScopeError::Pending => (Path::root(), None),
        }
    }

    /// What would help: the keys that exist where one was missing, or the compiler's hint.
    pub fn help(&self) -> Option<String> {
        match self.cause() {
            Some(Cause::Query(EvalError::UnknownKey { known, .. })) => Some(known_keys(known)),
            Some(Cause::Syntax(error)) => error.help.clone(),
            _ => None,
        }
    }
}

/// `known keys: a, b, c`, cut after twenty.
pub(crate) fn known_keys(known: &[Str]) -> String {
    const SHOWN: usize = 20;
    if known.is_empty() {
        return "the object has no keys".to_owned();
    }
    let mut text = format!("known keys: {}", known.iter().take(SHOWN).map(Str::as_str).collect::<Vec<_>>().join(", "));
    if known.len() > SHOWN {
        text.push_str(", …");
    }
    text
}
