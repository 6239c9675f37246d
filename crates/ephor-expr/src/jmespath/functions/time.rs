//! Times and durations.
//!
//! Times are RFC 3339 text and keep their offset; results are in whole seconds.

use std::num::{IntErrorKind, ParseIntError};

use super::{Call, Function, Param};
use crate::jmespath::EvalError;
use crate::scalar::duration::Duration;
use crate::scalar::go_time::{Time, format_rfc3339, parse_layout, parse_rfc3339};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "time_now",
        params: &[],
        returns: "string",
        doc: "The time of the evaluation, in UTC.",
        examples: &[("time_now()", "\"1970-01-01T00:00:00Z\"")],
        call: |call| Ok(print(&now(call))),
    },
    Function {
        name: "time_now_utc",
        params: &[],
        returns: "string",
        doc: "The time of the evaluation, in UTC.",
        examples: &[("time_now_utc()", "\"1970-01-01T00:00:00Z\"")],
        call: |call| Ok(print(&now(call))),
    },
    Function {
        name: "time_add",
        params: &[Param::STRING, Param::STRING],
        returns: "string",
        doc: "The time later by a duration.",
        examples: &[
            ("time_add('2030-01-01T00:00:00Z','90m')", "\"2030-01-01T01:30:00Z\""),
            ("time_add('2030-01-01T00:00:00.5Z','1ms')", "\"2030-01-01T00:00:00Z\""),
        ],
        call: |call| {
            let later = time(call, 0)?.add(duration(call, 1)?);
            later.map(|time| print(&time)).ok_or_else(|| call.error("the result is out of range"))
        },
    },
    Function {
        name: "time_diff",
        params: &[Param::STRING, Param::STRING],
        returns: "string",
        doc: "The duration from the first time to the second.",
        examples: &[
            ("time_diff('2030-01-01T00:00:00Z','2030-01-01T01:00:00Z')", "\"1h0m0s\""),
            ("time_diff('2030-01-01T00:00:01Z','2030-01-01T00:00:00.5Z')", "\"-500ms\""),
        ],
        call: |call| Ok(time(call, 1)?.since(&time(call, 0)?).to_string().into()),
    },
    Function {
        name: "time_since",
        params: &[Param::STRING, Param::STRING, Param::STRING],
        returns: "string",
        doc: "The duration from the second argument to the third, now if that is empty, both in the Go layout of the \
              first, RFC 3339 if that is empty.",
        examples: &[
            ("time_since('','2030-01-01T00:00:00Z','2030-01-02T00:00:00Z')", "\"24h0m0s\""),
            ("time_since('2006-01-02','2030-01-01','2030-01-03')", "\"48h0m0s\""),
            ("time_since('','1969-12-31T23:00:00Z','')", "\"1h0m0s\""),
        ],
        call: time_since,
    },
    Function {
        name: "time_before",
        params: &[Param::STRING, Param::STRING],
        returns: "boolean",
        doc: "Whether the first time is before the second.",
        examples: &[("time_before('2030-01-01T00:00:00Z','2030-01-01T00:00:01Z')", "true")],
        call: |call| Ok((time(call, 0)? < time(call, 1)?).into()),
    },
    Function {
        name: "time_after",
        params: &[Param::STRING, Param::STRING],
        returns: "boolean",
        doc: "Whether the first time is after the second.",
        examples: &[("time_after('2030-01-01T01:00:00+01:00','2030-01-01T00:00:00Z')", "false")],
        call: |call| Ok((time(call, 0)? > time(call, 1)?).into()),
    },
    Function {
        name: "time_between",
        params: &[Param::STRING, Param::STRING, Param::STRING],
        returns: "boolean",
        doc: "Whether the first time is after the second and before the third.",
        examples: &[
            ("time_between('2030-01-02T00:00:00Z','2030-01-01T00:00:00Z','2030-01-03T00:00:00Z')", "true"),
            ("time_between('2030-01-01T00:00:00Z','2030-01-01T00:00:00Z','2030-01-03T00:00:00Z')", "false"),
        ],
        call: |call| {
            let (moment, start, end) = (time(call, 0)?, time(call, 1)?, time(call, 2)?);
            Ok((start < moment && moment < end).into())
        },
    },
    Function {
        name: "time_parse",
        params: &[Param::STRING, Param::STRING],
        returns: "string",
        doc: "The time that the second text means in the Go layout of the first. With any whole number as layout, \
              even `2006`, the text is seconds since 1970.",
        examples: &[
            ("time_parse('2006-01','2030-05')", "\"2030-05-01T00:00:00Z\""),
            ("time_parse('1','0')", "\"1970-01-01T00:00:00Z\""),
            ("time_parse('2006','2030')", "\"1970-01-01T00:33:50Z\""),
        ],
        call: time_parse,
    },
    Function {
        name: "time_utc",
        params: &[Param::STRING],
        returns: "string",
        doc: "The same time in UTC.",
        examples: &[("time_utc('2030-01-01T01:00:00+01:00')", "\"2030-01-01T00:00:00Z\"")],
        call: |call| Ok(print(&time(call, 0)?.to_utc())),
    },
    Function {
        name: "time_to_cron",
        params: &[Param::STRING],
        returns: "string",
        doc: "The schedule of that minute: minute, hour, day, month and weekday, at the offset of the time.",
        examples: &[
            ("time_to_cron('2030-01-01T05:06:00Z')", "\"6 5 1 1 2\""),
            ("time_to_cron('2030-01-06T05:06:00+02:00')", "\"6 5 6 1 0\""),
        ],
        call: |call| {
            let at = time(call, 0)?.civil();
            Ok(format!("{} {} {} {} {}", at.minute, at.hour, at.day, at.month, at.weekday).into())
        },
    },
    Function {
        name: "time_truncate",
        params: &[Param::STRING, Param::STRING],
        returns: "string",
        doc: "The time rounded down to a multiple of a duration since the year 1 in UTC; unchanged if that is not \
              positive.",
        examples: &[
            ("time_truncate('2030-01-01T05:06:07Z','1h')", "\"2030-01-01T05:00:00Z\""),
            ("time_truncate('2030-01-01T05:06:07+02:30','1h')", "\"2030-01-01T04:30:00+02:30\""),
        ],
        call: |call| Ok(print(&time(call, 0)?.truncate(duration(call, 1)?))),
    },
];

