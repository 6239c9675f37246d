//! Truth, equality and order of values.

use std::cmp::Ordering;
use std::sync::Arc;

use super::ast::Comparison;
use crate::budget::{Budget, BudgetError};
use crate::value::Value;

/// Whether `value` counts as false: `false`, null, and what is empty; zero does not.
pub(super) fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(_) | Value::Float(_) => false,
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Structural equality, numbers by value, a step for every pair of members.
pub(super) fn equal(a: &Value, b: &Value, budget: &Budget) -> Result<bool, BudgetError> {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if !Arc::ptr_eq(a, b) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b.iter()) {
                budget.charge_steps(1)?;
                if !equal(a, b, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) if !Arc::ptr_eq(a, b) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for ((key, a), (other_key, b)) in a.iter().zip(b.iter()) {
                budget.charge_steps(1)?;
                if key != other_key || !equal(a, b, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (a, b) => Ok(a == b),
    }
}

/// `a < b` and its like; null unless both are numbers.
pub(super) fn ordered(comparison: Comparison, a: &Value, b: &Value) -> Value {
    let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else { return Value::Null };
    Value::Bool(match (comparison, a.partial_cmp(&b)) {
        (Comparison::Less, order) => order == Some(Ordering::Less),
        (Comparison::LessOrEqual, order) => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        (Comparison::Greater, order) => order == Some(Ordering::Greater),
        (Comparison::GreaterOrEqual, order) => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        (Comparison::Equal, order) => order == Some(Ordering::Equal),
        (Comparison::NotEqual, order) => order != Some(Ordering::Equal),
    })
}
