//! The next time of a schedule.

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};

use super::cron::{Fields, NamedDay, YEARS};

/// The first time after `after` at which all fields fit. It goes on by whole months, days, hours and minutes, so that
/// even a date that never comes is known after some thousand steps.
pub(super) fn next(fields: &Fields, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let first = Timestamp::from_second(after.as_second()).ok()?.checked_add(SignedDuration::from_secs(1)).ok()?;
    let mut at = first.max(Timestamp::UNIX_EPOCH).to_zoned(zone.clone());
    loop {
        let year = number(at.year());
        if year > *YEARS.end() {
            return None;
        }
        let before = at.timestamp();
        at = if !fields.years.contains(year) {
            midnight(Date::new(at.year() + 1, 1, 1).ok()?, zone)?
        } else if !fields.months.contains(number(at.month())) {
            midnight(at.date().last_of_month().tomorrow().ok()?, zone)?
        } else if !fits_day(fields, at.date()) {
            midnight(at.date().tomorrow().ok()?, zone)?
        } else if !fields.hours.contains(number(at.hour())) {
            later(&at, 3600 - i64::from(at.minute()) * 60 - i64::from(at.second()))?
        } else if !fields.minutes.contains(number(at.minute())) {
            later(&at, 60 - i64::from(at.second()))?
        } else if !fields.seconds.contains(number(at.second())) {
            later(&at, 1)?
        } else {
            return Some(at.timestamp());
        };
        // Whatever a zone does to its clocks, this goes forward.
        if at.timestamp() <= before {
            at = before.checked_add(SignedDuration::from_secs(1)).ok()?.to_zoned(zone.clone());
        }
    }
}

fn midnight(date: Date, zone: &TimeZone) -> Option<Zoned> {
    date.to_zoned(zone.clone()).ok()
}

fn later(at: &Zoned, seconds: i64) -> Option<Zoned> {
    at.checked_add(seconds.seconds()).ok()
}

/// A part of a date; none of them is negative where it is asked for.
fn number(part: impl Into<i32>) -> u32 {
    u32::try_from(part.into()).unwrap_or(u32::MAX)
}

/// Whether the day fits: if both the day of the month and the day of the week are restricted, either is enough.
fn fits_day(fields: &Fields, date: Date) -> bool {
    let of_month = fields.days.contains(number(date.day())) || fields.days.days.iter().any(|day| is_named(*day, date));
    let of_week =
        fields.weekdays.contains(weekday(date)) || fields.weekdays.days.iter().any(|day| is_named(*day, date));
    match (fields.days.any, fields.weekdays.any) {
        (false, false) => of_month || of_week,
        _ => of_month && of_week,
    }
}

fn weekday(date: Date) -> u32 {
    number(date.weekday().to_sunday_zero_offset())
}

fn is_working(date: Date) -> bool {
    !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

fn is_named(day: NamedDay, date: Date) -> bool {
    let last = date.last_of_month();
    match day {
        NamedDay::Last => date == last,
        NamedDay::LastWorking => Some(date) == nearest_working(last),
        NamedDay::Working(day) => {
            let wanted = i8::try_from(day).ok().and_then(|day| Date::new(date.year(), date.month(), day).ok());
            wanted.and_then(nearest_working) == Some(date)
        }
        NamedDay::LastOfWeek(day) => weekday(date) == day && number(date.day()) + 7 > number(last.day()),
        NamedDay::NthOfWeek(day, nth) => weekday(date) == day && (number(date.day()) - 1) / 7 + 1 == nth,
    }
}

/// The working day next to a date, in its month.
fn nearest_working(date: Date) -> Option<Date> {
    if is_working(date) {
        return Some(date);
    }
    let steps: [i64; 2] = if date.weekday() == Weekday::Saturday { [-1, 2] } else { [1, -2] };
    steps.into_iter().filter_map(|days| date.checked_add(days.days()).ok()).find(|near| near.month() == date.month())
}
