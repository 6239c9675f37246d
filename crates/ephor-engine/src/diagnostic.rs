//! Messages for a human about a policy: what, where, and what would be right.

use std::fmt;

use ephor_expr::value::Path;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The policy is refused.
    Error,
    /// The policy works, but not as its author may think.
    Warning,
}

/// A message about one place of a document. The engine knows paths; the loader of the text turns them into
/// file, line and column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable name of the finding, kebab-case.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong: lower case, no final period, input in backticks.
    pub message: String,
    /// Where in the document.
    pub path: Path,
    /// Where in the string at `path`, as a byte offset, when the fault is inside one (an expression).
    pub offset: Option<usize>,
    /// Whether the fault is the member's name rather than its value.
    pub at_key: bool,
    /// What would be right, for example the nearest known name.
    pub help: Option<String>,
}

impl fmt::Display for Diagnostic {
    /// One line without a source text: `spec.rules[0].match: message (help)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.0.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl Diagnostic {
    /// An error at `path`.
    pub fn error(code: &'static str, path: Path, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, message: message.into(), path, offset: None, at_key: false, help: None }
    }

    /// A warning at `path`.
    pub fn warning(code: &'static str, path: Path, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, path, message) }
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same, pointing into the string at its path.
    #[must_use]
    pub fn at_offset(mut self, offset: usize) -> Self {
        self.offset = Some(offset);
        self
    }

    /// The same, pointing at the member's name.
    #[must_use]
    pub fn at_key(mut self) -> Self {
        self.at_key = true;
        self
    }

    /// Whether the policy is refused for it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
