//! Why a strategic merge patch cannot be applied.

use std::fmt;

use ephor_expr::Value;
use ephor_expr::budget::BudgetError;

use crate::rules::mutate::limits::MAX_DEPTH;

/// The three shapes that a merge tells apart, named as messages of the reference name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Strings, numbers, booleans and null.
    Scalar,
    /// Arrays.
    Sequence,
    /// Objects.
    Mapping,
}

impl NodeKind {
    /// The kind of `value`.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Array(_) => NodeKind::Sequence,
            Value::Object(_) => NodeKind::Mapping,
            _ => NodeKind::Scalar,
        }
    }
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NodeKind::Scalar => "ScalarNode",
            NodeKind::Sequence => "SequenceNode",
            NodeKind::Mapping => "MappingNode",
        })
    }
}

/// Why a strategic merge patch cannot be applied. The texts are those of the reference, without the
/// `failed to patch resource: ` that rule messages put before them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// Patch and resource have different shapes at one place, for example a scalar against a map.
    #[error("wrong node kind: expected {expected} but got {actual}: node contents:\n{contents}\n")]
    WrongKind {
        /// What the other side has there.
        expected: NodeKind,
        /// What was found.
        actual: NodeKind,
        /// What was found, as one line.
        contents: String,
    },
    /// As [`MergeError::WrongKind`], found while anchors were still being evaluated.
    #[error("failed to preProcess rule: {0}")]
    Preprocess(Box<MergeError>),
    /// A `$patch` directive other than `delete`, `replace` and `merge`.
    #[error("unknown patch strategy '{0}'")]
    UnknownDirective(String),
    /// The patch would delete the object itself.
    #[error("filter cannot create or delete objects")]
    ObjectDeleted,
    /// The patch nests too deeply.
    #[error("the patch nests deeper than {max} levels", max = MAX_DEPTH)]
    TooDeep,
    /// The patch expands to too many parts, as nested conditional list items can.
    #[error("the patch expands to too many parts")]
    TooLarge,
    /// The work allowed is used up.
    #[error(transparent)]
    Budget(#[from] BudgetError),
}

impl MergeError {
    /// The same, found while anchors were still being evaluated.
    pub(super) fn in_preprocessing(self) -> Self {
        match self {
            MergeError::Budget(_) => self,
            error => MergeError::Preprocess(Box::new(error)),
        }
    }

    /// `actual` stands where something of kind `expected` should.
    pub(super) fn wrong_kind(expected: NodeKind, actual: &Value) -> Self {
        let mut contents = String::new();
        write_flow(&mut contents, actual, MAX_DEPTH);
        MergeError::WrongKind { expected, actual: NodeKind::of(actual), contents }
    }
}

/// Writes `value` on one line, as JSON with a blank after each colon and comma.
fn write_flow(out: &mut String, value: &Value, depth_left: usize) {
    let Some(depth_left) = depth_left.checked_sub(1) else {
        out.push('…');
        return;
    };
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_flow(out, item, depth_left);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, member)) in map.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                push_json_scalar(out, &Value::String(key.clone()));
                out.push_str(": ");
                write_flow(out, member, depth_left);
            }
            out.push('}');
        }
        scalar => push_json_scalar(out, scalar),
    }
}

/// Strings, numbers and booleans as JSON; without JSON's escapes for HTML, which YAML does not have.
fn push_json_scalar(out: &mut String, scalar: &Value) {
    out.push_str(&serde_json::to_string(scalar).unwrap_or_default());
}
