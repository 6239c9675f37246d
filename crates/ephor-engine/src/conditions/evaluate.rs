//! One comparison.

use std::cmp::Ordering;

use ephor_expr::Value;
use ephor_expr::budget::{Budget, BudgetError};

use super::Operator;
use super::equality::equals;
use super::membership::{Quantifier, exact_membership, membership};
use super::order::{compare, compare_durations};
use super::work::Work;

/// Who wrote a side of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The policy: wildcards are meant as such. For a value this includes what the policy keeps elsewhere, such as a
    /// list in a `ConfigMap`.
    Policy,
    /// A variable gave the key, or a part of it; or the value is read from the request or a target.
    Data,
}

/// The two sides of a condition, free of variables.
#[derive(Debug, Clone, PartialEq)]
pub struct Operands {
    /// The left side.
    pub key: Value,
    /// Who wrote it.
    pub key_author: Author,
    /// The right side.
    pub value: Value,
    /// Who wrote it.
    pub value_author: Author,
}

/// Whether the key stands to the value as `operator` says.
///
/// Membership compares wildcards in either direction, so that a list of forbidden values also catches the `*` of an
/// object. The operators that ask what is *not* there take only the policy's text for a pattern: otherwise `*` in an
/// object would be in each list of allowed values, and equal to everything.
///
/// A null key makes every operator false, the negative ones too. What cannot be compared is false as well, except
/// that it is `NotEquals`. The work is charged to `budget`.
pub fn evaluate(operator: Operator, operands: &Operands, budget: &Budget) -> Result<bool, BudgetError> {
    let Operands { key, key_author, value, value_author } = operands;
    let asks_for_absence = operator.asks_for_absence();
    let work = Work {
        budget,
        keys_are_patterns: !asks_for_absence || *key_author == Author::Policy,
        values_are_patterns: !operator.is_negative() || *value_author == Author::Policy,
    };
    for text in [key, value].into_iter().filter_map(Value::as_str) {
        work.read(text)?;
    }
    if key.is_null() {
        return Ok(false);
    }
    // Upstream: false for a null value. But the documented exemption of owned Pods asks whether a kind is not in
    // `ownerReferences[].kind`, which is null for a bare Pod and would let it through.
    let nothing;
    let value = match operator {
        // An empty key asks for nothing, and nothing is not missing.
        _ if asks_for_absence && value.is_null() && key.as_str() != Some("") => {
            nothing = Value::array(Vec::new());
            &nothing
        }
        _ => value,
    };
    let ordered = |holds: fn(Ordering) -> bool| compare(key, value).is_some_and(holds);
    let timed = |holds: fn(Ordering) -> bool| compare_durations(key, value).is_some_and(holds);
    let any = || membership(key, value, Quantifier::Any, work);
    let all = || membership(key, value, Quantifier::All, work);
    let exact = || exact_membership(key, value, work);
    Ok(match operator {
        Operator::Equals => equals(key, value, work)?,
        Operator::NotEquals => !equals(key, value, work)?,
        Operator::AnyIn => any()?.is_some_and(|m| m.some_in),
        Operator::AllIn => all()?.is_some_and(|m| !m.some_out),
        Operator::AnyNotIn => any()?.is_some_and(|m| m.some_out),
        Operator::AllNotIn => all()?.is_some_and(|m| !m.some_in),
        Operator::In => exact()?.is_some_and(|m| m.is_in),
        Operator::NotIn => exact()?.is_some_and(|m| m.not_in),
        Operator::GreaterThan => ordered(Ordering::is_gt),
        Operator::GreaterThanOrEquals => ordered(Ordering::is_ge),
        Operator::LessThan => ordered(Ordering::is_lt),
        Operator::LessThanOrEquals => ordered(Ordering::is_le),
        Operator::DurationGreaterThan => timed(Ordering::is_gt),
        Operator::DurationGreaterThanOrEquals => timed(Ordering::is_ge),
        Operator::DurationLessThan => timed(Ordering::is_lt),
        Operator::DurationLessThanOrEquals => timed(Ordering::is_le),
    })
}
