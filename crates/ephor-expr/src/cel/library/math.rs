//! `math`.

use std::cmp::Ordering;

use super::super::error::EvalError;
use super::super::value::{Val, compare_numbers};
use super::{Call, Overload, cost, global};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

pub(super) const OVERLOADS: &[Overload] = &[
    global("math.@max", "math_@max_int", "int", "int", |c| Ok(c.arg(0))),
    global("math.@max", "math_@max_uint", "uint", "uint", |c| Ok(c.arg(0))),
    global("math.@max", "math_@max_double", "double", "double", |c| Ok(c.arg(0))),
    global("math.@max", "math_@max_int_int", "int, int", "int", |c| extremum(c.function, c.args, Ordering::is_gt)),
    global("math.@max", "math_@max_int_uint", "int, uint", "dyn", |c| extremum(c.function, c.args, Ordering::is_gt)),
    global("math.@max", "math_@max_int_double", "int, double", "dyn", |c| {
        extremum(c.function, c.args, Ordering::is_gt)
    }),
    global("math.@max", "math_@max_uint_int", "uint, int", "dyn", |c| extremum(c.function, c.args, Ordering::is_gt)),
    global("math.@max", "math_@max_uint_uint", "uint, uint", "uint", |c| extremum(c.function, c.args, Ordering::is_gt)),
    global("math.@max", "math_@max_uint_double", "uint, double", "dyn", |c| {
        extremum(c.function, c.args, Ordering::is_gt)
    }),
    global("math.@max", "math_@max_double_int", "double, int", "dyn", |c| {
        extremum(c.function, c.args, Ordering::is_gt)
    }),
    global("math.@max", "math_@max_double_uint", "double, uint", "dyn", |c| {
        extremum(c.function, c.args, Ordering::is_gt)
    }),
    global("math.@max", "math_@max_double_double", "double, double", "double", |c| {
        extremum(c.function, c.args, Ordering::is_gt)
    }),
    global("math.@max", "math_@max_list_int", "list(int)", "int", |c| in_list(c, Ordering::is_gt))
        .cost_of_head(cost::elements),
    global("math.@max", "math_@max_list_uint", "list(uint)", "uint", |c| in_list(c, Ordering::is_gt))
        .cost_of_head(cost::elements),
    global("math.@max", "math_@max_list_double", "list(double)", "double", |c| in_list(c, Ordering::is_gt))
        .cost_of_head(cost::elements),
    global("math.@min", "math_@min_int", "int", "int", |c| Ok(c.arg(0))),
    global("math.@min", "math_@min_uint", "uint", "uint", |c| Ok(c.arg(0))),
    global("math.@min", "math_@min_double", "double", "double", |c| Ok(c.arg(0))),
    global("math.@min", "math_@min_int_int", "int, int", "int", |c| extremum(c.function, c.args, Ordering::is_lt)),
    global("math.@min", "math_@min_int_uint", "int, uint", "dyn", |c| extremum(c.function, c.args, Ordering::is_lt)),
    global("math.@min", "math_@min_int_double", "int, double", "dyn", |c| {
        extremum(c.function, c.args, Ordering::is_lt)
    }),
    global("math.@min", "math_@min_uint_int", "uint, int", "dyn", |c| extremum(c.function, c.args, Ordering::is_lt)),
    global("math.@min", "math_@min_uint_uint", "uint, uint", "uint", |c| extremum(c.function, c.args, Ordering::is_lt)),
    global("math.@min", "math_@min_uint_double", "uint, double", "dyn", |c| {
        extremum(c.function, c.args, Ordering::is_lt)
    }),
    global("math.@min", "math_@min_double_int", "double, int", "dyn", |c| {
        extremum(c.function, c.args, Ordering::is_lt)
    }),
    global("math.@min", "math_@min_double_uint", "double, uint", "dyn", |c| {
        extremum(c.function, c.args, Ordering::is_lt)
    }),
    global("math.@min", "math_@min_double_double", "double, double", "double", |c| {
        extremum(c.function, c.args, Ordering::is_lt)
    }),
    global("math.@min", "math_@min_list_int", "list(int)", "int", |c| in_list(c, Ordering::is_lt))
        .cost_of_head(cost::elements),
    global("math.@min", "math_@min_list_uint", "list(uint)", "uint", |c| in_list(c, Ordering::is_lt))
        .cost_of_head(cost::elements),
    global("math.@min", "math_@min_list_double", "list(double)", "double", |c| in_list(c, Ordering::is_lt))
        .cost_of_head(cost::elements),
    global("math.ceil", "math_ceil_double", "double", "double", |c| rounded(c, f64::ceil)),
    global("math.floor", "math_floor_double", "double", "double", |c| rounded(c, f64::floor)),
    global("math.round", "math_round_double", "double", "double", |c| rounded(c, f64::round)),
    global("math.trunc", "math_trunc_double", "double", "double", |c| rounded(c, f64::trunc)),
    global("math.isFinite", "math_isFinite_double", "double", "bool", |c| Ok(Val::Bool(f64::is_finite(double(c))))),
    global("math.isInf", "math_isInf_double", "double", "bool", |c| Ok(Val::Bool(f64::is_infinite(double(c))))),
    global("math.isNaN", "math_isNaN_double", "double", "bool", |c| Ok(Val::Bool(f64::is_nan(double(c))))),
    global("math.abs", "math_abs_double", "double", "double", abs),
    global("math.sign", "math_sign_double", "double", "double", sign),
    global("math.sqrt", "math_sqrt_double", "double", "double", sqrt),
    global("math.abs", "math_abs_int", "int", "int", abs),
    global("math.sign", "math_sign_int", "int", "int", sign),
    global("math.sqrt", "math_sqrt_int", "int", "double", sqrt),
    global("math.abs", "math_abs_uint", "uint", "uint", abs),
    global("math.sign", "math_sign_uint", "uint", "uint", sign),
    global("math.sqrt", "math_sqrt_uint", "uint", "double", sqrt),
    global("math.bitAnd", "math_bitAnd_int_int", "int, int", "int", |c| bits(c, |a, b| a & b)),
    global("math.bitOr", "math_bitOr_int_int", "int, int", "int", |c| bits(c, |a, b| a | b)),
    global("math.bitXor", "math_bitXor_int_int", "int, int", "int", |c| bits(c, |a, b| a ^ b)),
    global("math.bitNot", "math_bitNot_int_int", "int", "int", |c| bits(c, |a, _| !a)),
    global("math.bitShiftLeft", "math_bitShiftLeft_int_int", "int, int", "int", |c| shift(c, true)),
    global("math.bitShiftRight", "math_bitShiftRight_int_int", "int, int", "int", |c| shift(c, false)),
    global("math.bitAnd", "math_bitAnd_uint_uint", "uint, uint", "uint", |c| bits(c, |a, b| a & b)),
    global("math.bitOr", "math_bitOr_uint_uint", "uint, uint", "uint", |c| bits(c, |a, b| a | b)),
    global("math.bitXor", "math_bitXor_uint_uint", "uint, uint", "uint", |c| bits(c, |a, b| a ^ b)),
    global("math.bitNot", "math_bitNot_uint_uint", "uint", "uint", |c| bits(c, |a, _| !a)),
    global("math.bitShiftLeft", "math_bitShiftLeft_uint_int", "uint, int", "uint", |c| shift(c, true)),
    global("math.bitShiftRight", "math_bitShiftRight_uint_int", "uint, int", "uint", |c| shift(c, false)),
];

