//! Operators. Their code decides by the values it gets, as operands may be `dyn`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::environment::Edition;
use super::super::error::EvalError;
use super::super::value::{List, Val, compare_numbers};
use super::{Call, Overload, cost, global, member};
use crate::scalar::duration::Duration;
use crate::scalar::go_time::Time;

macro_rules! comparisons {
    ($name:literal, $prefix:literal, $code:expr) => {
        [
            ordered($name, concat!($prefix, "_bool"), "bool, bool", $code),
            ordered($name, concat!($prefix, "_int64"), "int, int", $code),
            ordered($name, concat!($prefix, "_int64_double"), "int, double", $code),
            ordered($name, concat!($prefix, "_int64_uint64"), "int, uint", $code),
            ordered($name, concat!($prefix, "_uint64"), "uint, uint", $code),
            ordered($name, concat!($prefix, "_uint64_double"), "uint, double", $code),
            ordered($name, concat!($prefix, "_uint64_int64"), "uint, int", $code),
            ordered($name, concat!($prefix, "_double"), "double, double", $code),
            ordered($name, concat!($prefix, "_double_int64"), "double, int", $code),
            ordered($name, concat!($prefix, "_double_uint64"), "double, uint", $code),
            ordered($name, concat!($prefix, "_string"), "string, string", $code).cost(cost::compare),
            ordered($name, concat!($prefix, "_bytes"), "bytes, bytes", $code).cost(cost::compare),
            ordered($name, concat!($prefix, "_timestamp"), "timestamp, timestamp", $code),
            ordered($name, concat!($prefix, "_duration"), "duration, duration", $code),
        ]
    };
}

const fn ordered(name: &'static str, id: &'static str, params: &'static str, code: super::Code) -> Overload {
    global(name, id, params, "bool", code).generic()
}

const LESS: [Overload; 14] = comparisons!("_<_", "less", |call| order(call, Ordering::is_lt));
const LESS_EQUALS: [Overload; 14] = comparisons!("_<=_", "less_equals", |call| order(call, Ordering::is_le));
const GREATER: [Overload; 14] = comparisons!("_>_", "greater", |call| order(call, Ordering::is_gt));
const GREATER_EQUALS: [Overload; 14] = comparisons!("_>=_", "greater_equals", |call| order(call, Ordering::is_ge));

const fn op(
    name: &'static str,
    id: &'static str,
    params: &'static str,
    result: &'static str,
    code: super::Code,
) -> Overload {
    global(name, id, params, result, code).generic()
}

