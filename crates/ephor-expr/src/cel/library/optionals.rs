//! Optional values. `or` and `orValue` on what is statically an optional are nodes of their own, as they evaluate
//! their other side only if it is needed.

use std::sync::Arc;

use super::super::error::EvalError;
use super::super::value::Val;
use super::{Call, Overload, global, member};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

pub(super) const OVERLOADS: &[Overload] = &[
    global("optional.none", "optional_none", "", "optional_type(<V>)", |_| Ok(Val::Optional(None))),
    global("optional.of", "optional_of", "<V>", "optional_type(<V>)", |call| Ok(Val::some(call.arg(0)))),
    global("optional.ofNonZeroValue", "optional_ofNonZeroValue", "<V>", "optional_type(<V>)", of_non_zero),
    global("optional.unwrap", "optional_unwrap", "list(optional_type(<V>))", "list(<V>)", unwrap),
    member("unwrapOpt", "optional_unwrapOpt", "list(optional_type(<V>))", "list(<V>)", unwrap),
    member("hasValue", "optional_hasValue", "optional_type(<V>)", "bool", has_value),
    member("value", "optional_value", "optional_type(<V>)", "<V>", value),
    member("or", "optional_or_optional", "optional_type(<V>), optional_type(<V>)", "optional_type(<V>)", or),
    member("orValue", "optional_orValue_value", "optional_type(<V>), <V>", "<V>", or),
    member("first", "list_first", "list(<V>)", "optional_type(<V>)", |call| end(call, false)),
    member("last", "list_last", "list(<V>)", "optional_type(<V>)", |call| end(call, true)),
];

pub(super) const OR_VALUE: &[Overload] = &[global("@orValue", "or_value", "dyn, dyn", "dyn", or_value)];

/// The value of an optional, the second argument if there is none, and anything else as it is.
fn or_value<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(match call.arg(0) {
        Val::Optional(Some(inner)) => Arc::unwrap_or_clone(inner),
        Val::Optional(None) => call.arg(1),
        other => other,
    })
}

fn of_non_zero<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let value = call.arg(0);
    Ok(if value.is_zero() { Val::Optional(None) } else { Val::some(value) })
}

fn unwrap<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Val::List(list) = call.arg(0) else { return Err(call.no_such_overload()) };
    let mut values = Vec::new();
    for item in list.iter() {
        match item {
            Val::Optional(Some(inner)) => values.push(inner.as_ref().clone()),
            Val::Optional(None) => {}
            _ => return Err(call.no_such_overload()),
        }
    }
    call.charge_steps(list.len())?;
    Ok(Val::list(values))
}

fn has_value<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(Val::Bool(matches!(call.arg(0), Val::Optional(Some(_)))))
}

fn value<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    match call.arg(0) {
        Val::Optional(Some(inner)) => Ok(Arc::unwrap_or_clone(inner)),
        _ => Err(EvalError::other("optional.none() dereference")),
    }
}

fn or<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Err(call.no_such_overload())
}

fn end<'v>(call: &Call<'_, 'v>, last: bool) -> Result<'v> {
    let Val::List(list) = call.arg(0) else { return Err(call.no_such_overload()) };
    let index = if last { list.len().checked_sub(1) } else { Some(0) };
    Ok(Val::Optional(index.and_then(|i| list.get(i)).map(Arc::new)))
}