fn extremum<'v>(function: &str, values: &[Val<'v>], better: fn(Ordering) -> bool) -> Result<'v> {
    let mut values = values.iter();
    let Some(mut best) = values.next() else { return Err(EvalError::NoSuchOverload) };
    for value in values {
        let Some(order) = compare_numbers(value, best) else {
            return Err(EvalError::Other(format!("NaN values cannot be ordered: {function}")));
        };
        if better(order) {
            best = value;
        }
    }
    Ok(best.clone())
}

fn in_list<'v>(call: &Call<'_, 'v>, better: fn(Ordering) -> bool) -> Result<'v> {
    let Some(Val::List(list)) = call.args.first() else { return Err(call.no_such_overload()) };
    call.charge_steps(list.len())?;
    let values: Vec<Val<'v>> = list.iter().collect();
    if values.is_empty() {
        let function = call.function;
        return Err(EvalError::Other(format!("{function}(list) argument must not be empty")));
    }
    extremum(call.function, &values, better)
}

fn double(call: &Call<'_, '_>) -> f64 {
    match call.args.first() {
        Some(Val::Double(n)) => *n,
        _ => f64::NAN,
    }
}

fn rounded<'v>(call: &Call<'_, 'v>, round: fn(f64) -> f64) -> Result<'v> {
    Ok(Val::Double(round(double(call))))
}

fn abs<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    match call.arg(0) {
        Val::Int(n) => n.checked_abs().map(Val::Int).ok_or(EvalError::IntOverflow),
        Val::Double(n) => Ok(Val::Double(n.abs())),
        other => Ok(other),
    }
}

fn sign<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(match call.arg(0) {
        Val::Int(n) => Val::Int(n.signum()),
        Val::Uint(n) => Val::Uint(n.min(1)),
        Val::Double(n) if n == 0.0 || n.is_nan() => Val::Double(n),
        Val::Double(n) => Val::Double(n.signum()),
        other => other,
    })
}

fn sqrt<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(Val::Double(match call.arg(0) {
        Val::Int(n) => (n as f64).sqrt(),
        Val::Uint(n) => (n as f64).sqrt(),
        _ => double(call).sqrt(),
    }))
}

fn bits<'v>(call: &Call<'_, 'v>, operation: fn(u64, u64) -> u64) -> Result<'v> {
    Ok(match (call.arg(0), call.arg(1)) {
        (Val::Int(a), Val::Int(b)) => Val::Int(operation(a.cast_unsigned(), b.cast_unsigned()).cast_signed()),
        (Val::Int(a), _) => Val::Int(operation(a.cast_unsigned(), 0).cast_signed()),
        (Val::Uint(a), Val::Uint(b)) => Val::Uint(operation(a, b)),
        (Val::Uint(a), _) => Val::Uint(operation(a, 0)),
        _ => return Err(call.no_such_overload()),
    })
}

/// Shifts the bits, the sign being one of them.
fn shift<'v>(call: &Call<'_, 'v>, left: bool) -> Result<'v> {
    let places = call.int(1);
    let Ok(places) = u32::try_from(places.min(64)) else {
        let name = if left { "Left" } else { "Right" };
        return Err(EvalError::Other(format!("math.bitShift{name}() negative offset: {places}")));
    };
    let shifted = |n: u64| if left { n.checked_shl(places) } else { n.checked_shr(places) }.unwrap_or(0);
    Ok(match call.arg(0) {
        Val::Int(n) => Val::Int(shifted(n.cast_unsigned()).cast_signed()),
        Val::Uint(n) => Val::Uint(shifted(n)),
        _ => return Err(call.no_such_overload()),
    })
}
