//! Reading quantities.

use super::value::{Format, NANO, Quantity};

/// The largest binary quantity either way; greater ones are cut down to it.
const MOST_BINARY: i128 = i64::MAX as i128;

/// The largest exponent read, either way.
const MOST_EXPONENT: i32 = 1_000_000;

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Not of the form.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Form,
    /// A suffix that is none of the known ones, or an exponent beyond a million.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// More than 37 significant digits.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
}

impl Quantity {
    /// Reads a quantity. Whatever is finer than a nano is rounded away from zero, whatever binary is above 2^63-1 is
    /// cut down to that.
    ///
    /// As upstream, a part without digits counts as 0, so `Ki`, `m` and `.` are quantities. Other texts fail within
    /// their first bytes.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        let parts = split(text)?;
        let mut number = Digits::default();
        for digit in parts.whole.bytes().chain(parts.decimals.bytes()) {
            number.push(digit);
        }
        // No digit before the point counts as one.
        let whole_digits = parts.whole.len().max(1);
        let decimals = i32::try_from(parts.decimals.len()).map_err(|_| ParseQuantityError::Numeric)?;
        let magnitude = match parts.unit {
            Unit::Ten(exponent, format) => {
                let exponent = exponent.checked_sub(decimals).ok_or(ParseQuantityError::Numeric)?;
                // Upstream keeps the written scale of short numbers and brings all others to nanos.
                if whole_digits + parts.decimals.len() <= 18 && exponent >= NANO {
                    number.as_written(exponent, format)
                } else {
                    number.in_nanos(exponent, format)
                }
            }
            Unit::Two(power) => binary(number, whole_digits, decimals, power),
        };
        let magnitude = magnitude.ok_or(ParseQuantityError::Numeric)?;
        Ok(if parts.negative { magnitude.negated() } else { magnitude })
    }
}

fn binary(number: Digits, whole_digits: usize, decimals: i32, power: u32) -> Option<Quantity> {
    let most = Quantity::new(MOST_BINARY, 0, Format::BinarySi)?;
    let Some(number) = number.shifted(power) else {
        // Too long to multiply: beyond the maximum, unless the length is in the decimals.
        return (whole_digits > 19).then_some(most);
    };
    if decimals == 0 && whole_digits + power as usize * 3 / 10 < 15 {
        return number.as_written(0, Format::BinarySi);
    }
    let quantity = number.in_nanos(-decimals, Format::BinarySi)?;
    if quantity > most {
        Some(most)
    } else if !quantity.is_zero() && quantity < Quantity::from_i64(1, Format::BinarySi) {
        Some(quantity.formatted(Format::DecimalSi))
    } else {
        Some(quantity)
    }
}

/// A run of digits as a number; what does not fit is counted and remembered as "not exact".
#[derive(Default)]
struct Digits {
    mantissa: i128,
    dropped: i32,
    inexact: bool,
}

impl Digits {
    fn push(&mut self, digit: u8) {
        let digit = i128::from(digit.saturating_sub(b'0'));
        // Fewer digits than `Quantity` could hold, so that rounding up by one still fits.
        if self.dropped == 0 && self.mantissa < 10i128.pow(36) {
            self.mantissa = self.mantissa * 10 + digit;
        } else {
            self.dropped = self.dropped.saturating_add(1);
            self.inexact |= digit != 0;
        }
    }

    /// Times a power of two, if that is still exact.
    fn shifted(mut self, power: u32) -> Option<Self> {
        if self.dropped > 0 {
            return None;
        }
        self.mantissa = self.mantissa.checked_mul(1i128.checked_shl(power)?)?;
        Some(self)
    }

    fn as_written(self, exponent: i32, format: Format) -> Option<Quantity> {
        if self.inexact {
            return None;
        }
        Quantity::new(self.mantissa, exponent.checked_add(self.dropped)?, format)
    }

    /// In nanos, rounded up; numbers too great for that keep their scale.
    fn in_nanos(mut self, exponent: i32, format: Format) -> Option<Quantity> {
        let exponent = exponent.checked_add(self.dropped)?;
        if self.mantissa == 0 && !self.inexact {
            return Quantity::new(0, NANO, format);
        }
        if exponent > NANO {
            let written = self.as_written(exponent, format)?;
            let nanos = written.mantissa_at(NANO).and_then(|m| Quantity::new(m, NANO, format));
            return Some(nanos.unwrap_or(written));
        }
        let finer = u32::try_from(NANO.checked_sub(exponent)?).ok()?;
        match 10i128.checked_pow(finer) {
            Some(unit) => {
                self.inexact |= self.mantissa % unit != 0;
                self.mantissa /= unit;
            }
            None => {
                self.inexact = true;
                self.mantissa = 0;
            }
        }
        Quantity::new(self.mantissa + i128::from(self.inexact), NANO, format)
    }
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Unit {
    Ten(i32, Format),
    Two(u32),
}

/// A quantity taken apart, its digits still text.
struct Parts<'a> {
    negative: bool,
    /// Before the decimal point, without leading zeros.
    whole: &'a str,
    decimals: &'a str,
    unit: Unit,
}

fn split(text: &str) -> Result<Parts<'_>, ParseQuantityError> {
    let (negative, body) = match text.as_bytes().first() {
        None => return Err(ParseQuantityError::Form),
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        Some(_) => (false, text),
    };
    let (whole, rest) = digits(body.trim_start_matches('0'));
    let (decimals, suffix) = match rest.strip_prefix('.') {
        Some(after) => digits(after),
        None => ("", rest),
    };
    Ok(Parts { negative, whole, decimals, unit: unit(suffix)? })
}

/// Splits off leading ASCII digits.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn unit(suffix: &str) -> Result<Unit, ParseQuantityError> {
    let si = |exponent| Ok(Unit::Ten(exponent, Format::DecimalSi));
    match suffix {
        "" => si(0),
        "n" => si(-9),
        "u" => si(-6),
        "m" => si(-3),
        "k" => si(3),
        "M" => si(6),
        "G" => si(9),
        "T" => si(12),
        "P" => si(15),
        "E" => si(18),
        "Ki" => Ok(Unit::Two(10)),
        "Mi" => Ok(Unit::Two(20)),
        "Gi" => Ok(Unit::Two(30)),
        "Ti" => Ok(Unit::Two(40)),
        "Pi" => Ok(Unit::Two(50)),
        "Ei" => Ok(Unit::Two(60)),
        _ => exponent(suffix),
    }
}

/// A suffix like `e3` or `E-06`; or why it is none.
fn exponent(suffix: &str) -> Result<Unit, ParseQuantityError> {
    let letters_end = suffix.bytes().position(|b| !b"eEinumkKMGTP".contains(&b)).unwrap_or(suffix.len());
    let (letters, number) = suffix.split_at_checked(letters_end).unwrap_or((suffix, ""));
    let unsigned = number.strip_prefix(['+', '-']).unwrap_or(number);
    if !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseQuantityError::Form);
    }
    if letters != "e" && letters != "E" {
        return Err(ParseQuantityError::Suffix);
    }
    let exponent: i32 = number.parse().map_err(|_| ParseQuantityError::Suffix)?;
    if exponent.unsigned_abs() > MOST_EXPONENT.unsigned_abs() {
        return Err(ParseQuantityError::Suffix);
    }
    Ok(Unit::Ten(exponent, Format::DecimalExponent))
}
