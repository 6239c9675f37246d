//! The texts of mismatches, as upstream words them.

use std::fmt;

use ephor_expr::Value;

use super::trail::Trail;
use crate::go_text::GoText;

/// Before the reason why a condition anchor does not hold.
pub(super) const CONDITION: &str = "conditional anchor mismatch";
/// Before the reason why a global anchor does not hold.
pub(super) const GLOBAL: &str = "global anchor mismatch";

/// A condition anchor's key is missing.
pub(super) fn condition_absent() -> String {
    format!("{CONDITION}: conditional anchor key doesn't exist in the resource")
}

/// A key that a negation anchor forbids.
pub(super) fn negated(at: &Trail<'_>) -> String {
    format!("negation anchor matched in resource: {at} is not allowed")
}

/// A scalar that does not fit, or a list with such an item.
pub(super) fn value(found: &Value, expected: &Value, at: &Trail<'_>) -> String {
    format!("resource value '{}' does not match '{}' at path {at}", GoText(found), GoText(expected))
}

/// A map in the pattern, something else in the resource.
pub(super) fn structure(found: &Value, at: &Trail<'_>) -> String {
    let expected = "map[string]interface {}";
    format!("pattern and resource have different structures. Path: {at}. Expected {expected}, found {}", go_type(found))
}

/// A list in the pattern, something else in the resource.
pub(super) fn not_a_list(at: &Trail<'_>) -> String {
    format!("validation rule failed at path {at}, resource does not satisfy the expected overlay pattern")
}

/// An empty list in the pattern, which nothing matches.
pub(super) fn empty_list() -> String {
    "pattern Array empty".to_owned()
}

/// A list of lists in the pattern, longer than the one of the resource.
pub(super) fn too_short(found: usize, expected: usize) -> String {
    format!(
        "validate Array failed, array length mismatch, resource Array len is {found} and pattern Array len is {expected}"
    )
}

/// A key that must have a value.
pub(super) fn not_found(at: &Trail<'_>, key: &str) -> String {
    format!("{at}/{key} not found")
}

/// An existence anchor without a matching item.
pub(super) fn no_such_item(at: &Trail<'_>) -> String {
    format!("existence anchor validation failed at path {at}")
}

/// An existence anchor on something that is no list.
pub(super) fn existence_needs_list(found: &Value) -> String {
    format!(
        "invalid resource type {}: Existence ^ () anchor can be used only on list/array type resource",
        go_type(found)
    )
}

/// The pattern goes deeper than it may.
pub(super) fn too_deep(at: &Trail<'_>) -> String {
    format!("pattern is nested too deeply at path {at}")
}

/// The type as Go's `%T` names it.
fn go_type(value: &Value) -> impl fmt::Display {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
