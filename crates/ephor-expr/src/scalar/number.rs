//! Numbers as Go prints and reads them.
//!
//! The policy language shows the same float in several printings: `%v` (messages, list elements), upper-case
//! exponent (pattern texts), six decimals (`$( )` references and pattern comparison) and the full digits of a 32-bit
//! float (functions that take a string or number). JSON printing is `value::json`'s.

/// Go's `%v` of a float64: shortest digits, exponent form below 1e-4 and from 1e6 on: `3.5`, `100000`, `1e+06`,
/// `1.23456789e+08`, `1e-05`.
pub fn format_g(f: f64) -> String {
    match shortest(f) {
        Some(shortest) if !(-4..6).contains(&shortest.exponent) => shortest.print('e'),
        Some(_) => format!("{f}"),
        None => non_finite(f),
    }
}

/// The exponent form that scalar patterns see: `7.5E+00`, `5E+01`.
pub fn format_e(f: f64) -> String {
    shortest(f).map_or_else(|| non_finite(f), |shortest| shortest.print('E'))
}

/// Go's `%f`: exactly six decimals.
pub fn format_f6(f: f64) -> String {
    if f.is_finite() { format!("{f:.6}") } else { non_finite(f) }
}

/// A number argument where a function takes a string or number: rounded to a 32-bit float and written in full,
/// without exponent (`1000000`; 16777217 becomes `16777216`).
pub fn format_print_full(f: f64) -> String {
    let narrow = f as f32;
    if narrow.is_finite() { narrow.to_string() } else { non_finite(f64::from(narrow)) }
}

/// Go's `strconv.ParseFloat`: decimals, hexadecimals with a `p` exponent, `Inf`, `Infinity` and `NaN` in any case,
/// single underscores between digits. Out of range is no number; too small is zero.
pub fn parse_go_float(text: &str) -> Option<f64> {
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => (-1.0, text.get(1..)?),
        b'+' => (1.0, text.get(1..)?),
        _ => (1.0, text),
    };
    let magnitude = match *body.as_bytes().first()? {
        b'0'..=b'9' | b'.' => match body.get(..2) {
            Some("0x" | "0X") => parse_hex(body.get(2..)?)?,
            _ => parse_decimal(body)?,
        },
        b'i' | b'I' if body.eq_ignore_ascii_case("inf") || body.eq_ignore_ascii_case("infinity") => f64::INFINITY,
        // Go takes no sign here.
        b'n' | b'N' if text.eq_ignore_ascii_case("nan") => f64::NAN,
        _ => return None,
    };
    Some(sign * magnitude)
}

fn parse_decimal(body: &str) -> Option<f64> {
    if !body.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-' | b'_')) {
        return None;
    }
    let value: f64 = if body.contains('_') {
        without_underscores(body, |b| b.is_ascii_digit())?.parse().ok()?
    } else {
        body.parse().ok()?
    };
    value.is_finite().then_some(value)
}

/// The part after `0x`: hexadecimal mantissa, then a required binary exponent.
fn parse_hex(body: &str) -> Option<f64> {
    // The prefix counts as a digit for the underscore rule.
    let padded = format!("0{body}");
    let clean = without_underscores(&padded, |b| b.is_ascii_hexdigit())?;
    let (mantissa, exponent) = clean.split_once(['p', 'P'])?;
    let exponent: i64 = match exponent.parse::<i64>() {
        Ok(e) => e.clamp(-1_000_000, 1_000_000),
        Err(_) => return None,
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // The first digit is the one put in front; without others there is no number.
    if whole.len() + fraction.len() < 2 {
        return None;
    }
    let fraction_bits = i64::try_from(fraction.len()).ok()?.checked_mul(4)?;
    let (mut bits, mut dropped, mut sticky) = (0u128, 0i64, false);
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = digit.to_digit(16)?;
        if bits >> 120 == 0 {
            bits = bits << 4 | u128::from(digit);
        } else {
            dropped = dropped.checked_add(4)?;
            sticky |= digit != 0;
        }
    }
    bits |= u128::from(sticky);
    let value = scale_by_power_of_two(bits, exponent.checked_add(dropped)?.checked_sub(fraction_bits)?);
    value.is_finite().then_some(value)
}

/// `bits * 2^power`, rounded once.
fn scale_by_power_of_two(bits: u128, power: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    // Bring the number to 64 significant bits with a sticky lowest one, then round explicitly to the precision of the
    // result, because a subnormal has fewer bits than the cast keeps.
    let width = i64::from(128 - bits.leading_zeros());
    let top = power + width;
    if top > 1024 {
        return f64::INFINITY;
    }
    let keep = (top + 1074).clamp(0, 53);
    let drop = width - keep;
    if drop <= 0 {
        return bits as f64 * power_of_two(power);
    }
    if drop > 127 {
        return 0.0;
    }
    let (kept, rest, half) = (bits >> drop, bits & ((1 << drop) - 1), 1u128 << (drop - 1));
    let rounded = kept + u128::from(rest > half || rest == half && kept & 1 == 1);
    rounded as f64 * power_of_two(power + drop)
}

/// An exact power of two, or infinity or zero beyond the range of the type.
fn power_of_two(power: i64) -> f64 {
    match power {
        -1022..=1023 => f64::from_bits(((power + 1023) as u64) << 52),
        -1074..=-1023 => f64::from_bits(1u64 << (power + 1074)),
        1024.. => f64::INFINITY,
        _ => 0.0,
    }
}

