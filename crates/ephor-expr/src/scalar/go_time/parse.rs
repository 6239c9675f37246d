//! Reading a text by a layout.

use super::super::duration::quote;
use super::layout::{Element, Offset, Padding, next_element};
use super::time::{Civil, Time, days_in_month, is_leap_year};

const RFC3339: &str = "2006-01-02T15:04:05Z07:00";

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Why a text is no time of the layout; prints as Go's error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseTimeError {
    /// The text does not go on as the layout does.
    #[error("parsing time {} as {}: cannot parse {} as {}", quote(.text), quote(.layout), quote(.rest), quote(.element))]
    Mismatch {
        /// The whole text.
        text: String,
        /// The whole layout.
        layout: String,
        /// From where on the text does not fit.
        rest: String,
        /// The part of the layout expected there.
        element: String,
    },
    /// A number is too large for its place, or the date does not exist.
    #[error("parsing time {}: {what} out of range", quote(.text))]
    OutOfRange {
        /// The whole text.
        text: String,
        /// What: `month`, `day`, `hour` and so on.
        what: &'static str,
    },
    /// The layout ends before the text.
    #[error("parsing time {}: extra text: {}", quote(.text), quote(.extra))]
    ExtraText {
        /// The whole text.
        text: String,
        /// What is too much.
        extra: String,
    },
    /// The day of the year is another one than month and day say.
    #[error("parsing time {}: day-of-year does not match {what}", quote(.text))]
    DayOfYear {
        /// The whole text.
        text: String,
        /// `month` or `day`.
        what: &'static str,
    },
}

/// Reads a time by a Go layout. What the layout does not tell is that of 0000-01-01T00:00:00Z.
///
/// As in Go a fraction may follow the seconds unasked, hours may have one digit, names may be in any case, and
/// weekdays are not checked. A zone abbreviation means UTC; `GMT+3` means UTC shown three hours later.
pub fn parse_layout(layout: &str, text: &str) -> Result<Time, ParseTimeError> {
    Parser { layout, text, rest: text }.parse()
}

/// Reads RFC 3339 as Go does: `parse_layout` with `2006-01-02T15:04:05Z07:00`.
pub fn parse_rfc3339(text: &str) -> Result<Time, ParseTimeError> {
    parse_layout(RFC3339, text)
}

/// What is wrong with one element.
enum Bad {
    Form,
    Range(&'static str),
}

/// What the elements said.
#[derive(Default)]
struct Fields {
    year: i64,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    nanos: u32,
    afternoon: Option<bool>,
    offset: Option<i32>,
    /// What a zone abbreviation says; see [`Parser::assemble`].
    named_offset: i32,
}

struct Parser<'a> {
    layout: &'a str,
    text: &'a str,
    rest: &'a str,
}

