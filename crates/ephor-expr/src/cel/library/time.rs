//! Parts of timestamps and durations.

use super::super::environment::Edition;
use super::super::error::EvalError;
use super::super::value::Val;
use super::{Call, Code, Overload, member};
use crate::scalar::go_time::{Civil, Time};
use crate::scalar::zone;
use jiff::Timestamp;

type Result<'v> = std::result::Result<Val<'v>, EvalError>;

const UTC: &str = "timestamp";
const ZONED: &str = "timestamp, string";

const fn part(name: &'static str, id: &'static str, params: &'static str, code: Code) -> Overload {
    member(name, id, params, "int", code)
}

pub(super) const OVERLOADS: &[Overload] = &[
    part("getDate", "timestamp_to_day_of_month_1_based", UTC, |c| civil(c, |t| t.day.into())),
    part("getDate", "timestamp_to_day_of_month_1_based_with_tz", ZONED, |c| civil(c, |t| t.day.into())),
    part("getDayOfMonth", "timestamp_to_day_of_month", UTC, |c| civil(c, |t| i64::from(t.day) - 1)),
    part("getDayOfMonth", "timestamp_to_day_of_month_with_tz", ZONED, |c| civil(c, |t| i64::from(t.day) - 1)),
    part("getDayOfWeek", "timestamp_to_day_of_week", UTC, |c| civil(c, |t| t.weekday.into())),
    part("getDayOfWeek", "timestamp_to_day_of_week_with_tz", ZONED, |c| civil(c, |t| t.weekday.into())),
    part("getDayOfYear", "timestamp_to_day_of_year", UTC, |c| civil(c, day_of_year)),
    part("getDayOfYear", "timestamp_to_day_of_year_with_tz", ZONED, |c| civil(c, day_of_year)),
    part("getFullYear", "timestamp_to_year", UTC, |c| civil(c, |t| t.year)),
    part("getFullYear", "timestamp_to_year_with_tz", ZONED, |c| civil(c, |t| t.year)),
    part("getMonth", "timestamp_to_month", UTC, |c| civil(c, |t| i64::from(t.month) - 1)),
    part("getMonth", "timestamp_to_month_with_tz", ZONED, |c| civil(c, |t| i64::from(t.month) - 1)),
    part("getHours", "timestamp_to_hours", UTC, |c| civil(c, |t| t.hour.into())),
    part("getHours", "timestamp_to_hours_with_tz", ZONED, |c| civil(c, |t| t.hour.into())),
    part("getHours", "duration_to_hours", "duration", |c| span(c, 3_600_000_000_000)),
    part("getMinutes", "timestamp_to_minutes", UTC, |c| civil(c, |t| t.minute.into())),
    part("getMinutes", "timestamp_to_minutes_with_tz", ZONED, |c| civil(c, |t| t.minute.into())),
    part("getMinutes", "duration_to_minutes", "duration", |c| span(c, 60_000_000_000)),
    part("getSeconds", "timestamp_to_seconds", UTC, |c| civil(c, |t| t.second.into())),
    part("getSeconds", "timestamp_to_seconds_tz", ZONED, |c| civil(c, |t| t.second.into())),
    part("getSeconds", "duration_to_seconds", "duration", |c| span(c, 1_000_000_000)),
    part("getMilliseconds", "timestamp_to_milliseconds", UTC, milliseconds),
    part("getMilliseconds", "timestamp_to_milliseconds_with_tz", ZONED, milliseconds),
    part("getMilliseconds", "duration_to_milliseconds", "duration", |c| span(c, 1_000_000)),
];

fn span<'v>(call: &Call<'_, 'v>, unit: i64) -> Result<'v> {
    match call.args {
        [Val::Duration(nanos)] => Ok(Val::Int(nanos / unit)),
        _ => Err(call.no_such_overload()),
    }
}

fn civil<'v>(call: &Call<'_, 'v>, part: fn(&Civil) -> i64) -> Result<'v> {
    Ok(Val::Int(part(&local(call)?.civil())))
}

fn milliseconds<'v>(call: &Call<'_, 'v>) -> Result<'v> {
    Ok(Val::Int(i64::from(local(call)?.nanos() / 1_000_000)))
}

/// The first day is 0.
fn day_of_year(t: &Civil) -> i64 {
    let first = Civil { month: 1, day: 1, ..*t };
    let days = |civil: &Civil| Time::from_civil(civil, 0, 0).map_or(0, |time| time.unix_seconds().div_euclid(86_400));
    days(t) - days(&first)
}

/// The instant in the zone that the second argument names; without one, in UTC.
fn local(call: &Call<'_, '_>) -> std::result::Result<Time, EvalError> {
    let Some(Val::Timestamp(time)) = call.args.first() else { return Err(call.no_such_overload()) };
    let Some(zone) = call.args.get(1) else { return Ok(time.to_utc()) };
    let zone = zone.as_str().unwrap_or_default();
    let hours = zone.trim_start_matches(['+', '-']).split(':').next().and_then(|hours| hours.parse::<u32>().ok());
    if call.edition == Edition::Head && zone.contains(':') && hours.is_some_and(|hours| hours > 23) {
        return Err(EvalError::Other(format!("timezone offset hours out of range [-23, 23]: {zone}")));
    }
    if let Some(offset) = offset(zone) {
        return Ok(time.at_offset(offset));
    }
    call.charge_steps(ZONE_STEPS)?;
    let offset = named_offset(zone, time).ok_or_else(|| EvalError::Other(format!("unknown time zone {zone}")))?;
    Ok(time.at_offset(offset))
}

/// What reading the rules of a named zone takes.
const ZONE_STEPS: usize = 200;

/// The offset that a zone of the time zone database has at that moment.
fn named_offset(zone: &str, time: &Time) -> Option<i32> {
    let zone = zone::named(zone)?;
    Some(zone.to_offset(Timestamp::from_second(time.unix_seconds()).ok()?).seconds())
}

/// The offset of a zone: `UTC`, or hours and minutes as `+01:00`.
fn offset(zone: &str) -> Option<i32> {
    if matches!(zone, "" | "UTC" | "Local") {
        return Some(0);
    }
    let (sign, digits) = match zone.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, zone.strip_prefix('+').unwrap_or(zone)),
    };
    let (hours, minutes) = digits.split_once(':')?;
    let number = |text: &str| if text.bytes().all(|b| b.is_ascii_digit()) { text.parse::<i32>().ok() } else { None };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 1_000 && minutes < 1_000).then(|| sign * (hours * 3600 + minutes * 60))
}
