//! Blocks of conditions: `any`, `all`, and the order in which they are looked at.

use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::{Operands, Operator, UnknownOperator, evaluate};
use crate::policy::{Condition, Conditions};
use crate::rules::references::resolve_message;

/// A block of conditions whose keys and values are templates of type `T`.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledConditions<T> {
    any: Option<Vec<CompiledCondition<T>>>,
    all: Vec<CompiledCondition<T>>,
    separator: &'static str,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledCondition<T> {
    /// Where it stands in the policy.
    pub path: Path,
    /// The left side.
    pub key: T,
    /// The comparison.
    pub operator: Operator,
    /// The right side.
    pub value: T,
    /// Shown when the condition decides.
    pub message: Option<ConditionMessage<T>>,
}

/// A condition's message: as written, and as a template.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionMessage<T> {
    /// As written.
    pub text: Str,
    /// With variables.
    pub template: T,
}

/// A condition that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// It has no operator.
    #[error("missing field `operator`")]
    MissingOperator {
        /// Where the condition stands.
        path: Path,
    },
    /// Its operator does not exist.
    #[error("{operator}")]
    UnknownOperator {
        /// Where the operator stands.
        path: Path,
        /// Which word it is.
        operator: UnknownOperator,
    },
}

impl ConditionError {
    /// Where the fault stands.
    pub fn path(&self) -> &Path {
        match self {
            Self::MissingOperator { path } | Self::UnknownOperator { path, .. } => path,
        }
    }
}

impl<T> CompiledConditions<T> {
    /// Compiles the block that stands at `path`; `template` makes templates of keys, values and messages, and is told
    /// where each stands. An absent key or value is null.
    pub fn compile(
        block: &Conditions,
        path: &Path,
        mut template: impl FnMut(&Value, &Path) -> T,
    ) -> Result<Self, ConditionError> {
        let mut list = |conditions: &[Condition], path: &Path| {
            let compile = |(i, condition)| CompiledCondition::compile(condition, path.index(i), &mut template);
            conditions.iter().enumerate().map(compile).collect::<Result<Vec<_>, _>>()
        };
        match block {
            Conditions::AnyAll(block) => Ok(Self {
                any: block.any.as_ref().map(|any| list(any, &path.key("any"))).transpose()?,
                all: list(block.all.as_deref().unwrap_or_default(), &path.key("all"))?,
                separator: "; ",
            }),
            Conditions::List(conditions) => Ok(Self { any: None, all: list(conditions, path)?, separator: ";" }),
        }
    }

    /// All conditions, those of `any` first.
    pub fn iter(&self) -> impl Iterator<Item = &CompiledCondition<T>> {
        self.any.iter().flatten().chain(&self.all)
    }
}

impl<T> CompiledCondition<T> {
    fn compile(
        condition: &Condition,
        path: Path,
        template: &mut impl FnMut(&Value, &Path) -> T,
    ) -> Result<Self, ConditionError> {
        let Some(word) = &condition.operator else { return Err(ConditionError::MissingOperator { path }) };
        let operator = Operator::parse(word)
            .map_err(|operator| ConditionError::UnknownOperator { path: path.key("operator"), operator })?;
        let key = template(condition.key.as_ref().unwrap_or(&Value::Null), &path.key("key"));
        let value = template(condition.value.as_ref().unwrap_or(&Value::Null), &path.key("value"));
        let message = condition.message.as_ref().filter(|message| !message.is_empty());
        // One with a reference is refused by the policy's check.
        let message = message.map(|text| {
            let text = resolve_message(text).unwrap_or_else(|_| text.clone());
            ConditionMessage { template: template(&Value::String(text.clone()), &path.key("message")), text }
        });
        Ok(Self { path, key, operator, value, message })
    }
}

/// What a block came to.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockOutcome<'b, T> {
    /// Whether the block holds.
    pub holds: bool,
    /// The messages of the conditions that decided, in order.
    pub messages: Vec<&'b ConditionMessage<T>>,
    /// What stands between messages.
    pub separator: &'static str,
}

impl<T> BlockOutcome<'_, T> {
    /// The messages of the conditions that decided, joined in order: of the true ones if the block holds, of the
    /// false ones if it does not. `None` if none of them has a message. As written, with variables.
    pub fn message(&self) -> Option<Str> {
        match self.messages.as_slice() {
            [] => None,
            [message] => Some(message.text.clone()),
            messages => {
                let texts: Vec<&str> = messages.iter().map(|message| message.text.as_str()).collect();
                Some(texts.join(self.separator).into())
            }
        }
    }
}

/// Evaluates a block. `resolve` gives key and value of a condition and is called only for those that are looked at:
/// `any` up to its first true one, then, whatever that gave, `all` up to its first false one. The first error of
/// `resolve` ends the evaluation, and so does the end of `budget`.
/// `decided` hears of each comparison.
///
/// An absent part holds; an empty `any` does not, an empty `all` does.
pub fn evaluate_block<'b, T, E: From<BudgetError>>(
    block: &'b CompiledConditions<T>,
    budget: &Budget,
    mut resolve: impl FnMut(&CompiledCondition<T>) -> Result<Operands, E>,
    decided: impl Fn(&CompiledCondition<T>, Operands, bool),
) -> Result<BlockOutcome<'b, T>, E> {
    let (mut of_true, mut of_false) = (Vec::new(), Vec::new());
    let mut test = |condition: &'b CompiledCondition<T>| -> Result<bool, E> {
        let operands = resolve(condition)?;
        let holds = evaluate(condition.operator, &operands, budget)?;
        let messages = if holds { &mut of_true } else { &mut of_false };
        messages.extend(&condition.message);
        decided(condition, operands, holds);
        Ok(holds)
    };
    let mut any = block.any.is_none();
    for condition in block.any.iter().flatten() {
        if test(condition)? {
            any = true;
            break;
        }
    }
    let mut all = true;
    for condition in &block.all {
        if !test(condition)? {
            all = false;
            break;
        }
    }
    let holds = any && all;
    Ok(BlockOutcome { holds, messages: if holds { of_true } else { of_false }, separator: block.separator })
}
