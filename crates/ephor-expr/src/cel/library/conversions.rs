//! Conversions between types.

use std::sync::Arc;

use super::super::environment::Edition;
use super::super::error::EvalError;
use super::super::value::Val;
use super::operators::in_range;
use super::{Call, Overload, cost, global};
use crate::scalar::duration::Duration;
use crate::scalar::go_time::{self, Time};
use crate::scalar::number::{format_g, parse_go_float};

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

pub(super) const OVERLOADS: &[Overload] = &[
    global("bool", "bool_to_bool", "bool", "bool", same),
    global("bool", "string_to_bool", "string", "bool", to_bool),
    global("bytes", "bytes_to_bytes", "bytes", "bytes", same),
    global("bytes", "string_to_bytes", "string", "bytes", to_bytes).cost(cost::traverse),
    global("double", "double_to_double", "double", "double", same),
    global("double", "int64_to_double", "int", "double", to_double),
    global("double", "string_to_double", "string", "double", to_double),
    global("double", "uint64_to_double", "uint", "double", to_double),
    global("duration", "duration_to_duration", "duration", "duration", same),
    global("duration", "string_to_duration", "string", "duration", to_duration),
    global("dyn", "to_dyn", "<A>", "dyn", same),
    global("int", "int64_to_int64", "int", "int", same),
    global("int", "double_to_int64", "double", "int", to_int),
    global("int", "duration_to_int64", "duration", "int", to_int),
    global("int", "string_to_int64", "string", "int", to_int),
    global("int", "timestamp_to_int64", "timestamp", "int", to_int),
    global("int", "uint64_to_int64", "uint", "int", to_int),
    global("string", "string_to_string", "string", "string", same),
    global("string", "bool_to_string", "bool", "string", to_string),
    global("string", "bytes_to_string", "bytes", "string", to_string).cost(cost::traverse),
    global("string", "double_to_string", "double", "string", to_string),
    global("string", "duration_to_string", "duration", "string", to_string),
    global("string", "int64_to_string", "int", "string", to_string),
    global("string", "timestamp_to_string", "timestamp", "string", to_string),
    global("string", "uint64_to_string", "uint", "string", to_string),
    global("timestamp", "timestamp_to_timestamp", "timestamp", "timestamp", same),
    global("timestamp", "int64_to_timestamp", "int", "timestamp", to_timestamp),
    global("timestamp", "string_to_timestamp", "string", "timestamp", to_timestamp),
    global("type", "type", "<A>", "type(<A>)", type_of),
    global("uint", "uint64_to_uint64", "uint", "uint", same),
    global("uint", "double_to_uint64", "double", "uint", to_uint),
    global("uint", "int64_to_uint64", "int", "uint", to_uint),
    global("uint", "string_to_uint64", "string", "uint", to_uint),
];

pub(super) const DURATION_OF_INT: &[Overload] =
    &[global("duration", "int64_to_duration", "int", "duration", to_duration)];

fn same<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(call.arg(0))
}

fn type_of<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(Val::Type(Arc::new(call.arg(0).type_of())))
}

/// A text that is no value of the type `to`.
fn bad_text(to: &'static str) -> EvalError {
    EvalError::Conversion { from: "string".into(), to: to.into() }
}

fn to_bool<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    match call.str(0) {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
        _ => Err(bad_text("bool")),
    }
}

fn to_bytes<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    call.charge(call.str(0).len())?;
    Ok(Val::Bytes(call.str(0).as_bytes().into()))
}

fn to_double<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(Val::Double(match call.arg(0) {
        Val::Int(n) => n as f64,
        Val::Uint(n) => n as f64,
        _ => parse_go_float(call.str(0)).ok_or_else(|| bad_text("double"))?,
    }))
}

fn to_duration<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    match call.arg(0) {
        Val::Int(_) => Err(EvalError::Conversion { from: "int".into(), to: "google.protobuf.Duration".into() }),
        _ => Duration::parse(call.str(0)).map(|d| Val::Duration(d.0)).map_err(|_| bad_text("google.protobuf.Duration")),
    }
}