impl Parser<'_> {
    fn parse(mut self) -> Result<Time, ParseTimeError> {
        let mut fields = Fields::default();
        let mut layout = self.layout;
        while let Some((literal, element, element_text, after)) = next_element(layout) {
            self.literal(literal)?;
            layout = after;
            let start = self.rest;
            if let Err(bad) = self.element(element, &mut fields, after) {
                return Err(match bad {
                    Bad::Form => self.mismatch(start, element_text),
                    Bad::Range(what) => self.out_of_range(what),
                });
            }
        }
        self.literal(layout)?;
        if !self.rest.is_empty() {
            return Err(ParseTimeError::ExtraText { text: self.text.to_owned(), extra: self.rest.to_owned() });
        }
        self.assemble(&fields)
    }

    fn mismatch(&self, rest: &str, element: &str) -> ParseTimeError {
        ParseTimeError::Mismatch {
            text: self.text.to_owned(),
            layout: self.layout.to_owned(),
            rest: rest.to_owned(),
            element: element.to_owned(),
        }
    }

    fn out_of_range(&self, what: &'static str) -> ParseTimeError {
        ParseTimeError::OutOfRange { text: self.text.to_owned(), what }
    }

    /// Skips what the layout has between elements; a run of spaces stands for any run of them.
    fn literal(&mut self, literal: &str) -> Result<(), ParseTimeError> {
        let whole = literal;
        let mut wanted = literal;
        while let Some(c) = wanted.chars().next() {
            if c == ' ' {
                if !self.rest.is_empty() && !self.rest.starts_with(' ') {
                    return Err(self.mismatch(self.rest, whole));
                }
                wanted = wanted.trim_start_matches(' ');
                self.rest = self.rest.trim_start_matches(' ');
            } else {
                wanted = wanted.get(c.len_utf8()..).unwrap_or_default();
                self.rest = self.rest.strip_prefix(c).ok_or_else(|| self.mismatch(self.rest, whole))?;
            }
        }
        Ok(())
    }

    fn element(&mut self, element: Element, fields: &mut Fields, layout_after: &str) -> Result<(), Bad> {
        match element {
            Element::LongYear => fields.year = i64::from(self.fixed(4)?),
            Element::Year => {
                let year = i64::from(self.fixed(2)?);
                fields.year = if year >= 69 { year + 1900 } else { year + 2000 };
            }
            Element::LongMonth => fields.month = Some(self.name(&MONTHS, usize::MAX)?),
            Element::Month => fields.month = Some(self.name(&MONTHS, 3)?),
            Element::NumericMonth { padded } => {
                let month = self.number(padded)?;
                fields.month = Some(month);
                if !(1..=12).contains(&month) {
                    return Err(Bad::Range("month"));
                }
            }
            Element::LongWeekday => {
                self.name(&WEEKDAYS, usize::MAX)?;
            }
            Element::Weekday => {
                self.name(&WEEKDAYS, 3)?;
            }
            Element::Day(padding) => {
                if padding == Padding::Space {
                    self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                }
                // Whether the month has that day is known at the end.
                fields.day = Some(self.number(padding == Padding::Zero)?);
            }
            Element::DayOfYear { zeros } => fields.day_of_year = Some(self.day_of_year(zeros)?),
            Element::Hour => fields.hour = bounded(self.number(false)?, 24, "hour")?,
            Element::Hour12 { padded } => fields.hour = bounded(self.number(padded)?, 13, "hour")?,
            Element::Minute { padded } => fields.minute = bounded(self.number(padded)?, 60, "minute")?,
            Element::Second { padded } => {
                fields.second = bounded(self.number(padded)?, 60, "second")?;
                let fraction_follows = matches!(
                    next_element(layout_after),
                    Some((_, Element::Fraction(_) | Element::OptionalFraction, _, _))
                );
                if !fraction_follows && let Some(nanos) = self.fraction() {
                    fields.nanos = nanos;
                }
            }
            Element::HalfDay { upper } => {
                let (am, pm) = if upper { ("AM", "PM") } else { ("am", "pm") };
                let (afternoon, rest) = match (self.rest.strip_prefix(am), self.rest.strip_prefix(pm)) {
                    (Some(rest), _) => (false, rest),
                    (_, Some(rest)) => (true, rest),
                    _ => return Err(Bad::Form),
                };
                fields.afternoon = Some(afternoon);
                self.rest = rest;
            }
            Element::ZoneName => fields.named_offset = self.zone_name()?,
            Element::Offset(form) => fields.offset = Some(self.offset(form)?),
            Element::Fraction(digits) => {
                let after_sign = self.rest.strip_prefix(['.', ',']).ok_or(Bad::Form)?;
                let given = after_sign.get(..digits).ok_or(Bad::Form)?;
                fields.nanos = nanos(given).ok_or(Bad::Form)?;
                self.rest = after_sign.get(digits..).unwrap_or_default();
            }
            Element::OptionalFraction => {
                if let Some(nanos) = self.fraction() {
                    fields.nanos = nanos;
                }
            }
        }
        Ok(())
    }

    /// A fraction of any length, if there is one.
    fn fraction(&mut self) -> Option<u32> {
        let after_sign = self.rest.strip_prefix(['.', ','])?;
        let length = after_sign.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = after_sign.split_at_checked(length).filter(|(digits, _)| !digits.is_empty())?;
        self.rest = rest;
        nanos(digits)
    }

    /// Exactly so many digits.
    fn fixed(&mut self, digits: usize) -> Result<u32, Bad> {
        let (text, rest) = self.rest.split_at_checked(digits).ok_or(Bad::Form)?;
        let number = decimal(text).ok_or(Bad::Form)?;
        self.rest = rest;
        Ok(number)
    }

    /// One or two digits, or exactly two.
    fn number(&mut self, padded: bool) -> Result<u32, Bad> {
        let two = self.rest.bytes().take(2).filter(u8::is_ascii_digit).count() == 2;
        if two || padded { self.fixed(2) } else { self.fixed(1) }
    }

    /// Up to three digits, or exactly three; those that a space pads may be fewer.
    fn day_of_year(&mut self, zeros: bool) -> Result<u32, Bad> {
        if !zeros {
            for _ in 0..2 {
                self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
            }
        }
        let length = self.rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
        if length == 0 || zeros && length < 3 {
            return Err(Bad::Form);
        }
        self.fixed(length)
    }

    /// A name in any case, cut to a length; its position from 1.
    fn name(&mut self, names: &[&str], length: usize) -> Result<u32, Bad> {
        for (number, name) in (1u32..).zip(names) {
            let name = name.get(..length).unwrap_or(name);
            if let Some((start, rest)) = self.rest.split_at_checked(name.len())
                && start.eq_ignore_ascii_case(name)
            {
                self.rest = rest;
                return Ok(number);
            }
        }
        Err(Bad::Form)
    }

    fn offset(&mut self, form: Offset) -> Result<i32, Bad> {
        if form.z
            && let Some(rest) = self.rest.strip_prefix('Z')
        {
            self.rest = rest;
            return Ok(0);
        }
        let negative = self.rest.starts_with('-');
        self.rest = self.rest.strip_prefix(['+', '-']).ok_or(Bad::Form)?;
        // Some write offsets of 24 hours or 60 minutes.
        let hours = bounded(self.fixed(2)?, 25, "time zone offset hour")?;
        let mut part = |wanted: bool| {
            if !wanted {
                return Ok(0);
            }
            if form.colons {
                self.rest = self.rest.strip_prefix(':').ok_or(Bad::Form)?;
            }
            self.fixed(2)
        };
        let minutes = bounded(part(form.parts > 1)?, 61, "time zone offset minute")?;
        let seconds = bounded(part(form.parts > 2)?, 61, "time zone offset second")?;
        let offset = i32::try_from(hours * 3600 + minutes * 60 + seconds).map_err(|_| Bad::Form)?;
        Ok(if negative { -offset } else { offset })
    }

    /// A zone abbreviation; its offset, as far as it is known without a database.
    fn zone_name(&mut self) -> Result<i32, Bad> {
        if let Some(rest) = self.rest.strip_prefix("UTC") {
            self.rest = rest;
            return Ok(0);
        }
        let length = zone_name_length(self.rest).ok_or(Bad::Form)?;
        let (name, rest) = self.rest.split_at_checked(length).ok_or(Bad::Form)?;
        self.rest = rest;
        let hours = name.strip_prefix("GMT").and_then(|offset| offset.parse::<i32>().ok());
        Ok(hours.unwrap_or(0).saturating_mul(3600))
    }

    fn assemble(&self, fields: &Fields) -> Result<Time, ParseTimeError> {
        let hour = match fields.afternoon {
            Some(true) if fields.hour < 12 => fields.hour + 12,
            Some(false) if fields.hour == 12 => 0,
            _ => fields.hour,
        };
        let (mut month, mut day) = (fields.month, fields.day);
        if let Some(day_of_year) = fields.day_of_year {
            let (m, d) = month_and_day(fields.year, day_of_year).ok_or_else(|| self.out_of_range("day-of-year"))?;
            let differs = |what| ParseTimeError::DayOfYear { text: self.text.to_owned(), what };
            if month.is_some_and(|month| month != m) {
                return Err(differs("month"));
            }
            if day.is_some_and(|day| day != d) {
                return Err(differs("day"));
            }
            (month, day) = (Some(m), Some(d));
        }
        let civil = Civil {
            year: fields.year,
            month: month.unwrap_or(1),
            day: day.unwrap_or(1),
            hour,
            minute: fields.minute,
            second: fields.second,
            weekday: 0,
        };
        let time = Time::from_civil(&civil, fields.nanos, fields.offset.unwrap_or(0));
        let time = time.ok_or_else(|| self.out_of_range("day"))?;
        // As in Go the time beside `GMT+3` is that of Greenwich; it is only shown at the offset.
        Ok(if fields.offset.is_none() { time.at_offset(fields.named_offset) } else { time })
    }
}

