//! The elements of a Go layout: the reference time `Mon Jan 2 15:04:05 -0700 MST 2006` written the way texts are.

/// One element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    /// `January`
    LongMonth,
    /// `Jan`
    Month,
    /// `1`, or `01` when padded.
    NumericMonth { padded: bool },
    /// `Monday`
    LongWeekday,
    /// `Mon`
    Weekday,
    /// `2`, `02` or `_2`.
    Day(Padding),
    /// `002` or `__2`.
    DayOfYear { zeros: bool },
    /// `15`
    Hour,
    /// `3` or `03`.
    Hour12 { padded: bool },
    /// `4` or `04`.
    Minute { padded: bool },
    /// `5` or `05`.
    Second { padded: bool },
    /// `2006`
    LongYear,
    /// `06`
    Year,
    /// `PM` or `pm`.
    HalfDay { upper: bool },
    /// `MST`
    ZoneName,
    /// `-0700` and the like.
    Offset(Offset),
    /// `.000`: exactly so many digits.
    Fraction(usize),
    /// `.999`: any digits or none.
    OptionalFraction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    None,
    Zero,
    Space,
}

/// The form of a numeric offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offset {
    /// Whether `Z` stands for UTC.
    pub(super) z: bool,
    pub(super) colons: bool,
    /// How many numbers there are: hours, minutes, seconds.
    pub(super) parts: u8,
}

/// Splits a layout at its first element: what comes before it, the element and its text, what comes after.
pub(super) fn next_element(layout: &str) -> Option<(&str, Element, &str, &str)> {
    layout.char_indices().find_map(|(at, _)| {
        let (before, rest) = layout.split_at_checked(at)?;
        let (element, length) = element_at(rest)?;
        let (text, after) = rest.split_at_checked(length)?;
        Some((before, element, text, after))
    })
}

/// The element that `text` starts with and its length.
fn element_at(text: &str) -> Option<(Element, usize)> {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied();
    // `January` is a month, `Januar` is not: a short name does not end in the middle of a word.
    let ends_word = |length: usize| !at(length).is_some_and(|b| b.is_ascii_lowercase());
    let starts = |prefix: &str| text.starts_with(prefix);
    let found = match at(0)? {
        b'J' if starts("January") => (Element::LongMonth, 7),
        b'J' if starts("Jan") && ends_word(3) => (Element::Month, 3),
        b'M' if starts("Monday") => (Element::LongWeekday, 6),
        b'M' if starts("Mon") && ends_word(3) => (Element::Weekday, 3),
        b'M' if starts("MST") => (Element::ZoneName, 3),
        b'0' => match at(1)? {
            b'1' => (Element::NumericMonth { padded: true }, 2),
            b'2' => (Element::Day(Padding::Zero), 2),
            b'3' => (Element::Hour12 { padded: true }, 2),
            b'4' => (Element::Minute { padded: true }, 2),
            b'5' => (Element::Second { padded: true }, 2),
            b'6' => (Element::Year, 2),
            b'0' if starts("002") => (Element::DayOfYear { zeros: true }, 3),
            _ => return None,
        },
        b'1' if starts("15") => (Element::Hour, 2),
        b'1' => (Element::NumericMonth { padded: false }, 1),
        b'2' if starts("2006") => (Element::LongYear, 4),
        b'2' => (Element::Day(Padding::None), 1),
        // In `_2006` the underscore is itself.
        b'_' if starts("_2") && !starts("_2006") => (Element::Day(Padding::Space), 2),
        b'_' if starts("__2") => (Element::DayOfYear { zeros: false }, 3),
        b'3' => (Element::Hour12 { padded: false }, 1),
        b'4' => (Element::Minute { padded: false }, 1),
        b'5' => (Element::Second { padded: false }, 1),
        b'P' if starts("PM") => (Element::HalfDay { upper: true }, 2),
        b'p' if starts("pm") => (Element::HalfDay { upper: false }, 2),
        sign @ (b'-' | b'Z') => {
            let (colons, parts, length) = match text.get(1..).unwrap_or_default() {
                rest if rest.starts_with("070000") => (false, 3, 7),
                rest if rest.starts_with("07:00:00") => (true, 3, 9),
                rest if rest.starts_with("0700") => (false, 2, 5),
                rest if rest.starts_with("07:00") => (true, 2, 6),
                rest if rest.starts_with("07") => (false, 1, 3),
                _ => return None,
            };
            (Element::Offset(Offset { z: sign == b'Z', colons, parts }), length)
        }
        b'.' | b',' => {
            let digit = at(1).filter(|b| matches!(b, b'0' | b'9'))?;
            let digits = bytes.iter().skip(1).take_while(|&&b| b == digit).count();
            if at(1 + digits).is_some_and(|b| b.is_ascii_digit()) {
                return None;
            }
            let element = if digit == b'0' { Element::Fraction(digits) } else { Element::OptionalFraction };
            (element, 1 + digits)
        }
        _ => return None,
    };
    Some(found)
}
