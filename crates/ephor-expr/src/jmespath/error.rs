//! Why an expression does not compile or evaluate.

use std::fmt;

use super::functions::Type;
use crate::Str;
use crate::budget::BudgetError;

/// Why a text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    /// What is wrong, lower case, no final period.
    pub message: String,
    /// Where, as a byte offset into the text.
    pub offset: usize,
    /// What might have been meant, for example the nearest function name.
    pub help: Option<String>,
}

impl CompileError {
    pub(super) fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { message: message.into(), offset, help: None }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvalError {
    /// An object has no such member. Most operators turn this into null.
    #[error("Unknown key \"{key}\" in path")]
    UnknownKey {
        /// The missing member.
        key: Str,
        /// The members there are.
        known: Vec<Str>,
    },
    /// An argument has the wrong type.
    #[error("Invalid type for: {value}, expected: {}", TypeList(.expected))]
    InvalidType {
        /// The argument as the reference prints it: `<nil>`, `[a 1]`, `map[k:v]`.
        value: String,
        /// The types that would do.
        expected: &'static [Type],
    },
    /// A function refused its arguments.
    #[error("JMESPath function '{function}': {message}")]
    Function {
        /// The function's name.
        function: &'static str,
        /// Its reason.
        message: String,
    },
    /// Any other failure of evaluation, for example `error in sort_by comparison`.
    #[error("{0}")]
    Other(String),
    /// The work allowed is used up.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// Data from outside is needed first: the host must fetch it and evaluate again. Never shown to a user.
    #[error("data is being fetched")]
    Pending,
}

impl EvalError {
    /// Whether the operators that swallow missing members swallow this.
    pub fn is_unknown_key(&self) -> bool {
        matches!(self, EvalError::UnknownKey { .. })
    }
}

/// The types of a parameter as the reference prints them.
struct TypeList<'a>(&'a [Type]);

impl fmt::Display for TypeList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[]jmespath.JpType{")?;
        for (i, kind) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}\"{kind}\"")?;
        }
        f.write_str("}")
    }
}
