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

/// Structural equality, numbers by value, a step for every pair of members and every 16 bytes of text.
pub(super) fn equal(a: &Value, b: &Value, budget: &Budget) -> Result<bool, BudgetError> {
    equal_at(a, b, budget, 0)
}

/// From this depth on [`equal`] keeps its place on the heap.
const MAX_RECURSION: usize = 64;

fn equal_at(a: &Value, b: &Value, budget: &Budget, depth: usize) -> Result<bool, BudgetError> {
    match (a, b) {
        _ if depth > MAX_RECURSION => equal_deep(a, b, budget),
        (Value::Array(a), Value::Array(b)) if !Arc::ptr_eq(a, b) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal_at(a, b, budget, depth + 1)? {
                    return Ok(false);
                }
            }
            budget.charge_steps(1)?;
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) if !Arc::ptr_eq(a, b) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for ((key, a), (other_key, b)) in a.iter().zip(b.iter()) {
                if key != other_key || !equal_at(a, b, budget, depth + 1)? {
                    return Ok(false);
                }
            }
            budget.charge_steps(1)?;
            Ok(true)
        }
        (a, b) => scalar_equal(a, b, budget),
    }
}

fn scalar_equal(a: &Value, b: &Value, budget: &Budget) -> Result<bool, BudgetError> {
    if let (Some(a), Some(b)) = (a.as_str(), b.as_str()) {
        budget.charge_reading(a.len().min(b.len()))?;
    } else {
        budget.charge_steps(1)?;
    }
    Ok(a == b)
}

/// [`equal`] without recursion.
fn equal_deep(a: &Value, b: &Value, budget: &Budget) -> Result<bool, BudgetError> {
    let mut pairs = vec![(a, b)];
    while let Some(pair) = pairs.pop() {
        let same = match pair {
            (Value::Array(a), Value::Array(b)) if !Arc::ptr_eq(a, b) => {
                budget.charge_steps(1 + a.len() as u64)?;
                pairs.extend(a.iter().zip(b.iter()));
                a.len() == b.len()
            }
            (Value::Object(a), Value::Object(b)) if !Arc::ptr_eq(a, b) => {
                budget.charge_steps(1 + a.len() as u64)?;
                pairs.extend(a.values().zip(b.values()));
                a.keys().eq(b.keys())
            }
            (a, b) => scalar_equal(a, b, budget)?,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
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
