//! Templates: values with variables, compiled.

use ephor_expr::jmespath::Expression;
use ephor_expr::{Str, Value};

/// A value with `{{ }}` in its strings, compiled once. Parts without variables are shared as they are.
#[derive(Debug, Clone)]
pub enum Template {
    /// No variables.
    Fixed(Value),
    /// A string that is exactly one variable: its value keeps its type.
    Variable(Box<Variable>),
    /// A string with variables in it.
    Text(Box<Text>),
    /// An array with variables somewhere in it.
    Array(Vec<Template>),
    /// An object with variables somewhere in it.
    Object(Vec<(Key, Template)>),
}

/// A member's name.
#[derive(Debug, Clone)]
pub enum Key {
    /// As written.
    Fixed(Str),
    /// With variables; must give a string.
    Text(Str, Template),
}

/// A string with variables in it.
#[derive(Debug, Clone)]
pub struct Text {
    /// As written.
    pub(super) source: Str,
    /// Its parts in order; `None` when variables nest, so that the text must be read at run time.
    pub(super) parts: Option<Vec<Part>>,
}

/// A part of a text.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Plain text, escapes still in it.
    Plain(Str),
    /// A variable.
    Variable(Variable),
}

/// One `{{ }}`.
#[derive(Debug, Clone)]
pub struct Variable {
    /// The expression.
    pub(super) expr: Expr,
    /// Where it stands in its string, as a byte offset.
    pub(super) offset: usize,
    /// Written `{{-`.
    pub(super) protected: bool,
}

/// An expression in two readings: on DELETE, `request.object` inside `{{ }}` means `request.oldObject`.
#[derive(Debug, Clone)]
pub struct Expr {
    /// As written.
    pub(super) normal: Expression,
    /// On DELETE, where that differs.
    pub(super) on_delete: Option<Expression>,
}

impl Template {
    /// The value, if it has no variables.
    pub fn as_fixed(&self) -> Option<&Value> {
        match self {
            Template::Fixed(value) => Some(value),
            _ => None,
        }
    }

    /// A template that is this value.
    pub fn fixed(value: impl Into<Value>) -> Self {
        Template::Fixed(value.into())
    }
}
