//! Why a rule came to its verdict, step by step: what `ephor explain` and the sandbox show.
//!
//! Traces are recorded only on request ([`Evaluation::traced`](crate::evaluation::Evaluation::traced)).

use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use crate::conditions::Operator;

/// One step on a rule's way to its verdict.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// The policy belongs to another namespace than the object.
    OtherNamespace(Str),
    /// The rule was made by auto-gen for these kinds of Pod controllers.
    OtherController(Vec<Str>),
    /// A filter of the rule's `match` selects the object, or not.
    Match(FilterNote),
    /// A filter of the rule's `exclude` takes the object out, or not.
    Exclude(FilterNote),
    /// A context entry was loaded.
    Loaded {
        /// Its name.
        entry: Str,
        /// Its value.
        value: Value,
    },
    /// A condition was evaluated.
    Compared {
        /// Where it stands in the policy.
        path: Path,
        /// The left side, resolved.
        key: Value,
        /// The comparison.
        operator: Operator,
        /// The right side, resolved.
        value: Value,
        /// Whether it holds.
        holds: bool,
    },
    /// A CEL expression was evaluated.
    Evaluated {
        /// Where it stands in the policy.
        path: Path,
        /// The expression.
        text: Str,
        /// Its value, or why it has none.
        value: Result<Value, String>,
        /// Its parts that have values, in reading order.
        parts: Vec<Part>,
    },
}

/// A part of a CEL expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Its text.
    pub text: Str,
    /// How many parts with values it is within, besides the whole.
    pub depth: usize,
    /// Its values, or why it has none: one for each time it was evaluated.
    pub values: Vec<Result<Value, String>>,
    /// How many more it has than were kept.
    pub more: usize,
}

/// How one filter of a `match` or `exclude` block judged an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterNote {
    /// Where the filter stands in the policy.
    pub path: Path,
    /// The first attribute of the filter that the object does not meet; `None` if it meets all.
    pub unmet: Option<&'static str>,
}

/// The steps of one rule.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleTrace {
    /// Index of the policy in its set.
    pub policy: usize,
    /// Index of the rule in its policy.
    pub index: usize,
    /// The steps, in order.
    pub notes: Vec<Note>,
}