const REST: [Overload; 44] = [
    op("_&&_", "logical_and", "bool, bool", "bool", lowered),
    op("_||_", "logical_or", "bool, bool", "bool", lowered),
    op("_?_:_", "conditional", "bool, <A>, <A>", "<A>", lowered),
    op("!_", "logical_not", "bool", "bool", not),
    op("@not_strictly_false", "not_strictly_false", "bool", "bool", lowered),
    op("-_", "negate_double", "double", "double", negate),
    op("-_", "negate_int64", "int", "int", negate),
    op("_+_", "add_bytes", "bytes, bytes", "bytes", add).cost(cost::concatenate),
    op("_+_", "add_double", "double, double", "double", add),
    op("_+_", "add_duration_duration", "duration, duration", "duration", add),
    op("_+_", "add_duration_timestamp", "duration, timestamp", "timestamp", add),
    op("_+_", "add_timestamp_duration", "timestamp, duration", "timestamp", add),
    op("_+_", "add_int64", "int, int", "int", add),
    op("_+_", "add_list", "list(<A>), list(<A>)", "list(<A>)", add),
    op("_+_", "add_string", "string, string", "string", add).cost(cost::concatenate),
    op("_+_", "add_uint64", "uint, uint", "uint", add),
    op("_-_", "subtract_double", "double, double", "double", subtract),
    op("_-_", "subtract_duration_duration", "duration, duration", "duration", subtract),
    op("_-_", "subtract_int64", "int, int", "int", subtract),
    op("_-_", "subtract_timestamp_duration", "timestamp, duration", "timestamp", subtract),
    op("_-_", "subtract_timestamp_timestamp", "timestamp, timestamp", "duration", subtract),
    op("_-_", "subtract_uint64", "uint, uint", "uint", subtract),
    op("_*_", "multiply_double", "double, double", "double", multiply),
    op("_*_", "multiply_int64", "int, int", "int", multiply),
    op("_*_", "multiply_uint64", "uint, uint", "uint", multiply),
    op("_/_", "divide_double", "double, double", "double", divide),
    op("_/_", "divide_int64", "int, int", "int", divide),
    op("_/_", "divide_uint64", "uint, uint", "uint", divide),
    op("_%_", "modulo_int64", "int, int", "int", modulo),
    op("_%_", "modulo_uint64", "uint, uint", "uint", modulo),
    op("_[_]", "index_list", "list(<A>), int", "<A>", lowered),
    op("_[_]", "index_map", "map(<A>, <B>), <A>", "<B>", lowered),
    op("_[_]", "optional_list_index_int", "optional_type(list(<V>)), int", "optional_type(<V>)", lowered),
    op("_[_]", "optional_map_index_value", "optional_type(map(<K>, <V>)), <K>", "optional_type(<V>)", lowered),
    op("_[?_]", "list_optindex_optional_int", "list(<V>), int", "optional_type(<V>)", lowered),
    op("_[?_]", "optional_list_optindex_optional_int", "optional_type(list(<V>)), int", "optional_type(<V>)", lowered),
    op("_[?_]", "map_optindex_optional_value", "map(<K>, <V>), <K>", "optional_type(<V>)", lowered),
    op(
        "_[?_]",
        "optional_map_optindex_optional_value",
        "optional_type(map(<K>, <V>)), <K>",
        "optional_type(<V>)",
        lowered,
    ),
    op("size", "size_bytes", "bytes", "int", size),
    op("size", "size_list", "list(<A>)", "int", size),
    op("size", "size_map", "map(<A>, <B>)", "int", size),
    op("size", "size_string", "string", "int", size),
    member("size", "bytes_size", "bytes", "int", size).generic(),
    member("size", "list_size", "list(<A>)", "int", size).generic(),
];

const SIZES: [Overload; 2] = [
    member("size", "map_size", "map(<A>, <B>)", "int", size).generic(),
    member("size", "string_size", "string", "int", size).generic(),
];

const ALL: [Overload; 102] = join();

/// The tables one after the other.
#[expect(clippy::indexing_slicing, reason = "runs while compiling")]
const fn join() -> [Overload; 102] {
    let mut all = [REST[0]; 102];
    let parts: [&[Overload]; 6] = [&REST, &SIZES, &LESS, &LESS_EQUALS, &GREATER, &GREATER_EQUALS];
    let (mut to, mut part) = (0, 0);
    while part < parts.len() {
        let mut from = 0;
        while from < parts[part].len() {
            all[to] = parts[part][from];
            to += 1;
            from += 1;
        }
        part += 1;
    }
    all
}

pub(super) const OVERLOADS: &[Overload] = &ALL;

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

/// Stands for operators that evaluate their operands themselves and never arrive here.
fn lowered<'v>(_: &Call<'_, 'v>) -> Result<'v> {
    Err(EvalError::NoSuchOverload)
}

/// An operator that the first operand does not know at all, or not for the second one.
pub(super) fn refuse(call: &Call<'_, '_>, knows: bool) -> EvalError {
    // Texts and times look up what they do not know among their methods, which has its own error.
    let receiver = matches!(call.args.first(), Some(Val::String(_) | Val::Duration(_) | Val::Timestamp(_)));
    if knows || receiver { EvalError::NoSuchOverload } else { EvalError::NoSuchOverloadOf(call.function.into()) }
}

