//! Functions of lists: those of the language's extension and those of Kubernetes.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::environment::Edition;
use super::super::error::EvalError;
use super::super::value::{List, Val};
use super::equality::list_contains;
use super::operators::{compare, is_comparable, refuse};
use super::{Call, Overload, cost, global, member};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

pub(super) const MAP_INSERT: &[Overload] = &[
    global("cel.@mapInsert", "@mapInsert_map_key_value", "map(<K>, <V>), <K>, <V>", "map(<K>, <V>)", in_place),
    global("cel.@mapInsert", "@mapInsert_map_map", "map(<K>, <V>), map(<K>, <V>)", "map(<K>, <V>)", in_place),
];

/// Stands for a call that is always lowered to a node of its own.
fn in_place<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Err(call.no_such_overload())
}

macro_rules! sorts {
    ($kind:literal) => {
        member(
            "sort",
            concat!("list_", $kind, "_sort"),
            concat!("list(", $kind, ")"),
            concat!("list(", $kind, ")"),
            sort,
        )
        .cost(cost::compare_all)
        .generic()
    };
}

macro_rules! sorts_by {
    ($kind:literal) => {
        member(
            "@sortByAssociatedKeys",
            concat!("list_", $kind, "_sortByAssociatedKeys"),
            concat!("list(<T>), list(", $kind, ")"),
            "list(<T>)",
            sort_by,
        )
        .cost(cost::compare_all)
    };
}

pub(super) const EXTENSION: &[Overload] = &[
    member("slice", "list_slice", "list(<T>), int, int", "list(<T>)", slice).cost(cost::new_list),
    member("flatten", "list_flatten", "list(list(<T>))", "list(<T>)", flatten)
        .cost(cost::flatten)
        .cost_of_head(cost::new_list)
        .generic(),
    member("flatten", "list_flatten_int", "list(dyn), int", "list(dyn)", flatten)
        .cost(cost::flatten)
        .cost_of_head(cost::new_list)
        .generic(),
    member("distinct", "list_distinct", "list(<T>)", "list(<T>)", distinct).cost(cost::compare_all),
    member("reverse", "list_reverse", "list(<T>)", "list(<T>)", reverse).cost(cost::new_list),
    global("lists.range", "lists_range", "int", "list(int)", range).cost(cost::new_list),
    sorts!("int"),
    sorts!("uint"),
    sorts!("double"),
    sorts!("bool"),
    sorts!("google.protobuf.Duration"),
    sorts!("google.protobuf.Timestamp"),
    sorts!("string"),
    sorts!("bytes"),
    sorts_by!("int"),
    sorts_by!("uint"),
    sorts_by!("double"),
    sorts_by!("bool"),
    sorts_by!("google.protobuf.Duration"),
    sorts_by!("google.protobuf.Timestamp"),
    sorts_by!("string"),
    sorts_by!("bytes"),
];

const fn reads(
    name: &'static str,
    id: &'static str,
    params: &'static str,
    result: &'static str,
    code: super::Code,
) -> Overload {
    member(name, id, params, result, code).cost_by_name(cost::traverse_deep)
}

