//! Durations as Go's `time.Duration` reads and prints them: `1h30m`, `1.5s`, `-1m0s`, bare `0`; no days.

use std::fmt;
use std::fmt::Write as _;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const SECOND_SIGNED: i64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The largest count of nanoseconds, reached only by the negative bound.
const MOST: u64 = 1 << 63;

/// A signed span in nanoseconds (about ±292 years).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(pub i64);

/// Why a text is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    /// Not of the form, or too large.
    #[error("invalid duration")]
    Invalid,
    /// A number without unit.
    #[error("missing unit in duration")]
    MissingUnit,
    /// A unit other than `ns us µs ms s m h`.
    #[error("unknown unit in duration")]
    UnknownUnit,
}

impl ParseDurationError {
    /// The text of Go's error for `input`, for example `time: unknown unit "d" in duration "1d"`.
    pub fn go_text(self, input: &str) -> String {
        match self {
            ParseDurationError::Invalid => format!("time: invalid duration {}", quote(input)),
            ParseDurationError::MissingUnit => format!("time: missing unit in duration {}", quote(input)),
            ParseDurationError::UnknownUnit => {
                let unit = quote(first_unknown_unit(input));
                format!("time: unknown unit {unit} in duration {}", quote(input))
            }
        }
    }
}

/// Quotes a text as the errors of Go's `time` package do: other bytes than printable ASCII as `\x..`.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7F => out.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

fn first_unknown_unit(input: &str) -> &str {
    let unsigned = input.strip_prefix(['+', '-']).unwrap_or(input);
    let mut parts = unsigned.split(|c: char| c.is_ascii_digit() || c == '.');
    parts.find(|part| !part.is_empty() && unit(part).is_none()).unwrap_or_default()
}

fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        "us" | "µs" | "μs" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    })
}

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration(0);

    /// Reads `[+-]?(digits[.digits]unit)+` or a bare `0`; fails fast on anything that does not begin like a number.
    pub fn parse(text: &str) -> Result<Self, ParseDurationError> {
        let (negative, body) = match text.as_bytes().first() {
            Some(b'-') => (true, text.get(1..).unwrap_or_default()),
            Some(b'+') => (false, text.get(1..).unwrap_or_default()),
            _ => (false, text),
        };
        if body == "0" {
            return Ok(Duration::ZERO);
        }
        if body.is_empty() {
            return Err(ParseDurationError::Invalid);
        }
        let mut total: u64 = 0;
        let mut rest = body;
        while !rest.is_empty() {
            let (part, after) = leading_part(rest)?;
            total = total.checked_add(part).filter(|&t| t <= MOST).ok_or(ParseDurationError::Invalid)?;
            rest = after;
        }
        let nanos = if negative { 0i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
        nanos.map(Duration).ok_or(ParseDurationError::Invalid)
    }

    /// A number of seconds, the part below a nanosecond cut off; bounded to the range of the type, NaN is zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Duration((seconds * SECOND as f64) as i64)
    }

    /// A number of whole seconds, bounded to the range of the type.
    pub fn from_secs(seconds: i64) -> Self {
        Duration(seconds.saturating_mul(SECOND_SIGNED))
    }

    /// The length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        let (whole, rest) = (self.0 / SECOND_SIGNED, self.0 % SECOND_SIGNED);
        whole as f64 + rest as f64 / SECOND as f64
    }
}

/// Splits `1.5h…` into its nanoseconds and what follows.
fn leading_part(text: &str) -> Result<(u64, &str), ParseDurationError> {
    let (whole, after) = digits(text);
    let (fraction, after) = match after.strip_prefix('.') {
        Some(tail) => digits(tail),
        None => ("", after),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(ParseDurationError::Invalid);
    }
    let count = if whole.is_empty() { Ok(0) } else { whole.parse::<u64>() };
    let count = count.ok().filter(|&n| n <= MOST).ok_or(ParseDurationError::Invalid)?;
    let end = after.bytes().position(|b| b == b'.' || b.is_ascii_digit()).unwrap_or(after.len());
    let (name, after) = after.split_at_checked(end).unwrap_or((after, ""));
    if name.is_empty() {
        return Err(ParseDurationError::MissingUnit);
    }
    let unit = unit(name).ok_or(ParseDurationError::UnknownUnit)?;
    let nanos = count.checked_mul(unit).filter(|&n| n <= MOST).ok_or(ParseDurationError::Invalid)?;
    let nanos = nanos.checked_add(fraction_nanos(fraction, unit)).filter(|&n| n <= MOST);
    Ok((nanos.ok_or(ParseDurationError::Invalid)?, after))
}