fn not<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    match call.args {
        [Val::Bool(b)] => Ok(Val::Bool(!b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn negate<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    match call.args {
        [Val::Int(n)] => n.checked_neg().map(Val::Int).ok_or(EvalError::IntOverflow),
        [Val::Double(n)] => Ok(Val::Double(-n)),
        [Val::Duration(n)] => n.checked_neg().map(Val::Duration).ok_or(EvalError::IntOverflow),
        [value] => Err(refuse(call, is_signed(value))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// Whether the reference has some negation for such values.
fn is_signed(value: &Val<'_>) -> bool {
    matches!(value, Val::Bool(_) | Val::Int(_) | Val::Double(_) | Val::Duration(_))
}

fn add<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some((a, b)) = call.two() else { return Err(EvalError::NoSuchOverload) };
    Ok(match (a, b) {
        (Val::Int(x), Val::Int(y)) => Val::Int(x.checked_add(*y).ok_or(EvalError::IntOverflow)?),
        (Val::Uint(x), Val::Uint(y)) => Val::Uint(x.checked_add(*y).ok_or(EvalError::UintOverflow)?),
        (Val::Double(x), Val::Double(y)) => Val::Double(x + y),
        (Val::String(x), Val::String(y)) => {
            let (x, y) = (x.as_str(), y.as_str());
            call.charge(x.len() + y.len())?;
            Val::text([x, y].concat())
        }
        (Val::Bytes(x), Val::Bytes(y)) => {
            call.charge(x.len() + y.len())?;
            Val::Bytes([x.as_ref(), y].concat().into())
        }
        (Val::List(List::Associative(x)), Val::List(y)) => {
            call.charge((x.items.len() + y.len()) * 16)?;
            call.charge_steps((x.items.len() + y.len()).saturating_mul(y.len()))?;
            Val::List(List::Associative(Arc::new(x.merged(y))))
        }
        (Val::List(x), Val::List(y)) => {
            call.charge((x.len() + y.len()) * 16)?;
            call.charge_steps(x.len() + y.len())?;
            Val::List(List::Built(Arc::new(x.iter().chain(y.iter()).collect())))
        }
        (Val::Duration(x), Val::Duration(y)) => Val::Duration(x.checked_add(*y).ok_or(EvalError::IntOverflow)?),
        (Val::Duration(span), Val::Timestamp(time)) | (Val::Timestamp(time), Val::Duration(span)) => {
            Val::Timestamp(shift(time, *span)?)
        }
        _ => {
            let adder = matches!(
                a,
                Val::Int(_)
                    | Val::Uint(_)
                    | Val::Double(_)
                    | Val::String(_)
                    | Val::Bytes(_)
                    | Val::List(_)
                    | Val::Duration(_)
                    | Val::Timestamp(_)
            );
            return Err(refuse(call, adder));
        }
    })
}

/// The years that timestamps may have.
const FIRST_SECOND: i64 = -62_135_596_800;
const LAST_SECOND: i64 = 253_402_300_799;

pub(in super::super) fn in_range(time: &Time) -> bool {
    (FIRST_SECOND..=LAST_SECOND).contains(&time.unix_seconds())
}

fn shift(time: &Time, span: i64) -> std::result::Result<Time, EvalError> {
    time.add(Duration(span)).filter(in_range).ok_or_else(|| EvalError::other("timestamp overflow"))
}

/// Nanoseconds between two instants.
fn between(a: &Time, b: &Time) -> Option<i64> {
    let seconds = a.unix_seconds().checked_sub(b.unix_seconds())?;
    let nanos = i64::from(a.nanos()) - i64::from(b.nanos());
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}

fn subtract<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some((a, b)) = call.two() else { return Err(EvalError::NoSuchOverload) };
    Ok(match (a, b) {
        (Val::Int(x), Val::Int(y)) => Val::Int(x.checked_sub(*y).ok_or(EvalError::IntOverflow)?),
        (Val::Uint(x), Val::Uint(y)) => Val::Uint(x.checked_sub(*y).ok_or(EvalError::UintOverflow)?),
        (Val::Double(x), Val::Double(y)) => Val::Double(x - y),
        (Val::Duration(x), Val::Duration(y)) => Val::Duration(x.checked_sub(*y).ok_or(EvalError::IntOverflow)?),
        (Val::Timestamp(time), Val::Duration(span)) => {
            Val::Timestamp(shift(time, span.checked_neg().ok_or(EvalError::IntOverflow)?)?)
        }
        (Val::Timestamp(x), Val::Timestamp(y)) => Val::Duration(between(x, y).ok_or(EvalError::IntOverflow)?),
        _ => {
            let knows = matches!(a, Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Duration(_) | Val::Timestamp(_));
            return Err(refuse(call, knows));
        }
    })
}

fn multiply<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some((a, b)) = call.two() else { return Err(EvalError::NoSuchOverload) };
    Ok(match (a, b) {
        (Val::Int(x), Val::Int(y)) => Val::Int(x.checked_mul(*y).ok_or(EvalError::IntOverflow)?),
        (Val::Uint(x), Val::Uint(y)) => Val::Uint(x.checked_mul(*y).ok_or(EvalError::UintOverflow)?),
        (Val::Double(x), Val::Double(y)) => Val::Double(x * y),
        _ => return Err(refuse(call, is_number(a))),
    })
}

fn is_number(value: &Val<'_>) -> bool {
    matches!(value, Val::Int(_) | Val::Uint(_) | Val::Double(_))
}

fn divide<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some((a, b)) = call.two() else { return Err(EvalError::NoSuchOverload) };
    Ok(match (a, b) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => return Err(EvalError::DivisionByZero),
        (Val::Int(x), Val::Int(y)) => Val::Int(x.checked_div(*y).ok_or(EvalError::IntOverflow)?),
        (Val::Uint(x), Val::Uint(y)) => Val::Uint(x.checked_div(*y).ok_or(EvalError::UintOverflow)?),
        (Val::Double(x), Val::Double(y)) => Val::Double(x / y),
        _ => return Err(refuse(call, is_number(a))),
    })
}