fn now(call: &Call<'_>) -> Time {
    let now = call.runtime.now();
    // Before 1970 both parts of the timestamp are negative.
    let nanos = now.subsec_nanosecond();
    let borrow = i64::from(nanos < 0);
    Time::from_unix(now.as_second() - borrow, nanos.rem_euclid(1_000_000_000).unsigned_abs())
}

fn print(time: &Time) -> Value {
    format_rfc3339(time).into()
}

fn time(call: &Call<'_>, i: usize) -> Result<Time, EvalError> {
    parse_rfc3339(call.str(i)).map_err(|e| EvalError::Other(e.to_string()))
}

fn duration(call: &Call<'_>, i: usize) -> Result<Duration, EvalError> {
    let text = call.str(i);
    Duration::parse(text).map_err(|e| EvalError::Other(e.go_text(text)))
}

fn time_since(call: &Call<'_>) -> Result<Value, EvalError> {
    let read = |text: &str| match call.str(0) {
        "" => parse_rfc3339(text),
        layout => parse_layout(layout, text),
    };
    let read = |text: &str| read(text).map_err(|e| EvalError::Other(e.to_string()));
    let start = read(call.str(1))?;
    let end = match call.str(2) {
        "" => now(call),
        text => read(text)?,
    };
    Ok(end.since(&start).to_string().into())
}

fn time_parse(call: &Call<'_>) -> Result<Value, EvalError> {
    let (layout, text) = (call.str(0), call.str(1));
    let time = if layout.parse::<i64>().is_ok() {
        Time::from_unix(unix_seconds(text).map_err(EvalError::Other)?, 0)
    } else {
        parse_layout(layout, text).map_err(|e| EvalError::Other(e.to_string()))?
    };
    Ok(print(&time))
}

/// A number of seconds, refused in Go's words.
fn unix_seconds(text: &str) -> Result<i64, String> {
    text.parse().map_err(|e: ParseIntError| {
        let reason = match e.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {text:?}: {reason}")
    })
}
