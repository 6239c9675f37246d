//! Texts that measure something: the comparison shared by patterns and conditions.
//!
//! Two texts are compared as durations if both are, else as quantities if both are, else not at all
//! (validate-mutate-autogen.md 1.2 steps 1 and 2).

use std::cmp::Ordering;

use super::duration::Duration;
use super::quantity::Quantity;
use super::range::RangeExpr;

/// What a text measures, read once: a text can be both (`0`, `5m`) or neither.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measure {
    /// As a Go duration.
    pub duration: Option<Duration>,
    /// As a Kubernetes quantity.
    pub quantity: Option<Quantity>,
}

impl Measure {
    /// Reads a text; cheap for texts that measure nothing.
    pub fn parse(text: &str) -> Self {
        Measure { duration: Duration::parse(text).ok(), quantity: Quantity::parse(text).ok() }
    }

    /// Whether the text measures nothing.
    pub fn is_none(&self) -> bool {
        self.duration.is_none() && self.quantity.is_none()
    }

    /// The order, as durations if both are, else as quantities if both are.
    pub fn compare(&self, other: &Measure) -> Option<Ordering> {
        match (self.duration, other.duration) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => Some(self.quantity?.cmp(&other.quantity?)),
        }
    }
}

/// A range with its ends read.
#[derive(Debug, Clone, Copy)]
pub struct MeasureRange {
    low: Measure,
    high: Measure,
    negated: bool,
}

impl MeasureRange {
    /// Reads the ends.
    pub fn new(range: RangeExpr<'_>) -> Self {
        MeasureRange { low: Measure::parse(range.low), high: Measure::parse(range.high), negated: range.negated }
    }

    /// Whether `value` is inside (`a-b`, ends included) or outside (`a!-b`, ends excluded). What cannot be compared
    /// with an end is on neither side of it.
    pub fn holds(&self, value: &Measure) -> bool {
        let (to_low, to_high) = (value.compare(&self.low), value.compare(&self.high));
        if self.negated {
            to_low == Some(Ordering::Less) || to_high == Some(Ordering::Greater)
        } else {
            to_low.is_some_and(Ordering::is_ge) && to_high.is_some_and(Ordering::is_le)
        }
    }
}

/// [`Measure::compare`] of two texts.
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    Measure::parse(a).compare(&Measure::parse(b))
}

#[cfg(test)]
mod tests {
    use super::super::range::parse_range;
    use super::*;

    #[test]
    fn durations_come_before_quantities() {
        for (a, b, expected) in [
            ("1h", "60m", Some(Ordering::Equal)),
            ("1h", "3600s", Some(Ordering::Equal)),
            // As quantities 1m is a thousandth; both are durations, so it is a minute.
            ("1m", "59s", Some(Ordering::Greater)),
            ("0", "1m", Some(Ordering::Less)),
            // 5 is no duration.
            ("5", "1m", Some(Ordering::Greater)),
            ("1m", "0.001", Some(Ordering::Equal)),
            ("1Ki", "1024", Some(Ordering::Equal)),
            ("1Gi", "1000Mi", Some(Ordering::Greater)),
            ("1.10", "1.9", Some(Ordering::Less)),
            ("5", "5.000000", Some(Ordering::Equal)),
            ("1h", "3600", None),
            ("x", "1", None),
            ("1.3.0", "1.2.3", None),
            ("", "", None),
        ] {
            assert_eq!(compare(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn ranges_hold_by_kind() {
        for (range, value, expected) in [
            ("1-5", "1", true),
            ("1-5", "5", true),
            ("1-5", "6", false),
            ("1-5", "abc", false),
            ("1!-5", "0", true),
            ("1!-5", "6", true),
            ("1!-5", "1", false),
            ("1!-5", "5", false),
            ("1!-5", "abc", false),
            ("-5--1", "-3", true),
            ("1m-1h", "30m", true),
            ("1h-2h", "90m", true),
            ("1h-2h", "3700", false),
            ("1Mi-1Gi", "512Mi", true),
            ("0-1", "500m", true),
            ("10-1", "5", false),
            ("a-b", "a", false),
        ] {
            let holds = parse_range(range).is_some_and(|r| MeasureRange::new(r).holds(&Measure::parse(value)));
            assert_eq!(holds, expected, "{value} in {range}");
        }
    }
}
