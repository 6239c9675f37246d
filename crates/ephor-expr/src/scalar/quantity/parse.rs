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
    /// As upstream, no digits at all count as 0 where the suffix is not beyond what a short number can have, so `Ki`,
    /// `m` and `.` are quantities and `Pi` is not. Other texts fail within their first bytes.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        let parts = split(text)?;
        let whole = Digits::default().and(parts.whole);
        let number = whole.and(parts.decimals);
        // No digit before the point counts as one.
        let whole_digits = parts.whole.len().max(1);
        let decimals = i32::try_from(parts.decimals.len()).map_err(|_| ParseQuantityError::Numeric)?;
        let magnitude = match parts.unit {
            Unit::Ten(exponent, format) => {
                let exponent = exponent.checked_sub(decimals).ok_or(ParseQuantityError::Numeric)?;
                // Upstream keeps the written scale of short numbers and brings all others to nanos.
                if whole_digits + parts.decimals.len() <= 18 && exponent >= NANO {
                    number.written(exponent, format)
                } else if parts.no_digits {
                    None
                } else {
                    number.in_nanos(exponent, format)
                }
            }
            Unit::Two(power) if decimals == 0 && whole_digits + power as usize * 3 / 10 < 15 => {
                number.shifted(power).and_then(|number| number.written(0, Format::BinarySi))
            }
            Unit::Two(_) if parts.no_digits => None,
            Unit::Two(power) => long_binary(whole, number, decimals, power),
        };
        let magnitude = magnitude.ok_or(ParseQuantityError::Numeric)?;
        Ok(if parts.negative { magnitude.negated() } else { magnitude })
    }
}

/// A binary quantity that is not short: in nanos, and bounded.
fn long_binary(whole: Digits, number: Digits, decimals: i32, power: u32) -> Option<Quantity> {
    let most = Quantity::new(MOST_BINARY, 0, Format::BinarySi)?;
    let quantity = number.shifted(power).and_then(|number| number.in_nanos(-decimals, Format::BinarySi));
    let Some(quantity) = quantity else {
        // Too many digits: before the decimal point, or behind it?
        let too_great = whole.shifted(power).is_none_or(|whole| whole.mantissa > MOST_BINARY);
        return too_great.then_some(most);
    };
    if quantity > most {
        Some(most)
    } else if !quantity.is_zero() && quantity < Quantity::from_i64(1, Format::BinarySi) {
        Some(quantity.formatted(Format::DecimalSi))
    } else {
        Some(quantity)
    }
}

/// A run of digits as a number; what does not fit is counted and remembered as "not exact".
#[derive(Clone, Copy, Default)]
struct Digits {
    mantissa: i128,
    dropped: i32,
    inexact: bool,
}

impl Digits {
    /// From here on no digit is added: one fewer than [`Quantity`] holds, so that rounding up still fits.
    const FULL: i128 = 10i128.pow(36);

    /// The number with more digits behind.
    fn and(mut self, digits: &str) -> Self {
        for digit in digits.bytes().map(|b| i128::from(b.saturating_sub(b'0'))) {
            if self.dropped == 0 && self.mantissa < Self::FULL {
                self.mantissa = self.mantissa * 10 + digit;
            } else {
                self.dropped = self.dropped.saturating_add(1);
                self.inexact |= digit != 0;
            }
        }
        self
    }

    /// Times a power of two, if that is still exact.
    fn shifted(mut self, power: u32) -> Option<Self> {
        if self.dropped > 0 {
            return None;
        }
        self.mantissa = self.mantissa.checked_mul(1i128.checked_shl(power)?)?;
        Some(self)
    }

    fn written(self, exponent: i32, format: Format) -> Option<Quantity> {
        if self.inexact {
            return None;
        }
        Quantity::new(self.mantissa, exponent.checked_add(self.dropped)?, format)
    }

    /// In nanos, rounded up; numbers too great for that keep their scale.
    fn in_nanos(self, exponent: i32, format: Format) -> Option<Quantity> {
        let exponent = exponent.checked_add(self.dropped)?;
        if self.mantissa == 0 && !self.inexact {
            return Quantity::new(0, NANO, format);
        }
        if exponent > NANO {
            let written = self.written(exponent, format)?;
            let nanos = written.mantissa_at(NANO).and_then(|m| Quantity::new(m, NANO, format));
            return Some(nanos.unwrap_or(written));
        }
        let finer = u32::try_from(NANO.checked_sub(exponent)?).ok()?;
        // A unit beyond the type is greater than any mantissa.
        let unit = 10i128.checked_pow(finer).unwrap_or(i128::MAX);
        let up = self.inexact || self.mantissa % unit != 0;
        Quantity::new(self.mantissa / unit + i128::from(up), NANO, format)
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
    no_digits: bool,
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
    let no_digits = whole.is_empty() && decimals.is_empty() && !body.starts_with('0');
    Ok(Parts { negative, whole, decimals, no_digits, unit: unit(suffix)? })
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
