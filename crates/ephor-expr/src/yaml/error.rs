//! Why a text is not taken.

use super::position::{Position, locate};

/// A text that cannot be read as YAML or JSON, or is over a limit: what is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {} column {}", position.line, position.column)]
pub struct YamlError {
    /// What is wrong, lower case, without the place.
    pub message: String,
    /// Where.
    pub position: Position,
}

/// A fault at a byte offset; becomes a [`YamlError`] with a line and column once the text is known.
#[derive(Debug)]
pub(super) struct Fault {
    message: String,
    offset: usize,
    /// An earlier place that the fault is about.
    earlier: Option<usize>,
}

impl Fault {
    pub(super) fn new(offset: u32, message: impl Into<String>) -> Self {
        Self { message: message.into(), offset: offset as usize, earlier: None }
    }

    pub(super) fn duplicate_key(key: &str, offset: u32, earlier: u32) -> Self {
        let message = format!("duplicate key `{key}`");
        Self { message, offset: offset as usize, earlier: Some(earlier as usize) }
    }

    pub(super) fn located(self, text: &str, first_line: u32) -> YamlError {
        let mut message = self.message;
        if let Some(earlier) = self.earlier {
            let line = locate(text, earlier, first_line).line;
            message = format!("{message}, already defined at line {line}");
        }
        YamlError { message, position: locate(text, self.offset, first_line) }
    }
}
