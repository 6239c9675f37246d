//! Why an expression does not compile or evaluate.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use crate::budget::BudgetError;

/// One fault of an expression's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Where, in code points from the start of the text; none for faults of the whole text.
    pub offset: Option<usize>,
    /// What is wrong, word for word as the reference says it.
    pub message: String,
}

/// Why a text is not a program. `Display` prints what the reference prints: every issue with its source line and a
/// caret under the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The text does not parse, or its types do not fit.
    #[error("{rendered}")]
    Issues {
        /// The first hundred, in order of position.
        issues: Vec<Issue>,
        /// Their texts.
        rendered: String,
    },
    /// The types fit, but a constant part of the expression has no value.
    #[error("{0}")]
    Constant(String),
}

/// How many issues are told.
const MAX_ISSUES: usize = 100;

impl CompileError {
    pub(super) fn issues(text: &str, mut issues: Vec<Issue>) -> Self {
        issues.sort_by_key(|issue| issue.offset);
        let more = issues.len().saturating_sub(MAX_ISSUES);
        issues.truncate(MAX_ISSUES);
        let lines: Vec<&str> = text.split('\n').collect();
        let mut rendered = String::new();
        for issue in &issues {
            if !rendered.is_empty() {
                rendered.push('\n');
            }
            let _ = render(&mut rendered, &lines, issue);
        }
        if more > 0 {
            let _ = write!(rendered, "\n{more} more errors were truncated");
        }
        CompileError::Issues { issues, rendered }
    }
}

/// Prints one issue. Lines end at line feeds, columns count code points, and a character of several bytes takes a
/// wide dot.
fn render(out: &mut String, lines: &[&str], issue: &Issue) -> fmt::Result {
    let Some(mut column) = issue.offset else {
        return write!(out, "ERROR: <input>:-1:0: {}", issue.message);
    };
    let mut number = 1;
    let mut line = lines.first().copied().unwrap_or_default();
    for (i, candidate) in lines.iter().enumerate() {
        (number, line) = (i + 1, candidate);
        let length = candidate.chars().count();
        if column <= length || i + 1 == lines.len() {
            break;
        }
        column -= length + 1;
    }
    write!(out, "ERROR: <input>:{number}:{}: {}\n | {}\n | ", column + 1, issue.message, line.replace('\t', " "))?;
    let mut characters = line.chars();
    for c in characters.by_ref().take(column) {
        out.push(if c.len_utf8() > 1 { '．' } else { '.' });
    }
    out.push(if characters.next().is_some_and(|c| c.len_utf8() > 1) { '＾' } else { '^' });
    Ok(())
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// An operator does not take these operands.
    #[error("no such overload")]
    NoSuchOverload,
    /// A function does not take these arguments: `f(int, string)`.
    #[error("no such overload: {0}")]
    NoSuchOverloadOf(String),
    /// A map has no such key.
    #[error("no such key: {0}")]
    NoSuchKey(String),
    /// A list has no such index.
    #[error("index out of bounds: {0}")]
    IndexOutOfBounds(i64),
    /// A declared variable has no value.
    #[error("no such attribute(s): {0}")]
    NoSuchAttribute(String),
    /// Division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// Remainder of a division by zero.
    #[error("modulus by zero")]
    ModulusByZero,
    /// A signed result does not fit into 64 bits.
    #[error("integer overflow")]
    IntOverflow,
    /// An unsigned result does not fit into 64 bits.
    #[error("unsigned integer overflow")]
    UintOverflow,
    /// A value has no counterpart in another type.
    #[error("type conversion error from '{from}' to '{to}'")]
    Conversion {
        /// The value's type.
        from: Cow<'static, str>,
        /// The wanted type.
        to: Cow<'static, str>,
    },
    /// Any other failure, in the words of the reference.
    #[error("{0}")]
    Other(String),
    /// The expression costs more than its environment allows.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// The work or memory allowed is used up.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A fact from outside is needed first: the host must fetch it and evaluate again. Never shown to a user.
    #[error("data is being fetched")]
    Pending,
}

impl EvalError {
    pub(super) fn other(message: impl Into<String>) -> Self {
        EvalError::Other(message.into())
    }

    /// Whether no operator may swallow it: the evaluation as a whole ends.
    pub(super) fn is_fatal(&self) -> bool {
        matches!(self, EvalError::CostLimit | EvalError::Budget(_) | EvalError::Pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_are_told_up_to_a_hundred() {
        let issues = (0..150).map(|offset| Issue { offset: Some(offset), message: "m".into() }).collect();
        let CompileError::Issues { issues, rendered } = CompileError::issues(&"x".repeat(150), issues) else {
            panic!("issues");
        };
        assert_eq!(issues.len(), 100);
        assert!(rendered.ends_with("\n50 more errors were truncated"), "{rendered}");
    }

    #[test]
    fn wide_characters_take_wide_dots_and_tabs_become_spaces() {
        let issue = |offset| Issue { offset: Some(offset), message: "m".into() };
        let error = CompileError::issues("é\tx\nyé", vec![issue(5), issue(2)]);
        assert_eq!(error.to_string(), "ERROR: <input>:1:3: m\n | é x\n | ．.^\nERROR: <input>:2:2: m\n | yé\n | .＾");
    }
}
