//! Preconditions and deny conditions.
//!
//! [`evaluate`] is one comparison of two values that are free of variables; [`evaluate_block`] is a whole block, over
//! conditions compiled once by [`CompiledConditions::compile`].
//!
//! # Numbers
//!
//! The reference reads every number as a float, except an integer written inside a list or map of the policy itself,
//! and the difference shows: floats print as `1e+06` where texts are compared, and an integer inside a list never
//! equals a float. Here [`Value::Int`](ephor_expr::Value::Int) inside a list or map is such a literal integer; data
//! goes through [`as_data`] first. A number that is a key or value by itself counts as a float either way.

mod block;
mod equality;
mod evaluate;
mod membership;
mod operator;
mod order;
mod text;
mod work;

#[cfg(test)]
mod tests;

pub use block::{
    BlockOutcome, CompiledCondition, CompiledConditions, ConditionError, ConditionMessage, evaluate_block,
};
pub use evaluate::{Author, Operands, evaluate};
pub use operator::{Operator, UnknownOperator};
pub use text::as_data;
