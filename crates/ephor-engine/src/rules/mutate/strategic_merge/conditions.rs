//! Conditions of a patch: is a value of the resource what `(key): value` asks for?

use std::borrow::Cow;

use ephor_expr::budget::{Budget, BudgetError};
use ephor_expr::{Str, Value};

use crate::rules::validate::pattern::Pattern;

/// Whether `actual` matches `wanted`, a pattern as in `validate.pattern`. Scalars are compared as the texts they are
/// written as, so `true` accepts `"true"` and `null` is the word.
pub(super) fn hold(wanted: &Value, actual: &Value, budget: &Budget) -> Result<bool, BudgetError> {
    budget.charge_tree(wanted)?;
    match wanted {
        Value::Array(_) | Value::Object(_) => Pattern::compile(wanted).is_match(actual, budget),
        scalar => Pattern::compile(&as_text(scalar)).is_match(&as_text(actual), budget),
    }
}

fn as_text(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            Cow::Owned(Value::String(Str::from(value.to_json())))
        }
        Value::String(_) | Value::Array(_) | Value::Object(_) => Cow::Borrowed(value),
    }
}
