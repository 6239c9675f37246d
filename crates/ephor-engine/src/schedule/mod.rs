//! Schedules of cleanup and deleting policies: cron's fields, a word such as `@hourly`, or `@every 5m`.
//!
//! In goes the text of a policy; out comes what is wrong with it, or a [`Schedule`], which tells when it is due next.
//! Admission, the cleanup role and `ephor plan` read schedules here and nowhere else. No clock is asked.

mod cron;
mod next;

use ephor_expr::scalar::duration::Duration;
use ephor_expr::scalar::zone;
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::diagnostic::Diagnostic;
use cron::Fields;

/// How schedules of a kind of policy are written. Upstream reads them with two parsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// Of cleanup policies: five fields, perhaps after a time zone, or `@every`.
    Minutes,
    /// Of `DeletingPolicy`: a sixth field is the year, with a seventh the first one is the second. `L`, `W` and `#`
    /// name days from the end of the month, working days and days of one week.
    Seconds,
}

/// When a policy is due.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    text: Str,
    zone: TimeZone,
    plan: Plan,
}

#[derive(Debug, Clone, PartialEq)]
enum Plan {
    /// At times of the calendar.
    Calendar(Box<Fields>),
    /// So many seconds after the last time.
    Every(i64),
}

impl Schedule {
    /// Reads a schedule, or says what is wrong with it.
    pub fn parse(text: &str, grammar: Grammar) -> Result<Self, String> {
        let mut rest = text.trim();
        let mut zone = TimeZone::UTC;
        if grammar == Grammar::Minutes {
            if let Some(named) = rest.strip_prefix("CRON_TZ=").or_else(|| rest.strip_prefix("TZ=")) {
                let (name, schedule) = named.split_once(char::is_whitespace).unwrap_or((named, ""));
                zone = zone::named(name).ok_or_else(|| format!("`{name}` is no time zone"))?;
                rest = schedule.trim();
            }
            if let Some(every) = rest.strip_prefix("@every ") {
                let seconds = every_seconds(every.trim()).ok_or_else(|| format!("`{every}` is no duration"))?;
                return Ok(Self { text: text.into(), zone, plan: Plan::Every(seconds) });
            }
        }
        let plan = Plan::Calendar(Box::new(Fields::parse(rest, grammar)?));
        Ok(Self { text: text.into(), zone, plan })
    }

    /// The text that it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first time after `after`, in whole seconds; `None` if none comes. A time of the clock that a change to
    /// summer time leaves out is left out; one that comes twice is due twice.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.plan {
            Plan::Calendar(fields) => next::next(fields, &self.zone, after),
            Plan::Every(seconds) => {
                let whole = Timestamp::from_second(after.as_second()).ok()?;
                whole.checked_add(SignedDuration::from_secs(*seconds)).ok()
            }
        }
    }

    /// A warning about a schedule of which no time comes.
    pub(crate) fn never(&self, path: &Path) -> Option<Diagnostic> {
        let comes = self.next(Timestamp::UNIX_EPOCH).is_some();
        let text = "no such time ever comes, so the policy never runs";
        (!comes).then(|| Diagnostic::warning("schedule", path.clone(), text))
    }
}

/// From when on the next time of a policy counts: from when it was carried out last, else from when it was created.
/// However often it was missed since, it is due once. A time in the future was written by a clock that went wrong, or
/// by a user: it counts as `now`, so that it stops nothing.
pub fn base(last: Option<Timestamp>, created: Timestamp, now: Timestamp) -> Timestamp {
    last.unwrap_or(created).min(now)
}

/// The whole seconds of the duration of `@every`, at least one.
fn every_seconds(text: &str) -> Option<i64> {
    let nanoseconds = Duration::parse(text).ok()?.0;
    (nanoseconds > 0).then(|| (nanoseconds / 1_000_000_000).max(1))
}

/// The time at `keys` of a document, if it is one.
pub fn time_at(document: &Value, keys: &[&str]) -> Option<Timestamp> {
    document.str_at(keys)?.parse().ok()
}

#[cfg(test)]
mod tests;
