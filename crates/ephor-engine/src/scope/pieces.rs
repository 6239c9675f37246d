//! Templates into text that still tells the policy's own words from the values in it.
//!
//! A path is put together from such pieces, so that a value cannot say more than its place lets it.

use ephor_expr::jmespath::{Runtime as _, embed};
use ephor_expr::{Str, Value};

use super::context::Scope;
use super::error::ScopeError;
use super::load::LoadError;
use super::template::{Part, Template, Variable};
use crate::gate::Piece;

/// A piece of a resolved text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resolved {
    /// Text of the policy.
    Policy(Str),
    /// What a variable stands for.
    Value(Str),
}

impl Resolved {
    pub(super) fn as_piece(&self) -> Piece<'_> {
        match self {
            Self::Policy(text) => Piece::Policy(text),
            Self::Value(text) => Piece::Value(text),
        }
    }
}

impl Template {
    /// The pieces of the text that this template is.
    pub(super) fn pieces(&self, scope: &mut Scope<'_>) -> Result<Vec<Resolved>, LoadError> {
        match self {
            Template::Text(parts) => Ok(parts.iter().map(|part| part.resolved(scope)).collect::<Result<_, _>>()?),
            Template::Fixed(_) => Ok(vec![Resolved::Policy(self.text(scope)?)]),
            Template::Variable(variable) => {
                let text = self.text(scope)?;
                Ok(vec![variable.origin(scope, text)])
            }
            _ => Ok(vec![Resolved::Value(self.text(scope)?)]),
        }
    }

    /// The text that this template is.
    pub(super) fn text(&self, scope: &mut Scope<'_>) -> Result<Str, LoadError> {
        match self.resolve(scope)? {
            Value::String(text) => Ok(text),
            other => Err(LoadError::NotAString(other.type_name())),
        }
    }
}

impl Part {
    fn resolved(&self, scope: &mut Scope<'_>) -> Result<Resolved, ScopeError> {
        match self {
            Part::Plain(plain) => Ok(Resolved::Policy(plain.clone())),
            Part::Variable(variable) => {
                let value = variable.value(scope)?;
                let mut text = String::new();
                embed(&value, scope.world().budget(), &mut text)?;
                Ok(variable.origin(scope, text.into()))
            }
        }
    }
}

impl Variable {
    /// The text that this variable stands for, and who wrote it. It is the policy's where the variable is the name of a
    /// context entry that the policy defines by a text without variables.
    fn origin(&self, scope: &Scope<'_>, text: Str) -> Resolved {
        if scope.is_policy_text(&self.written) { Resolved::Policy(text) } else { Resolved::Value(text) }
    }
}
