//! The [`Quantity`] itself: an exact decimal, how it prints, its order.

use std::cmp::Ordering;

/// Every mantissa is smaller than ten to this.
const DIGITS: u32 = 38;

/// The smallest unit, as an exponent of ten: one nano.
pub(super) const NANO: i32 = -9;

/// How a quantity prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of 1000 by letter: `n u m k M G T P E`.
    DecimalSi,
    /// Powers of 1024 by letter: `Ki Mi Gi Ti Pi Ei`.
    BinarySi,
    /// An exponent: `2e3`.
    DecimalExponent,
}

/// An exact number with the format it was written in. Equality and order are of the number alone: `1` is `1000m`.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    /// The number is `mantissa * 10^exponent`, not reduced: the exponent is the written scale, which division needs.
    mantissa: i128,
    exponent: i32,
    format: Format,
}

impl Quantity {
    /// A quantity from its parts; `None` when it has more than 38 digits.
    pub(super) fn new(mantissa: i128, exponent: i32, format: Format) -> Option<Self> {
        (digits(mantissa.unsigned_abs()) <= DIGITS).then_some(Quantity { mantissa, exponent, format })
    }

    /// A whole number.
    pub fn from_i64(n: i64, format: Format) -> Self {
        Quantity { mantissa: i128::from(n), exponent: 0, format }
    }

    /// How it prints.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// The same number printed another way.
    #[must_use]
    pub(super) fn formatted(self, format: Format) -> Self {
        Quantity { format, ..self }
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        // The bound on digits keeps the mantissa away from the one number without a negative.
        Quantity { mantissa: self.mantissa.saturating_neg(), ..self }
    }

    pub(super) fn mantissa(&self) -> i128 {
        self.mantissa
    }

    pub(super) fn exponent(&self) -> i32 {
        self.exponent
    }

    /// The mantissa of the same number written with a smaller exponent.
    pub(super) fn mantissa_at(&self, exponent: i32) -> Option<i128> {
        let places = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        if self.mantissa == 0 {
            return Some(0);
        }
        self.mantissa.checked_mul(10i128.checked_pow(places)?)
    }

    /// The number as a whole 64-bit one, if it is.
    pub fn as_i64(&self) -> Option<i64> {
        i64::try_from(self.whole()?).ok()
    }

    /// The number as a whole one, if it is and fits.
    pub(super) fn whole(&self) -> Option<i128> {
        if self.exponent >= 0 {
            return self.mantissa_at(0);
        }
        let unit = 10i128.checked_pow(self.exponent.unsigned_abs());
        match unit {
            Some(unit) => (self.mantissa % unit == 0).then_some(self.mantissa / unit),
            None => (self.mantissa == 0).then_some(0),
        }
    }

    /// The nearest float, computed as upstream does: mantissa times power of ten (so `700m` is 0.7000000000000001).
    pub fn as_f64(&self) -> f64 {
        if self.exponent == 0 || self.mantissa == 0 {
            return self.mantissa as f64;
        }
        let power: f64 = format!("1e{}", self.exponent).parse().unwrap_or(f64::NAN);
        self.mantissa as f64 * power
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.mantissa.signum().cmp(&other.mantissa.signum());
        if signs.is_ne() || self.mantissa == 0 {
            return signs;
        }
        if self.exponent == other.exponent {
            return self.mantissa.cmp(&other.mantissa);
        }
        let magnitude = self.magnitude().cmp(&other.magnitude()).then_with(|| {
            // As many places before the decimal point: bring both to the smaller exponent. The digits stay within
            // the bound, because the one that grows ends up as long as the other.
            let exponent = self.exponent.min(other.exponent);
            let at = |q: &Quantity| q.mantissa_at(exponent).map(i128::unsigned_abs);
            at(self).cmp(&at(other))
        });
        if self.mantissa < 0 { magnitude.reverse() } else { magnitude }
    }
}

impl Quantity {
    /// The position of the leading digit, as an exponent of ten.
    fn magnitude(&self) -> i64 {
        i64::from(digits(self.mantissa.unsigned_abs())) + i64::from(self.exponent)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

/// The number of decimal digits; 0 for 0.
pub(super) fn digits(n: u128) -> u32 {
    n.checked_ilog10().map_or(0, |log| log + 1)
}
