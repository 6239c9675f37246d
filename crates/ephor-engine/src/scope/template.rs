//! Templates: values with variables, compiled.
//!
//! A template is made of text of a policy, once, when the policy is compiled. What it resolves to is a plain value:
//! nothing looks for variables in it, so that text of users never becomes an expression.

use ephor_expr::jmespath::Expression;
use ephor_expr::{Str, Value};

/// A value with `{{ }}` in its strings, compiled once. Parts without variables are shared as they are.
#[derive(Debug, Clone)]
pub enum Template {
    /// No variables.
    Fixed(Value),
    /// A string that is exactly one variable: its value keeps its type.
    Variable(Box<Variable>),
    /// A string with variables in it: its parts in order.
    Text(Vec<Part>),
    /// The same, to be read as YAML reads a scalar without quotes.
    Scalar(Vec<Part>),
    /// The same, as a JSON pointer: a variable behind the first slash fills one step and adds none.
    Pointer(Vec<Part>),
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

/// A part of a text.
#[derive(Debug, Clone)]
pub enum Part {
    /// Plain text.
    Plain(Str),
    /// A variable.
    Variable(Variable),
}

/// One `{{ }}`.
#[derive(Debug, Clone)]
pub struct Variable {
    /// The expression; each `{{ }}` in it is a hole.
    pub(super) expr: Expr,
    /// What fills the holes of the expression, in order.
    pub(super) holes: Vec<Variable>,
    /// The expression as the policy has it, for messages.
    pub(super) written: Str,
    /// Where it stands in its string, as a byte offset.
    pub(super) offset: usize,
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