/// Removes underscores; `None` when one is not between two digits.
fn without_underscores(text: &str, is_digit: fn(u8) -> bool) -> Option<String> {
    let bytes = text.as_bytes();
    let misplaced = |&(i, _): &(usize, &u8)| {
        let digit_at = |i: Option<usize>| i.and_then(|i| bytes.get(i)).is_some_and(|&b| is_digit(b));
        !(digit_at(i.checked_sub(1)) && digit_at(i.checked_add(1)))
    };
    if bytes.iter().enumerate().filter(|(_, b)| **b == b'_').any(|at| misplaced(&at)) {
        return None;
    }
    Some(text.replace('_', ""))
}

/// The shortest digits that read back as the same float: `-d.ddd` times ten to the exponent.
struct Shortest {
    mantissa: String,
    exponent: i32,
}

impl Shortest {
    /// Go's exponent form: a sign and at least two digits of exponent.
    fn print(&self, letter: char) -> String {
        let sign = if self.exponent < 0 { '-' } else { '+' };
        format!("{}{letter}{sign}{:02}", self.mantissa, self.exponent.unsigned_abs())
    }
}

fn shortest(f: f64) -> Option<Shortest> {
    let mut text = f.is_finite().then(|| format!("{f:e}"))?;
    let at = text.find('e')?;
    let exponent = text.get(at + 1..)?.parse().ok()?;
    text.truncate(at);
    Some(Shortest { mantissa: text, exponent })
}

fn non_finite(f: f64) -> String {
    if f.is_nan() {
        "NaN"
    } else if f > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prints_each_way_go_does() {
        for (f, g, e, f6, full) in [
            (0.0, "0", "0E+00", "0.000000", "0"),
            (5.0, "5", "5E+00", "5.000000", "5"),
            (50.0, "50", "5E+01", "50.000000", "50"),
            (7.5, "7.5", "7.5E+00", "7.500000", "7.5"),
            (-3.25, "-3.25", "-3.25E+00", "-3.250000", "-3.25"),
            (100_000.0, "100000", "1E+05", "100000.000000", "100000"),
            (1_000_000.0, "1e+06", "1E+06", "1000000.000000", "1000000"),
            (123_456_789.0, "1.23456789e+08", "1.23456789E+08", "123456789.000000", "123456790"),
            (16_777_217.0, "1.6777217e+07", "1.6777217E+07", "16777217.000000", "16777216"),
            (0.0001, "0.0001", "1E-04", "0.000100", "0.0001"),
            (0.00001, "1e-05", "1E-05", "0.000010", "0.00001"),
            (
                1e100,
                "1e+100",
                "1E+100",
                "10000000000000000159028911097599180468360808563945281389781327557747838772170381060813469985856815104.000000",
                "+Inf",
            ),
            (f64::NAN, "NaN", "NaN", "NaN", "NaN"),
            (f64::NEG_INFINITY, "-Inf", "-Inf", "-Inf", "-Inf"),
        ] {
            assert_eq!(format_g(f), g);
            assert_eq!(format_e(f), e);
            assert_eq!(format_f6(f), f6);
            assert_eq!(format_print_full(f), full);
        }
    }

    #[test]
    fn reads_what_go_reads() {
        for (text, value) in [
            ("1_000", Some(1000.0)),
            ("1e3", Some(1000.0)),
            ("+1.5", Some(1.5)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("-0", Some(-0.0)),
            ("Inf", Some(f64::INFINITY)),
            ("-infinity", Some(f64::NEG_INFINITY)),
            ("1e1_0", Some(1e10)),
            ("0x1p4", Some(16.0)),
            ("0x1.8p1", Some(3.0)),
            ("0x_1p0", Some(1.0)),
            ("0x.8p0", Some(0.5)),
            ("0x1p-1074", Some(5e-324)),
            ("0x1p-1075", Some(0.0)),
            ("0x1.8p-1074", Some(1e-323)),
            ("0x1p1023", Some(8.988_465_674_311_58e307)),
            ("1e-400", Some(0.0)),
            ("0x10", None),
            ("0xp1", None),
            ("0x.p1", None),
            ("0x1p", None),
            ("0x1p1024", None),
            ("1e400", None),
            ("1__0", None),
            ("_1", None),
            ("1_", None),
            ("1_.5", None),
            ("1._5", None),
            ("", None),
            ("-", None),
            (".", None),
            ("e3", None),
            ("1e", None),
            ("abc", None),
            (" 1", None),
            ("+nan", None),
            ("1h", None),
        ] {
            assert_eq!(parse_go_float(text), value, "{text}");
        }
        assert!(parse_go_float("nan").is_some_and(f64::is_nan));
    }

    proptest! {
        #[test]
        fn shortest_forms_read_back(f: f64) {
            prop_assume!(f.is_finite());
            prop_assert_eq!(parse_go_float(&format_g(f)), Some(f));
            prop_assert_eq!(parse_go_float(&format_e(f)), Some(f));
        }

        #[test]
        fn takes_any_text(text in "[-+.0-9a-fA-FxXpP_in]{0,24}") {
            let _ = parse_go_float(&text);
        }
    }
}