fn bounded(number: u32, end: u32, what: &'static str) -> Result<u32, Bad> {
    if number < end { Ok(number) } else { Err(Bad::Range(what)) }
}

fn decimal(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Digits after a decimal point as nanoseconds, the tenth and later cut off.
fn nanos(digits: &str) -> Option<u32> {
    let digits = digits.get(..9).unwrap_or(digits);
    let places = u32::try_from(digits.len()).ok()?;
    decimal(digits)?.checked_mul(10u32.checked_pow(9u32.checked_sub(places)?)?)
}

/// The date of a day of the year, from 1.
fn month_and_day(year: i64, day_of_year: u32) -> Option<(u32, u32)> {
    if day_of_year == 0 || day_of_year > 365 + u32::from(is_leap_year(year)) {
        return None;
    }
    let mut left = day_of_year;
    for month in 1..=12 {
        let days = days_in_month(year, month);
        if left <= days {
            return Some((month, left));
        }
        left -= days;
    }
    None
}

/// The length of the zone abbreviation that `text` starts with: three to five capitals (four and five end in `T`),
/// `GMT` with an offset, or a bare offset.
fn zone_name_length(text: &str) -> Option<usize> {
    if text.starts_with("ChST") || text.starts_with("MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix("GMT") {
        return Some(3 + signed_offset_length(rest));
    }
    if text.starts_with(['+', '-']) {
        return Some(signed_offset_length(text)).filter(|&length| length > 0);
    }
    match text.bytes().take(6).take_while(u8::is_ascii_uppercase).count() {
        3 => Some(3),
        4 if text.as_bytes().get(3) == Some(&b'T') || text.starts_with("WITA") => Some(4),
        5 if text.as_bytes().get(4) == Some(&b'T') => Some(5),
        _ => None,
    }
}

/// The length of a sign and up to 23 hours; 0 when there is no such thing.
fn signed_offset_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix(['+', '-']) else { return 0 };
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let hours = rest.get(..length).and_then(|digits| digits.parse::<u32>().ok());
    if hours.is_some_and(|hours| hours <= 23) { 1 + length } else { 0 }
}