/// `0.fraction * unit`, cut off below a nanosecond.
fn fraction_nanos(fraction: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0u64, 1.0f64);
    for digit in fraction.bytes().map(|b| u64::from(b - b'0')) {
        // Digits that no longer fit 63 bits are beyond any precision that matters.
        let Some(next) = value.checked_mul(10).and_then(|v| v.checked_add(digit)).filter(|&v| v < MOST) else { break };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

/// Splits off leading ASCII digits.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

impl fmt::Display for Duration {
    /// As Go prints it: `0s`, `1.5s`, `1h0m1s`, `-1m0s`, `250µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_char('-')?;
        }
        match nanos {
            0..MICROSECOND => write!(f, "{nanos}ns"),
            MICROSECOND..MILLISECOND => write_decimal(f, nanos, MICROSECOND, "µs"),
            MILLISECOND..SECOND => write_decimal(f, nanos, MILLISECOND, "ms"),
            _ => {
                let (hours, minutes) = (nanos / HOUR, nanos % HOUR / MINUTE);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if nanos >= MINUTE {
                    write!(f, "{minutes}m")?;
                }
                write_decimal(f, nanos % MINUTE, SECOND, "s")
            }
        }
    }
}

/// Writes `nanos / unit` exactly, without trailing zeros.
fn write_decimal(f: &mut fmt::Formatter<'_>, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let mut rest = nanos % unit;
    if rest > 0 {
        f.write_char('.')?;
        let mut place = unit / 10;
        while rest > 0 {
            write!(f, "{}", rest / place)?;
            rest %= place;
            place /= 10;
        }
    }
    f.write_str(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("0s", Some(0)),
            ("1h", Some(3_600_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("60m", Some(3_600_000_000_000)),
            ("-1.5h", Some(-5_400_000_000_000)),
            ("+5s", Some(5_000_000_000)),
            (".5s", Some(500_000_000)),
            ("5.s", Some(5_000_000_000)),
            ("1.s1.s", Some(2_000_000_000)),
            ("10ms", Some(10_000_000)),
            ("10us", Some(10_000)),
            ("10µs", Some(10_000)),
            ("10μs", Some(10_000)),
            ("39h9m14.425s", Some(140_954_425_000_000)),
            ("0.3333333333333333333h", Some(1_200_000_000_000)),
            ("9223372036854775807ns", Some(i64::MAX)),
            ("-9223372036854775808ns", Some(i64::MIN)),
            ("9223372036854775808ns", None),
            ("9223372036.854775808s", None),
            ("3000000h", None),
            ("", None),
            ("-", None),
            ("s", None),
            (".", None),
            (".s", None),
            ("3", None),
            ("1d", None),
            ("1h 2m", None),
            ("1s-1s", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(Duration::parse(text).ok().map(|d| d.0), nanos, "{text}");
        }
    }

    #[test]
    fn names_what_is_wrong_as_go_does() {
        for (text, message) in [
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("1h2x", "time: unknown unit \"x\" in duration \"1h2x\""),
            ("3", "time: missing unit in duration \"3\""),
            ("x", "time: invalid duration \"x\""),
        ] {
            assert_eq!(Duration::parse(text).map_err(|e| e.go_text(text)), Err(message.to_owned()));
        }
    }

    #[test]
    fn prints_as_go() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (1_500_000_000, "1.5s"),
            (3_333_333_333, "3.333333333s"),
            (-60_000_000_000, "-1m0s"),
            (3_601_000_000_000, "1h0m1s"),
            (90_000_000_000, "1m30s"),
            (245_000_000_000, "4m5s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (-500_000_000, "-500ms"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(Duration(nanos).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(nanos: i64) {
            let d = Duration(nanos);
            prop_assert_eq!(Duration::parse(&d.to_string()), Ok(d));
        }

        #[test]
        fn takes_any_text(text in "[-+.0-9hmsnuµd]{0,30}") {
            if let Err(e) = Duration::parse(&text) {
                prop_assert!(e.go_text(&text).starts_with("time: "));
            }
        }
    }
}