fn modulo<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let Some((a, b)) = call.two() else { return Err(EvalError::NoSuchOverload) };
    Ok(match (a, b) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => return Err(EvalError::ModulusByZero),
        (Val::Int(x), Val::Int(y)) => Val::Int(x.checked_rem(*y).ok_or(EvalError::IntOverflow)?),
        (Val::Uint(x), Val::Uint(y)) => Val::Uint(x.checked_rem(*y).ok_or(EvalError::UintOverflow)?),
        _ => return Err(refuse(call, matches!(a, Val::Int(_) | Val::Uint(_)))),
    })
}

fn order<'v>(call: &Call<'_, 'v>, wanted: fn(Ordering) -> bool) -> Result<'v> {
    let Some((a, b)) = call.two() else { return Err(EvalError::NoSuchOverload) };
    match compare(a, b) {
        Some(order) => Ok(Val::Bool(wanted(order))),
        None if is_number(a) && is_number(b) && call.edition == Edition::Head => Ok(Val::Bool(false)),
        None if is_number(a) && is_number(b) => Err(EvalError::other("NaN values cannot be ordered")),
        None => Err(refuse(call, is_comparable(a))),
    }
}

pub(super) fn is_comparable(value: &Val<'_>) -> bool {
    is_number(value)
        || matches!(value, Val::Bool(_) | Val::String(_) | Val::Bytes(_) | Val::Duration(_) | Val::Timestamp(_))
}

/// How two values of one ordered type compare; numbers compare across types.
pub(in super::super) fn compare(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    match (a, b) {
        (Val::Bool(x), Val::Bool(y)) => Some(x.cmp(y)),
        (Val::String(x), Val::String(y)) => Some(x.as_str().cmp(y.as_str())),
        (Val::Bytes(x), Val::Bytes(y)) => Some(x.cmp(y)),
        (Val::Duration(x), Val::Duration(y)) => Some(x.cmp(y)),
        (Val::Timestamp(x), Val::Timestamp(y)) => {
            Some((x.unix_seconds(), x.nanos()).cmp(&(y.unix_seconds(), y.nanos())))
        }
        _ => compare_numbers(a, b),
    }
}

fn size<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    match call.args {
        [value @ (Val::String(_) | Val::Bytes(_) | Val::List(_) | Val::Map(_))] => {
            Ok(Val::Int(value.length().unwrap_or_default() as i64))
        }
        _ => Err(refuse(call, false)),
    }
}
