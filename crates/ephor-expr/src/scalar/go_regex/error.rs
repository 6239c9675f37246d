//! Why a text is no Go regular expression, in Go's words.

/// The kinds of error, named and worded as Go's `regexp/syntax` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GoRegexErrorKind {
    /// A `[a-z]` range upside down, or an unknown class name.
    #[error("invalid character class range")]
    InvalidCharRange,
    /// A backslash before a letter or digit that means nothing.
    #[error("invalid escape sequence")]
    InvalidEscape,
    /// A group name with other characters than letters, digits and `_`.
    #[error("invalid named capture")]
    InvalidNamedCapture,
    /// `(?` followed by something Go does not have, as look-around.
    #[error("invalid or unsupported Perl syntax")]
    InvalidPerlOp,
    /// A repetition of a repetition, as `a**`.
    #[error("invalid nested repetition operator")]
    InvalidRepeatOp,
    /// Counts out of order or above 1000.
    #[error("invalid repeat count")]
    InvalidRepeatSize,
    /// `[` without `]`.
    #[error("missing closing ]")]
    MissingBracket,
    /// `(` without `)`.
    #[error("missing closing )")]
    MissingParen,
    /// A repetition of nothing.
    #[error("missing argument to repetition operator")]
    MissingRepeatArgument,
    /// A backslash at the end.
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    /// `)` without `(`.
    #[error("unexpected )")]
    UnexpectedParen,
    /// Nested too deeply.
    #[error("expression nests too deeply")]
    NestingDepth,
    /// Too large once compiled.
    #[error("expression too large")]
    Large,
}

/// A syntax error and the text it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {kind}: `{text}`")]
pub struct GoRegexError {
    /// What is wrong.
    pub kind: GoRegexErrorKind,
    /// The offending part of the expression.
    pub text: String,
}

impl GoRegexError {
    pub(super) fn new(kind: GoRegexErrorKind, text: &str) -> Self {
        GoRegexError { kind, text: text.to_owned() }
    }
}
