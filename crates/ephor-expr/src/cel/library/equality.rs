//! Equality and membership.

use super::super::error::EvalError;
use super::super::value::{List, Val};
use super::{Call, Overload, cost, global};

pub(super) const OVERLOADS: &[Overload] = &[
    global("_==_", "equals", "<A>, <A>", "bool", equals).generic().cost(cost::compare),
    global("_!=_", "not_equals", "<A>, <A>", "bool", not_equals).generic().cost(cost::compare),
    global("@in", "in_list", "<A>, list(<A>)", "bool", contains).generic().cost(cost::elements_of_second),
    global("@in", "in_map", "<A>, map(<A>, <B>)", "bool", contains).generic(),
];

fn equals<'v>(call: &Call<'_, 'v>) -> Result<Val<'v>, EvalError> {
    Ok(Val::Bool(same(call)?))
}

fn not_equals<'v>(call: &Call<'_, 'v>) -> Result<Val<'v>, EvalError> {
    Ok(Val::Bool(!same(call)?))
}

fn same(call: &Call<'_, '_>) -> Result<bool, EvalError> {
    let Some((a, b)) = call.two() else { return Err(EvalError::NoSuchOverload) };
    if matches!((a, b), (Val::Opaque(a), Val::Opaque(_)) if !a.is_comparable()) {
        return Err(EvalError::NoSuchOverload);
    }
    if let (Val::List(List::Associative(a)), Val::List(b)) = (a, b) {
        call.charge_steps(a.items.len().saturating_mul(b.len()))?;
    }
    if a.length().is_some() {
        call.charge_steps(a.size().min(b.size()) as usize / 16)?;
    }
    Ok(a.equals_charged(b, call.budget)?)
}

fn contains<'v>(call: &Call<'_, 'v>) -> Result<Val<'v>, EvalError> {
    match call.args {
        [item, Val::List(list)] => Ok(Val::Bool(list_contains(call, list, item)?)),
        [key, Val::Map(map)] => Ok(Val::Bool(map.get(key).is_some())),
        _ => Err(EvalError::NoSuchOverload),
    }
}

pub(super) fn list_contains(call: &Call<'_, '_>, list: &List<'_>, item: &Val<'_>) -> Result<bool, EvalError> {
    call.charge_steps(list.len())?;
    for element in list.iter() {
        if element.equals_charged(item, call.budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}
