//! Findings with their place in a file.

use std::sync::Arc;

use ephor_engine::diagnostic::{Diagnostic, Severity};
use ephor_expr::value::Path;
use ephor_expr::yaml::{Position, SourceMap, YamlError};

/// A text file that was read: what messages about it quote.
#[derive(Debug)]
pub struct SourceFile {
    /// Its path as the user knows it; `-` for standard input.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// One document of a file, with the places of its fields.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The file.
    pub file: Arc<SourceFile>,
    /// The places.
    pub map: Arc<SourceMap>,
}

/// A finding with its place.
#[derive(Debug, Clone)]
pub struct Located {
    /// The file, if the finding is about one.
    pub file: Option<Arc<SourceFile>>,
    /// Start and end in the file.
    pub span: Option<(Position, Position)>,
    /// The field's path in its document; root if unknown.
    pub path: Path,
    /// A stable name, kebab-case.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl Located {
    /// An engine finding about a document.
    pub fn of_diagnostic(diagnostic: Diagnostic, origin: &Origin) -> Self {
        let map = &origin.map;
        let inside = diagnostic.offset.and_then(|offset| map.offset_in_scalar(&diagnostic.path, offset));
        let key = diagnostic.at_key.then(|| map.key_span(&diagnostic.path)).flatten();
        let span = match (inside, key) {
            (Some(at), _) => (at, at),
            (None, Some(key)) => (key.start, key.end),
            (None, None) => {
                let near = map.nearest_span(&diagnostic.path);
                (near.start, near.end)
            }
        };
        Self {
            file: Some(Arc::clone(&origin.file)),
            span: Some(span),
            path: diagnostic.path,
            code: diagnostic.code,
            severity: diagnostic.severity,
            message: diagnostic.message,
            help: diagnostic.help,
        }
    }

    /// A file that is no YAML.
    pub fn of_yaml(error: YamlError, file: &Arc<SourceFile>) -> Self {
        Self {
            file: Some(Arc::clone(file)),
            span: Some((error.position, error.position)),
            path: Path::root(),
            code: "invalid-yaml",
            severity: Severity::Error,
            message: error.message,
            help: None,
        }
    }

    /// An error that has no place in a file, such as a file that cannot be read.
    pub fn plain(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            file: None,
            span: None,
            path: Path::root(),
            code,
            severity: Severity::Error,
            message: message.into(),
            help: None,
        }
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// `file:line:column`, as far as it is known.
    pub fn place(&self) -> String {
        match (&self.file, self.span) {
            (Some(file), Some((start, _))) => format!("{}:{}:{}", file.name, start.line, start.column),
            (Some(file), None) => file.name.clone(),
            (None, _) => String::new(),
        }
    }
}
