//! What the arithmetic functions do with quantities (engine.md 5.2).

use super::super::number::format_g;
use super::value::{Format, NANO, Quantity, digits};

/// Why there is no remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModuloError {
    /// An operand is not a whole 64-bit number.
    #[error("Non-integer argument(s) passed for modulo")]
    NotWhole,
    /// The divisor is 0.
    #[error("Zero divisor passed")]
    ZeroDivisor,
}

impl Quantity {
    /// The sum, in the format of `self` (of `other` when `self` is 0); `None` beyond 38 digits.
    pub fn add(&self, other: &Quantity) -> Option<Quantity> {
        let format = if self.is_zero() { other.format() } else { self.format() };
        // A zero must not drag the other operand to its scale.
        if self.is_zero() || other.is_zero() {
            let operand = if self.is_zero() { other } else { self };
            return Some(operand.formatted(format));
        }
        let exponent = self.exponent().min(other.exponent());
        let sum = self.mantissa_at(exponent)?.checked_add(other.mantissa_at(exponent)?)?;
        Quantity::new(sum, exponent, format)
    }

    /// The difference, in the format of `self` (of `other` when `self` is 0); `None` beyond 38 digits.
    pub fn sub(&self, other: &Quantity) -> Option<Quantity> {
        self.add(&other.negated())
    }

    /// The product with a plain number, in the format of `self`. The number takes part as the quantity its Go text
    /// is, so it is rounded up to nanos, as is
    /// the product unless it prints with an exponent. `None` for a number that is not finite, or beyond 38 digits.
    pub fn mul_f64(&self, factor: f64) -> Option<Quantity> {
        let factor = quantity_of(factor)?;
        let (a, a_exponent) = self.reduced();
        let (b, b_exponent) = factor.reduced();
        let (product, exponent) = (a.checked_mul(b)?, a_exponent.checked_add(b_exponent)?);
        let finer = u32::try_from(NANO.checked_sub(exponent)?).unwrap_or(0);
        if finer == 0 || self.format() == Format::DecimalExponent {
            return Quantity::new(product, exponent, self.format());
        }
        // Upstream keeps the finer digits and then prints them without any suffix, so a thousand times too great.
        let unit = 10i128.checked_pow(finer)?;
        let away = if product % unit == 0 { 0 } else { product.signum() };
        Quantity::new(product / unit + away, NANO, self.format())
    }

    /// The quotient by a plain number, in the format of `self`, cut off towards zero at the finer decimal scale of
    /// the two as written: `1.5 / 2` is `700m`, `1500m / 2` is `750m`, `5G / 3000000` (written `3e+06`) is `0`.
    /// `None` when the number is 0 or not finite, or beyond 38 digits.
    pub fn div_f64(&self, divisor: f64) -> Option<Quantity> {
        let divisor = quantity_of(divisor)?;
        let exponent = self.exponent().min(divisor.exponent());
        // quotient = a * 10^(ea - eb - exponent) / b
        let shift = self.exponent().checked_sub(divisor.exponent())?.checked_sub(exponent)?;
        let quotient = divide_scaled(self.mantissa(), divisor.mantissa(), shift)?;
        Quantity::new(quotient, exponent, self.format())
    }

    /// The quotient of two quantities, as a float; `None` when the divisor is 0.
    pub fn ratio(&self, divisor: &Quantity) -> Option<f64> {
        (!divisor.is_zero()).then(|| self.as_f64() / divisor.as_f64())
    }

    /// The remainder of whole quantities, with the sign and format of `self`.
    pub fn modulo(&self, divisor: &Quantity) -> Result<Quantity, ModuloError> {
        let (a, b) = (self.as_i64(), divisor.as_i64());
        let (a, b) = a.zip(b).ok_or(ModuloError::NotWhole)?;
        if b == 0 {
            return Err(ModuloError::ZeroDivisor);
        }
        // The one overflow, of the least number by -1, has remainder 0.
        Ok(Quantity::from_i64(a.checked_rem(b).unwrap_or(0), self.format()))
    }

    /// Mantissa and exponent without trailing zeros.
    fn reduced(&self) -> (i128, i32) {
        let (mut mantissa, mut exponent) = (self.mantissa(), self.exponent());
        while mantissa != 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            exponent = exponent.saturating_add(1);
        }
        (mantissa, exponent)
    }
}

fn quantity_of(number: f64) -> Option<Quantity> {
    Quantity::parse(&format_g(number)).ok().filter(|_| number.is_finite())
}

/// `a * 10^shift / b`, cut off towards zero; `None` when `b` is 0 or the result does not fit.
fn divide_scaled(a: i128, b: i128, shift: i32) -> Option<i128> {
    if b == 0 {
        return None;
    }
    if a == 0 {
        return Some(0);
    }
    let Ok(mut places) = u32::try_from(shift) else {
        // A divisor too great to write exceeds any dividend.
        let divisor = 10i128.checked_pow(shift.unsigned_abs()).and_then(|unit| b.checked_mul(unit));
        return Some(divisor.map_or(0, |divisor| a / divisor));
    };
    // Long division, as many digits at a time as fit.
    let (mut quotient, mut rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    while places > 0 {
        if rest == 0 {
            return quotient.checked_mul(10i128.checked_pow(places)?);
        }
        let room = 38u32.saturating_sub(digits(rest.unsigned_abs())).clamp(1, places);
        let unit = 10i128.checked_pow(room)?;
        let wide = rest.checked_mul(unit)?;
        quotient = quotient.checked_mul(unit)?.checked_add(wide / b)?;
        rest = wide % b;
        places -= room;
    }
    Some(quotient)
}
