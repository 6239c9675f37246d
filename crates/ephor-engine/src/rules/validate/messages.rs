//! Texts that upstream's tests fix, word for word.

use ephor_expr::{Str, Value};

/// For a message that is one variable which gives no string.
pub(super) const NOT_A_STRING: Str =
    Str::new_static("the produced message didn't resolve to a string, check your policy definition.");

fn sentence(own: &str) -> String {
    if own.ends_with('.') { own.to_owned() } else { format!("{own}.") }
}

pub(super) fn failed(own: Option<&str>, rule: &str, path: &str) -> Str {
    match own {
        Some(own) => format!("validation error: {} rule {rule} failed at path {path}", sentence(own)).into(),
        None => format!("validation error: rule {rule} failed at path {path}").into(),
    }
}

pub(super) fn execution_error(own: Option<&str>, rule: &str, cause: &str) -> Str {
    match own {
        Some(own) => format!("validation error: {} rule {rule} execution error: {cause}", sentence(own)).into(),
        None => format!("validation error: rule {rule} execution error: {cause}").into(),
    }
}

pub(super) fn unsubstituted(rule: &str, cause: &str) -> Str {
    format!("validation error: variables substitution error in rule {rule} execution error: {cause}").into()
}

pub(super) fn denied(rule: &str) -> Str {
    format!("validation error: rule {rule} failed").into()
}

pub(super) fn denied_without_message(rule: &str, cause: &str) -> Str {
    format!("validation error: rule {rule} failed; its message cannot be shown: {cause}").into()
}

pub(super) fn any_passed(rule: &str, index: usize) -> Str {
    format!("validation rule '{rule}' anyPattern[{index}] passed.").into()
}

pub(super) fn any_failed(own: Option<&str>, failed: &[String]) -> Str {
    match own {
        Some(own) => format!("validation error: {} {}", sentence(own), failed.join(" ")).into(),
        None => format!("validation error: {}", failed.join(" ")).into(),
    }
}

pub(super) fn alternative_failed(rule: &str, index: usize, path: &str) -> String {
    format!("rule {rule}[{index}] failed at path {path}")
}

pub(super) fn alternative_error(rule: &str, index: usize, cause: &str) -> String {
    format!("rule {rule}[{index}] failed: {cause}")
}

pub(super) fn alternative_skipped(rule: &str, index: usize, cause: &str) -> String {
    format!("rule {rule}[{index}] skipped: {cause}")
}

/// For `elementScope: true` on an element that is no map.
pub(super) fn scope_is_no_map(element: &Value) -> String {
    format!(
        "failed to process foreach: cannot use elementScope=true foreach rules for elements that are not maps, \
         expected type=map got type={}",
        go_type(element)
    )
}

/// Go's name for the type of a JSON value.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
