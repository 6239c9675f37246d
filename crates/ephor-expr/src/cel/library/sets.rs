//! Lists as sets.

use super::super::error::EvalError;
use super::super::value::{List, Val};
use super::equality::list_contains;
use super::{Call, Overload, cost, global};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

const LISTS: &str = "list(<T>), list(<T>)";

pub(super) const OVERLOADS: &[Overload] = &[
    global("sets.contains", "list_sets_contains_list", LISTS, "bool", |call| sets(call, |c, a, b| within(c, b, a)))
        .cost(cost::product),
    global("sets.equivalent", "list_sets_equivalent_list", LISTS, "bool", |call| {
        sets(call, |c, a, b| Ok(within(c, a, b)? && within(c, b, a)?))
    })
    .cost(cost::product_both_ways),
    global("sets.intersects", "list_sets_intersects_list", LISTS, "bool", |call| {
        sets(call, |c, a, b| {
            for item in a.iter() {
                if list_contains(c, b, &item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    })
    .cost(cost::product),
];

fn sets<'v>(
    call: &Call<'_, 'v>,
    relation: fn(&Call<'_, 'v>, &List<'v>, &List<'v>) -> std::result::Result<bool, EvalError>,
) -> Result<'v> {
    match call.args {
        [Val::List(a), Val::List(b)] => Ok(Val::Bool(relation(call, a, b)?)),
        _ => Err(call.no_such_overload()),
    }
}

/// Whether each element of `a` is in `b`.
fn within(call: &Call<'_, '_>, a: &List<'_>, b: &List<'_>) -> std::result::Result<bool, EvalError> {
    for item in a.iter() {
        if !list_contains(call, b, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}
