//! The canonical form: the fewest digits before the largest suffix that needs no decimal point.

use std::fmt;

use super::value::{Format, Quantity};

const DECIMAL: [(i32, &str); 10] =
    [(18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "u"), (-9, "n")];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl fmt::Display for Quantity {
    /// Binary quantities print as decimal ones while their magnitude is below 1024 or they are not whole.
    ///
    /// Where upstream runs out of suffixes and prints none (`1000E` as `1`), the largest one stays.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.format() == Format::BinarySi
            && let Some(whole) = self.whole().filter(|n| n.unsigned_abs() >= 1024)
        {
            return print_binary(whole, f);
        }
        let (mut mantissa, mut exponent) = (self.mantissa(), i64::from(self.exponent()));
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        let mut thousands = exponent.div_euclid(3) * 3;
        if self.format() != Format::DecimalExponent {
            // Outside the range of the letters zeros are written out.
            thousands = thousands.min(18);
        }
        let suffix = DECIMAL.iter().find(|(e, _)| i64::from(*e) == thousands);
        write!(f, "{mantissa}")?;
        for _ in thousands..exponent {
            f.write_str("0")?;
        }
        match suffix {
            Some((_, suffix)) if self.format() != Format::DecimalExponent => f.write_str(suffix),
            _ if thousands == 0 => Ok(()),
            _ => write!(f, "e{thousands}"),
        }
    }
}

fn print_binary(whole: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut mantissa = whole;
    for (i, suffix) in BINARY.iter().enumerate() {
        if mantissa % 1024 != 0 || i + 1 == BINARY.len() {
            return write!(f, "{mantissa}{suffix}");
        }
        mantissa /= 1024;
    }
    Ok(())
}