pub(super) const KUBERNETES: &[Overload] = &[
    reads("indexOf", "list_a_index_of_int", "list(<A>), <A>", "int", |call| index_of(call, false)),
    reads("lastIndexOf", "list_a_last_index_of_int", "list(<A>), <A>", "int", |call| index_of(call, true)),
    reads("isSorted", "list_int_is_sorted_bool", "list(int)", "bool", is_sorted),
    reads("max", "list_int_max_int", "list(int)", "int", |call| extremum(call, Ordering::is_gt)),
    reads("min", "list_int_min_int", "list(int)", "int", |call| extremum(call, Ordering::is_lt)),
    reads("isSorted", "list_uint_is_sorted_bool", "list(uint)", "bool", is_sorted),
    reads("max", "list_uint_max_uint", "list(uint)", "uint", |call| extremum(call, Ordering::is_gt)),
    reads("min", "list_uint_min_uint", "list(uint)", "uint", |call| extremum(call, Ordering::is_lt)),
    reads("isSorted", "list_double_is_sorted_bool", "list(double)", "bool", is_sorted),
    reads("max", "list_double_max_double", "list(double)", "double", |call| extremum(call, Ordering::is_gt)),
    reads("min", "list_double_min_double", "list(double)", "double", |call| extremum(call, Ordering::is_lt)),
    reads("isSorted", "list_bool_is_sorted_bool", "list(bool)", "bool", is_sorted),
    reads("max", "list_bool_max_bool", "list(bool)", "bool", |call| extremum(call, Ordering::is_gt)),
    reads("min", "list_bool_min_bool", "list(bool)", "bool", |call| extremum(call, Ordering::is_lt)),
    reads("isSorted", "list_duration_is_sorted_bool", "list(duration)", "bool", is_sorted),
    reads("max", "list_duration_max_duration", "list(duration)", "duration", |call| extremum(call, Ordering::is_gt)),
    reads("min", "list_duration_min_duration", "list(duration)", "duration", |call| extremum(call, Ordering::is_lt)),
    reads("isSorted", "list_timestamp_is_sorted_bool", "list(timestamp)", "bool", is_sorted),
    reads("max", "list_timestamp_max_timestamp", "list(timestamp)", "timestamp", |call| {
        extremum(call, Ordering::is_gt)
    }),
    reads("min", "list_timestamp_min_timestamp", "list(timestamp)", "timestamp", |call| {
        extremum(call, Ordering::is_lt)
    }),
    reads("isSorted", "list_string_is_sorted_bool", "list(string)", "bool", is_sorted),
    reads("max", "list_string_max_string", "list(string)", "string", |call| extremum(call, Ordering::is_gt)),
    reads("min", "list_string_min_string", "list(string)", "string", |call| extremum(call, Ordering::is_lt)),
    reads("isSorted", "list_bytes_is_sorted_bool", "list(bytes)", "bool", is_sorted),
    reads("max", "list_bytes_max_bytes", "list(bytes)", "bytes", |call| extremum(call, Ordering::is_gt)),
    reads("min", "list_bytes_min_bytes", "list(bytes)", "bytes", |call| extremum(call, Ordering::is_lt)),
    reads("sum", "list_int_sum_int", "list(int)", "int", sum),
    reads("sum", "list_uint_sum_uint", "list(uint)", "uint", sum),
    reads("sum", "list_double_sum_double", "list(double)", "double", sum),
    reads("sum", "list_duration_sum_duration", "list(duration)", "duration", sum),
];

fn list<'c, 'v>(call: &'c Call<'_, 'v>, i: usize) -> std::result::Result<&'c List<'v>, EvalError> {
    match call.args.get(i) {
        Some(Val::List(list)) => {
            call.charge_steps(list.len())?;
            call.charge(list.len() * 16)?;
            Ok(list)
        }
        _ => Err(call.no_such_overload()),
    }
}

fn slice<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let items = list(call, 0)?;
    let (start, end) = (call.int(1), call.int(2));
    let fail = |why: String| Err(EvalError::Other(format!("cannot slice({start}, {end}), {why}")));
    if start < 0 || end < 0 {
        return fail("negative indexes not supported".into());
    }
    if start > end {
        return fail("start index must be less than or equal to end index".into());
    }
    if items.len() < end as usize {
        return fail(format!("list is length {}", items.len()));
    }
    Ok(Val::list((start as usize..end as usize).filter_map(|i| items.get(i)).collect()))
}

/// How deep `flatten` goes at most; what nests deeper stays as it is.
const MAX_FLATTEN: i64 = 512;

fn flatten<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let depth = if call.args.len() == 2 { call.int(1) } else { 1 };
    if depth < 0 {
        return Err(EvalError::other("level must be non-negative"));
    }
    let items = match call.args.first() {
        Some(Val::List(_)) => list(call, 0)?,
        Some(other) => {
            let target = if matches!(other, Val::Map(_)) { "map(dyn, dyn)".into() } else { other.type_name() };
            let level = if call.args.len() == 2 { "int" } else { "" };
            return Err(EvalError::NoSuchOverloadOf(format!("{target}.flatten({level})")));
        }
        None => return Err(call.no_such_overload()),
    };
    let mut flat = Vec::new();
    flatten_into(call, items, depth.min(MAX_FLATTEN), &mut flat)?;
    Ok(Val::list(flat))
}

fn flatten_into<'v>(
    call: &Call<'_, 'v>,
    items: &List<'v>,
    depth: i64,
    flat: &mut Vec<Val<'v>>,
) -> std::result::Result<(), EvalError> {
    call.charge_steps(items.len())?;
    call.charge(items.len() * 16)?;
    for item in items.iter() {
        match item {
            Val::List(inner) if depth > 0 => flatten_into(call, &inner, depth - 1, flat)?,
            other => flat.push(other),
        }
    }
    Ok(())
}

