//! Ranges in patterns and conditions: `a-b` (within, both ends included) and `a!-b` (outside).
//!
//! An end is `[+-]?digits[.digits][letters]`, so quantities, simple durations and signed numbers; no spaces
//! (validate-mutate-autogen.md 1.2). What the ends mean is up to [`compare`](super::compare).

/// A range, its ends as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeExpr<'a> {
    /// The lower end.
    pub low: &'a str,
    /// The upper end.
    pub high: &'a str,
    /// Whether what is outside is meant (`a!-b`).
    pub negated: bool,
}

/// Reads a range; `None` for every other text.
pub fn parse_range(text: &str) -> Option<RangeExpr<'_>> {
    let low_length = end_length(text)?;
    let (low, rest) = text.split_at_checked(low_length)?;
    let (negated, high) = match rest.strip_prefix("!-") {
        Some(high) => (true, high),
        None => (false, rest.strip_prefix('-')?),
    };
    (end_length(high)? == high.len()).then_some(RangeExpr { low, high, negated })
}

/// The length of the range end that `text` starts with.
fn end_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let run = |from: usize, accept: fn(&u8) -> bool| {
        bytes.get(from..).map_or(0, |rest| rest.iter().take_while(|b| accept(b)).count())
    };
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let digits = run(at, u8::is_ascii_digit);
    if digits == 0 {
        return None;
    }
    at += digits;
    if bytes.get(at) == Some(&b'.') {
        let decimals = run(at + 1, u8::is_ascii_digit);
        if decimals == 0 {
            return None;
        }
        at += 1 + decimals;
    }
    Some(at + run(at, u8::is_ascii_alphabetic))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_told_from_other_texts() {
        for (text, expected) in [
            ("1-5", Some(("1", "5", false))),
            ("-5--1", Some(("-5", "-1", false))),
            ("-10--8", Some(("-10", "-8", false))),
            ("+1-+2", Some(("+1", "+2", false))),
            ("1!-5", Some(("1", "5", true))),
            ("1Mi-1Gi", Some(("1Mi", "1Gi", false))),
            ("1m-1h", Some(("1m", "1h", false))),
            ("0.5-1.5k", Some(("0.5", "1.5k", false))),
            ("2021-10", Some(("2021", "10", false))),
            ("10-1", Some(("10", "1", false))),
            ("5.10.84-1", None),
            ("1 - 5", None),
            ("1- 5", None),
            ("1Mi - 1Gi", None),
            ("a-b", None),
            ("-5", None),
            ("5", None),
            ("1-", None),
            ("1.-2", None),
            ("1-5-9", None),
            ("1e-5", Some(("1e", "5", false))),
            ("1!5", None),
            ("", None),
        ] {
            let found = parse_range(text).map(|r| (r.low, r.high, r.negated));
            assert_eq!(found, expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn takes_any_text(text in "[-+!.0-9a-bé ]{0,16}") {
            let _ = parse_range(&text);
        }
    }
}
