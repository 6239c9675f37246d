//! Which values are data: read from the request or from a target, and from nothing else.
//!
//! A policy's text, and what it keeps in `ConfigMap`s and other context entries, may hold wildcards on purpose. A
//! wildcard in data is a character like any other where a condition asks for absence. A name that stands for data makes
//! data of what reads it: an element of a loop, a context variable.

use ephor_expr::Value;
use ephor_expr::jmespath::Expression;
use ephor_expr::scalar::wildcard::has_wildcard;

use super::context::Scope;
use super::entry::{Entry, Query, Source};
use super::template::{Key, Part, Template, Variable};

/// The names that stand for data unless something else is bound to them.
const OF_REQUEST: [&str; 4] = ["images", "request", "serviceAccountName", "serviceAccountNamespace"];

impl Template {
    /// Whether all its variables read data, and the policy's own text has no wildcards.
    pub(crate) fn is_data(&self, scope: &Scope<'_>) -> bool {
        !matches!(self, Template::Fixed(_)) && self.adds_no_pattern(scope)
    }

    fn adds_no_pattern(&self, scope: &Scope<'_>) -> bool {
        match self {
            Template::Fixed(value) => !holds_wildcard(value),
            Template::Variable(variable) => variable.is_data(scope),
            Template::Text(parts) | Template::Scalar(parts) | Template::Pointer(parts) => {
                parts.iter().all(|part| match part {
                    Part::Plain(text) => !has_wildcard(text),
                    Part::Variable(variable) => variable.is_data(scope),
                })
            }
            Template::Array(items) => items.iter().all(|item| item.adds_no_pattern(scope)),
            Template::Object(members) => members.iter().all(|(key, member)| {
                let of_key = match key {
                    Key::Fixed(text) => !has_wildcard(text),
                    Key::Text(_, template) => template.adds_no_pattern(scope),
                };
                of_key && member.adds_no_pattern(scope)
            }),
        }
    }
}

impl Variable {
    fn is_data(&self, scope: &Scope<'_>) -> bool {
        reads_data(&self.expr.normal, &self.holes, scope)
    }
}

impl Entry {
    /// Whether the value of this entry is data. The names in it mean what they mean before it is bound.
    pub(super) fn is_data(&self, scope: &Scope<'_>) -> bool {
        let Source::Variable { value, query, default } = &self.source else { return false };
        let adds_no_pattern = |template: &Option<Template>| template.as_ref().is_none_or(|t| t.adds_no_pattern(scope));
        adds_no_pattern(default)
            && match (value, query) {
                (Some(value), None) => value.is_data(scope),
                (None, Some(Query::Data(variable))) => variable.is_data(scope),
                (None, Some(Query::Expression { expression, holes })) => reads_data(expression, holes, scope),
                (Some(value), Some(Query::Data(variable))) => value.is_data(scope) && variable.is_data(scope),
                (Some(value), Some(Query::Expression { expression, holes })) => {
                    value.is_data(scope) && adds_nothing(expression, holes, scope)
                }
                (None, None) => false,
            }
    }
}

/// Whether an expression over names reads data and nothing else.
pub(super) fn reads_data(expression: &Expression, holes: &[Variable], scope: &Scope<'_>) -> bool {
    let names = expression.root_identifiers();
    !names.is_empty()
        && !expression.reads_whole_root()
        && names.iter().all(|root| scope.is_data(&root.name))
        && adds_nothing(expression, holes, scope)
}

fn adds_nothing(expression: &Expression, holes: &[Variable], scope: &Scope<'_>) -> bool {
    !expression.has_text_literal(has_wildcard) && holes.iter().all(|hole| hole.is_data(scope))
}

fn holds_wildcard(value: &Value) -> bool {
    match value {
        Value::String(text) => has_wildcard(text),
        Value::Array(items) => items.iter().any(holds_wildcard),
        Value::Object(members) => members.iter().any(|(key, member)| has_wildcard(key) || holds_wildcard(member)),
        _ => false,
    }
}

/// Whether an unbound name stands for data.
pub(super) fn is_of_request(name: &str) -> bool {
    OF_REQUEST.contains(&name)
}
