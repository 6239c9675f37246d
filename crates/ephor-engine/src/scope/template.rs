//! Templates: values with variables, compiled.
//!
//! A template is made of text of a policy, once, when the policy is compiled. What it resolves to is a plain value:
//! nothing looks for variables in it, so that text of users never becomes an expression.

use ephor_expr::jmespath::Expression;
use ephor_expr::scalar::wildcard::has_wildcard;
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

impl Variable {
    fn is_of_request(&self) -> bool {
        let expression = &self.expr.normal;
        let names = expression.root_identifiers();
        !names.is_empty()
            && names.iter().all(|root| OF_REQUEST.contains(&root.name.as_str()))
            && !expression.has_text_literal(has_wildcard)
            && self.holes.iter().all(Variable::is_of_request)
    }
}

/// The names whose values only a request gives.
const OF_REQUEST: [&str; 4] = ["images", "request", "serviceAccountName", "serviceAccountNamespace"];

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

    /// Whether all its variables read the request and nothing else, and the policy's own text has no wildcards.
    pub fn is_of_request(&self) -> bool {
        let of_parts = |parts: &[Part]| {
            parts.iter().all(|part| match part {
                Part::Plain(text) => !has_wildcard(text),
                Part::Variable(variable) => variable.is_of_request(),
            })
        };
        match self {
            Template::Variable(variable) => variable.is_of_request(),
            Template::Text(parts) | Template::Scalar(parts) | Template::Pointer(parts) => of_parts(parts),
            Template::Array(items) => {
                let fits = |item: &Template| match item {
                    Template::Fixed(Value::String(text)) => !has_wildcard(text),
                    Template::Fixed(_) => true,
                    item => item.is_of_request(),
                };
                items.iter().all(fits) && items.iter().any(Template::is_of_request)
            }
            Template::Fixed(_) | Template::Object(_) => false,
        }
    }

    /// A template that is this value.
    pub fn fixed(value: impl Into<Value>) -> Self {
        Template::Fixed(value.into())
    }
}
