//! Condition blocks with their variables.

use ephor_expr::Value;
use ephor_expr::budget::BudgetError;
use ephor_expr::jmespath::Runtime;
use ephor_expr::value::Path;

use crate::conditions::{
    Author, BlockOutcome, CompiledCondition, CompiledConditions, Operands, as_data, evaluate_block,
};
use crate::outcome::Fault;
use crate::scope::{Scope, ScopeError, Template};
use crate::trace::Note;

use super::judgement::{Pending, fault};

/// Why a block of conditions cannot be evaluated.
#[derive(Debug)]
pub(crate) enum ConditionError {
    /// Facts are missing.
    Pending,
    /// A variable has no value in the data that there is: the text and the place.
    Unresolved(String, Fault),
    /// A key or value cannot be made for another reason, such as data that could not be fetched.
    Failed(String, Fault),
    /// The work allowed is used up.
    Budget(BudgetError),
}

impl From<BudgetError> for ConditionError {
    fn from(error: BudgetError) -> Self {
        ConditionError::Budget(error)
    }
}

impl ConditionError {
    /// The text and place, or the demand for facts.
    pub(crate) fn into_failure(self) -> Result<(String, Fault), Pending> {
        match self {
            ConditionError::Pending => Err(Pending),
            ConditionError::Unresolved(message, fault) | ConditionError::Failed(message, fault) => Ok((message, fault)),
            ConditionError::Budget(error) => {
                Ok((error.to_string(), Fault { path: Path::root(), offset: None, help: None }))
            }
        }
    }
}

/// Evaluates a block in a scope.
pub(crate) fn evaluate<'b>(
    block: &'b CompiledConditions<Template>,
    scope: &mut Scope<'_>,
) -> Result<BlockOutcome<'b, Template>, ConditionError> {
    let world = scope.world();
    let resolve = |condition: &CompiledCondition<Template>| {
        let mut side = |template: &Template, name: &'static str| {
            operand(template, scope).map_err(|error| match error {
                ScopeError::Pending => ConditionError::Pending,
                ScopeError::Budget(error) => ConditionError::Budget(error),
                error => {
                    let text = format!("failed to substitute variables in condition {name}: {error}");
                    let place = fault(&condition.path.key(name), &error);
                    if error.is_unresolved() {
                        ConditionError::Unresolved(text, place)
                    } else {
                        ConditionError::Failed(text, place)
                    }
                }
            })
        };
        let key_author = if condition.key.as_fixed().is_some() { Author::Policy } else { Author::Data };
        let (key, value) = (side(&condition.key, "key")?, side(&condition.value, "value")?);
        let is_data = condition.operator.is_negative() && condition.value.is_data(scope);
        let value_author = if is_data { Author::Data } else { Author::Policy };
        Ok(Operands { key, key_author, value, value_author })
    };
    evaluate_block(block, world.budget(), resolve, |condition, Operands { key, value, .. }, holds| {
        let operator = condition.operator;
        world.note(|| Note::Compared { path: condition.path.clone(), key, operator, value, holds });
    })
}

/// Resolves one side. Numbers that come from variables are data; literal ones keep their type.
fn operand(template: &Template, scope: &mut Scope<'_>) -> Result<Value, ScopeError> {
    match template {
        Template::Fixed(value) => Ok(value.clone()),
        Template::Array(items) => {
            let mut out = Vec::with_capacity(items.len());
            for item in items {
                out.push(operand(item, scope)?);
            }
            Ok(Value::array(out))
        }
        other => other.resolve(scope).map(as_data),
    }
}
