//! Findings with their place in a file.

use std::sync::Arc;

use ephor_engine::diagnostic::{Diagnostic, Severity};
use ephor_expr::Str;
use ephor_expr::cel;
use ephor_expr::jmespath::{CompileError, EvalError, Expression};
use ephor_expr::scalar::nearest::nearest;
use ephor_expr::value::Path;
use ephor_expr::yaml::{Position, SourceMap, YamlError};

use crate::load::ReadError;

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

    /// A file that cannot be read. One that is no text has a place.
    pub fn of_read(error: ReadError) -> Self {
        let mut located = Self::plain("unreadable", error.to_string());
        if let ReadError::NotText { path, offset, text, .. } = error {
            let at = position(&text, offset);
            located.span = Some((at, at));
            located.file = Some(Arc::new(SourceFile { name: path, text }));
        }
        located
    }

    /// An expression that does not compile.
    pub fn of_expression(error: CompileError, file: &Arc<SourceFile>) -> Self {
        let at = position(&file.text, error.offset);
        Self {
            file: Some(Arc::clone(file)),
            span: Some((at, at)),
            path: Path::root(),
            code: "invalid-expression",
            severity: Severity::Error,
            message: error.message,
            help: error.help,
        }
    }

    /// What keeps a CEL expression from being a program, each fault at its place.
    pub fn of_cel(error: &cel::CompileError, file: &Arc<SourceFile>) -> Vec<Self> {
        let place = |message: &str, offset: Option<usize>| {
            let mut located = Self::plain("invalid-expression", message);
            located.file = Some(Arc::clone(file));
            let bytes = offset.map(|n| file.text.char_indices().nth(n).map_or(file.text.len(), |(at, _)| at));
            located.span = bytes.map(|at| (position(&file.text, at), position(&file.text, at)));
            located
        };
        match error {
            cel::CompileError::Issues { issues, .. } => {
                issues.iter().map(|issue| place(&issue.message, issue.offset)).collect()
            }
            cel::CompileError::Constant(message) => vec![place(message, None)],
        }
    }

    /// An expression that has no value. When what is missing is read from the root, that is the place.
    pub fn of_evaluation(error: &EvalError, expression: &Expression, file: &Arc<SourceFile>) -> Self {
        let mut located = Self::plain("evaluation", error.to_string());
        located.file = Some(Arc::clone(file));
        let start = file.text.len() - file.text.trim_start().len();
        located.span = Some((position(&file.text, start), position(&file.text, file.text.trim_end().len())));
        if let EvalError::UnknownKey { key, known } = error {
            let root = expression.root_identifiers().iter().find(|root| root.name == *key);
            if let Some(root) = root {
                located.span = Some((position(&file.text, root.offset), position(&file.text, root.offset + key.len())));
            }
            located.help = nearest(key, known.iter().map(Str::as_str))
                .map(|near| format!("did you mean `{near}`?"))
                .or_else(|| (!known.is_empty()).then(|| format!("known keys: {}", known.join(", "))));
        }
        located
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

/// The place of byte `offset` of `text`.
fn position(text: &str, offset: usize) -> Position {
    let offset = text.floor_char_boundary(offset);
    let before = text.get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.matches('\n').count() as u32 + 1,
        column: before.get(line_start..).unwrap_or_default().chars().count() as u32 + 1,
        offset: offset as u32,
    }
}