fn to_int<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(Val::Int(match call.arg(0) {
        Val::Uint(n) => i64::try_from(n).map_err(|_| EvalError::IntOverflow)?,
        // The bounds themselves are refused, as the doubles beside them stand for more than one integer.
        Val::Double(n) if n > i64::MIN as f64 && n < i64::MAX as f64 => n as i64,
        Val::Double(_) => return Err(EvalError::IntOverflow),
        Val::Duration(n) => n,
        Val::Timestamp(time) => time.unix_seconds(),
        _ => call.str(0).parse().map_err(|_| bad_text("int"))?,
    }))
}

fn to_uint<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(Val::Uint(match call.arg(0) {
        Val::Int(n) => u64::try_from(n).map_err(|_| EvalError::UintOverflow)?,
        Val::Double(n) if n >= 0.0 && n < u64::MAX as f64 => n as u64,
        Val::Double(_) => return Err(EvalError::UintOverflow),
        _ => Some(call.str(0))
            .filter(|text| !text.starts_with('+'))
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| bad_text("uint"))?,
    }))
}

fn to_timestamp<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let time = match call.arg(0) {
        Val::Int(n) => Time::from_unix(n, 0),
        _ => go_time::parse_rfc3339(call.str(0)).map_err(|_| {
            if call.edition == Edition::Head && !has_timestamp_shape(call.str(0)) {
                EvalError::Other(format!("invalid RFC 3339 timestamp {:?}", call.str(0)))
            } else {
                bad_text("google.protobuf.Timestamp")
            }
        })?,
    };
    if in_range(&time) { Ok(Val::Timestamp(time)) } else { Err(EvalError::other("timestamp overflow")) }
}

/// Whether a text looks like RFC 3339, be there such a day or not.
fn has_timestamp_shape(text: &str) -> bool {
    let number = |from: usize, length: usize, least: u32, most: u32| {
        let digits = text.get(from..from + length).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).is_some_and(|n: u32| (least..=most).contains(&n))
    };
    let mark = |at: usize, marks: &[u8]| text.as_bytes().get(at).is_some_and(|b| marks.contains(b));
    number(0, 4, 0, 9999)
        && mark(4, b"-")
        && number(5, 2, 1, 12)
        && mark(7, b"-")
        && number(8, 2, 1, 31)
        && mark(10, b"Tt")
        && number(11, 2, 0, 23)
        && mark(13, b":")
        && number(14, 2, 0, 59)
        && mark(16, b":")
        && number(17, 2, 0, 60)
        && text.len() > 19
}

fn to_string<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    let text = match call.args.first() {
        Some(Val::Bool(b)) => b.to_string(),
        Some(Val::Int(n)) => n.to_string(),
        Some(Val::Uint(n)) => n.to_string(),
        Some(Val::Double(n)) => double_text(*n),
        Some(Val::Duration(n)) => duration_text(*n),
        Some(Val::Timestamp(time)) => timestamp_text(time),
        Some(Val::Bytes(bytes)) => {
            call.charge(bytes.len())?;
            String::from_utf8(bytes.to_vec())
                .map_err(|_| EvalError::other("invalid UTF-8 in bytes, cannot convert to string"))?
        }
        _ => return Err(call.no_such_overload()),
    };
    Ok(Val::text(text))
}

/// A double in the shortest digits, with an exponent for very small and large ones.
pub(in super::super) fn double_text(n: f64) -> String {
    if n.is_infinite() && n > 0.0 { "+Inf".into() } else { format_g(n) }
}

/// Seconds without trailing zeros: `1.5s`.
pub(in super::super) fn duration_text(nanos: i64) -> String {
    format!("{}s", nanos as f64 / 1e9)
}

/// RFC 3339 with as many decimals as needed.
pub(in super::super) fn timestamp_text(time: &Time) -> String {
    let text = go_time::format_rfc3339(time);
    if time.nanos() == 0 {
        return text;
    }
    let fraction = format!("{:09}", time.nanos());
    let (seconds, zone) = text.split_at_checked(text.len() - zone_length(&text)).unwrap_or((&text, ""));
    format!("{seconds}.{}{zone}", fraction.trim_end_matches('0'))
}

fn zone_length(text: &str) -> usize {
    if text.ends_with('Z') { 1 } else { 6 }
}
