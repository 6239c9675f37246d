//! The [`Time`]: an instant and the offset it was written with.

use std::cmp::Ordering;

use super::super::duration::Duration;

const DAY: i64 = 86_400;
const NANOS: i128 = 1_000_000_000;

/// Seconds from the start of the year 1, Go's zero time, to 1970.
const UNIX_FROM_YEAR_ONE: i64 = 62_135_596_800;

/// An instant with nanoseconds and an offset from UTC. Equality and order are of the instant alone.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    seconds: i64,
    nanos: u32,
    offset: i32,
}

/// A calendar date with time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// The year of the Gregorian calendar, also before it was in use.
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 (Sunday) to 6.
    pub weekday: u32,
}

impl Time {
    /// The instant so many seconds and nanoseconds after 1970-01-01T00:00:00Z, in UTC.
    pub fn from_unix(seconds: i64, nanos: u32) -> Self {
        Time { seconds, nanos: nanos.min(999_999_999), offset: 0 }
    }

    /// The date and time of day `civil` (its weekday is not read) at an offset in seconds; `None` for a date that
    /// does not exist or is beyond all bounds.
    pub fn from_civil(civil: &Civil, nanos: u32, offset: i32) -> Option<Self> {
        let fits = (1..=12).contains(&civil.month)
            && (1..=days_in_month(civil.year, civil.month)).contains(&civil.day)
            && civil.hour < 24
            && civil.minute < 60
            && civil.second < 60
            && civil.year.unsigned_abs() < 1_000_000_000;
        if !fits {
            return None;
        }
        let of_day = i64::from(civil.hour) * 3600 + i64::from(civil.minute) * 60 + i64::from(civil.second);
        let seconds = days_from_civil(civil.year, civil.month, civil.day) * DAY + of_day - i64::from(offset);
        Some(Time { seconds, nanos: nanos.min(999_999_999), offset })
    }

    /// Whole seconds since 1970, rounded down.
    pub fn unix_seconds(&self) -> i64 {
        self.seconds
    }

    /// The nanoseconds after [`Time::unix_seconds`].
    pub fn nanos(&self) -> u32 {
        self.nanos
    }

    /// The offset from UTC in seconds, east positive.
    pub fn offset_seconds(&self) -> i32 {
        self.offset
    }

    /// The same instant in UTC.
    #[must_use]
    pub fn to_utc(self) -> Self {
        self.at_offset(0)
    }

    /// The same instant at another offset, in seconds.
    #[must_use]
    pub fn at_offset(self, offset: i32) -> Self {
        Time { offset, ..self }
    }

    /// The date and time of day at the offset.
    pub fn civil(&self) -> Civil {
        let local = self.seconds.saturating_add(i64::from(self.offset));
        let (days, of_day) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        Civil {
            year,
            month,
            day,
            hour: (of_day / 3600) as u32,
            minute: (of_day % 3600 / 60) as u32,
            second: (of_day % 60) as u32,
            // 1970 began on a Thursday.
            weekday: (days + 4).rem_euclid(7) as u32,
        }
    }

    /// The instant later by `duration`; `None` beyond all bounds.
    pub fn add(&self, duration: Duration) -> Option<Self> {
        self.with_unix_nanos(self.unix_nanos() + i128::from(duration.0))
    }

    /// The time passed since `earlier`, bounded to the range of a duration.
    pub fn since(&self, earlier: &Time) -> Duration {
        let nanos = self.unix_nanos() - earlier.unix_nanos();
        Duration(nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// The instant rounded down to a multiple of `duration` since the year 1, as Go does; unchanged when `duration`
    /// is not positive.
    #[must_use]
    pub fn truncate(&self, duration: Duration) -> Self {
        if duration.0 <= 0 {
            return *self;
        }
        let nanos = self.unix_nanos();
        let since_year_one = nanos + i128::from(UNIX_FROM_YEAR_ONE) * NANOS;
        let down = nanos - since_year_one.rem_euclid(i128::from(duration.0));
        self.with_unix_nanos(down).unwrap_or(*self)
    }

    fn unix_nanos(&self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    fn with_unix_nanos(&self, nanos: i128) -> Option<Self> {
        let seconds = i64::try_from(nanos.div_euclid(NANOS)).ok()?;
        Some(Time { seconds, nanos: nanos.rem_euclid(NANOS) as u32, offset: self.offset })
    }

    fn instant(&self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }
}

impl PartialEq for Time {
    fn eq(&self, other: &Self) -> bool {
        self.instant() == other.instant()
    }
}

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        self.instant().cmp(&other.instant())
    }
}

/// Prints as RFC 3339 in whole seconds, the fraction cut off: `2030-01-01T00:00:00Z`, `2030-01-01T01:00:00+01:00`.
pub fn format_rfc3339(time: &Time) -> String {
    let Civil { year, month, day, hour, minute, second, .. } = time.civil();
    let (sign, year) = (if year < 0 { "-" } else { "" }, year.unsigned_abs());
    let zone = if time.offset == 0 {
        "Z".to_owned()
    } else {
        let minutes = time.offset / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    };
    format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
}

pub(super) fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(super) fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date. Years are counted from March, so that the leap day comes last.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date so many days after 1970-01-01.
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day as u32)
}
