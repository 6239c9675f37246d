//! What to accept and how to read it.

use super::document::{self, Document};
use super::error::YamlError;
use crate::Value;

/// Bounds on one text. They keep time and memory of a parse in proportion to the text, whatever it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many arrays and objects may lie inside each other, aliases followed.
    pub max_depth: usize,
    /// Length of a text in bytes.
    pub max_bytes: usize,
    /// Values in a text, those behind an alias counted again at each use.
    pub max_nodes: usize,
}

impl Default for Limits {
    /// Nothing that a cluster can hold is refused: the API server takes requests up to 3 MiB. 16 MiB leave room for
    /// lists of some thousand objects, 2 million values for the densest of them, and a depth of 200 is far beyond any
    /// schema while every recursive walk over a value stays within a small stack.
    fn default() -> Self {
        Self { max_depth: 200, max_bytes: 16 << 20, max_nodes: 2_000_000 }
    }
}

/// Which plain scalars are more than strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// As the Kubernetes tools read YAML (sigs.k8s.io/yaml): YAML 1.1 with `yes`, `on` and `y` as booleans, also as
    /// keys (`on: 1` is `"true": 1`). Numbers pass through JSON, so `1.0` is the integer 1.
    #[default]
    Kubernetes,
    /// As go-yaml v3 reads untyped data: of the boolean words only `true` and `false`; `1.0` stays a float.
    V3,
}

/// What two members of one object with the same key are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DuplicateKeys {
    /// A fault of the text.
    #[default]
    Error,
    /// Overwritten: the last counts.
    LastWins,
}

/// How to read a text; the default is what Kubernetes objects and policies need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Bounds on the text.
    pub limits: Limits,
    /// Meaning of plain scalars.
    pub dialect: Dialect,
    /// Meaning of repeated keys.
    pub duplicate_keys: DuplicateKeys,
    /// How many lines of a file precede the text; added to the lines of all positions.
    pub lines_before: u32,
}

impl Options {
    /// The defaults with other limits.
    pub fn with_limits(limits: &Limits) -> Self {
        Self { limits: limits.clone(), ..Self::default() }
    }

    /// All documents of `text` with their source maps. Empty documents are left out.
    pub fn documents(&self, text: &str) -> Result<Vec<Document>, YamlError> {
        document::documents(text, self)
    }

    /// All documents of `text`, values alone. Empty documents are left out.
    pub fn values(&self, text: &str) -> Result<Vec<Value>, YamlError> {
        document::values(text, self)
    }

    pub(super) fn first_line(&self) -> u32 {
        self.lines_before.saturating_add(1)
    }
}