fn distinct<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let mut kept = Vec::new();
    for item in list(call, 0)?.iter() {
        let so_far = List::Built(Arc::new(kept));
        let known = list_contains(call, &so_far, &item)?;
        let List::Built(items) = so_far else { return Err(EvalError::NoSuchOverload) };
        kept = Arc::unwrap_or_clone(items);
        if !known {
            kept.push(item);
        }
    }
    Ok(Val::list(kept))
}

fn reverse<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let mut items: Vec<Val<'v>> = list(call, 0)?.iter().collect();
    items.reverse();
    Ok(Val::list(items))
}

fn range<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    if call.int(0) < 0 && call.edition == Edition::Head {
        return Err(EvalError::Other(format!("lists.range: size must be non-negative, got {}", call.int(0))));
    }
    let length = call.int(0).max(0);
    call.charge_steps(length as usize)?;
    call.charge((length as usize).saturating_mul(16))?;
    Ok(Val::list((0..length).map(Val::Int).collect()))
}

fn sort<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    if !matches!(call.args.first(), Some(Val::List(_))) {
        return Err(refuse(call, false));
    }
    let items = list(call, 0)?;
    sorted(call, items, items)
}

fn sort_by<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let (items, keys) = (list(call, 0)?, list(call, 1)?);
    if items.len() != keys.len() {
        let message = format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            items.len(),
            keys.len()
        );
        return Err(EvalError::Other(message));
    }
    sorted(call, items, keys)
}

fn sorted<'v>(call: &Call<'_, 'v>, items: &List<'v>, keys: &List<'v>) -> Result<'v> {
    let mut pairs: Vec<(Val<'v>, Val<'v>)> = keys.iter().zip(items.iter()).collect();
    if let Some((first, _)) = pairs.first() {
        if !is_comparable(first) {
            return Err(EvalError::other("list elements must be comparable"));
        }
        if pairs.iter().any(|(key, _)| key.type_name() != first.type_name()) {
            return Err(EvalError::other("list elements must have the same type"));
        }
    }
    call.charge_steps(pairs.len() * (usize::BITS - pairs.len().leading_zeros()) as usize)?;
    pairs.sort_by(|(a, _), (b, _)| compare(a, b).unwrap_or(Ordering::Equal));
    Ok(Val::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn index_of<'v>(call: &Call<'_, 'v>, last: bool) -> Result<'v> {
    let (items, wanted) = (list(call, 0)?, call.arg(1));
    let mut index = None;
    for (i, item) in items.iter().enumerate() {
        if item.equals_charged(&wanted, call.budget)? {
            index = Some(i);
            if !last {
                break;
            }
        }
    }
    Ok(Val::Int(index.map_or(-1, |i| i as i64)))
}

fn is_sorted<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let mut before: Option<Val<'v>> = None;
    for item in list(call, 0)?.iter() {
        if !is_comparable(&item) {
            return Err(if before.is_some() { EvalError::NoSuchOverload } else { call.no_such_overload() });
        }
        if before.is_some_and(|before| compare(&before, &item).is_some_and(Ordering::is_gt)) {
            return Ok(Val::Bool(false));
        }
        before = Some(item);
    }
    Ok(Val::Bool(true))
}

fn extremum<'v>(call: &Call<'_, 'v>, better: fn(Ordering) -> bool) -> Result<'v> {
    let items = list(call, 0)?;
    let Some(mut best) = items.get(0) else {
        return Err(EvalError::Other(format!("{} called on empty list", call.function)));
    };
    if !is_comparable(&best) {
        return Err(call.no_such_overload());
    }
    for item in items.iter().skip(1) {
        if compare(&item, &best).is_some_and(better) {
            best = item;
        }
    }
    Ok(best)
}

fn sum<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let items = list(call, 0)?;
    let Some(mut sum) = items.get(0) else { return Ok(Val::Int(0)) };
    for item in items.iter().skip(1) {
        sum = match (&sum, &item) {
            (Val::Int(a), Val::Int(b)) => Val::Int(a.checked_add(*b).ok_or(EvalError::IntOverflow)?),
            (Val::Uint(a), Val::Uint(b)) => Val::Uint(a.checked_add(*b).ok_or(EvalError::UintOverflow)?),
            (Val::Double(a), Val::Double(b)) => Val::Double(a + b),
            (Val::Duration(a), Val::Duration(b)) => Val::Duration(a.checked_add(*b).ok_or(EvalError::IntOverflow)?),
            _ => return Err(EvalError::NoSuchOverload),
        };
    }
    match sum {
        Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Duration(_) => Ok(sum),
        _ => Err(call.no_such_overload()),
    }
}
