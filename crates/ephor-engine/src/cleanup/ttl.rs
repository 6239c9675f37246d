//! The label `cleanup.kyverno.io/ttl`: when an object is to be deleted.
//!
//! In goes the value of the label; out comes a [`Lifetime`], or nothing: the object is kept. Admission warns of what
//! cannot be read, and the cleanup role deletes by what can, with the same function.

use ephor_expr::Value;
use ephor_expr::scalar::duration::Duration;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::policy::DeletionPropagation;
use crate::schedule::time_at;

/// The label.
pub const TTL_LABEL: &str = "cleanup.kyverno.io/ttl";
/// The annotation that says how dependents of the object are treated.
pub const PROPAGATION_ANNOTATION: &str = "cleanup.kyverno.io/propagation-policy";

/// How long an object stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// So long after it was created.
    After(SignedDuration),
    /// Until then.
    Until(Timestamp),
}

impl Lifetime {
    /// Reads a value of the label: a duration of Go (`90s`, `1h30m`), one with longer units (`1d`, `1w2d`, `3days`), a
    /// day (`2006-01-02`) or a time (`2006-01-02T150405Z`), both UTC.
    ///
    /// Upstream skips the parts of a duration that it does not know, so that `1y2d` is two days there. Here such a
    /// value is none.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(duration) = Duration::parse(text) {
            return Some(Self::After(SignedDuration::from_nanos(duration.0)));
        }
        long_duration(text).map(Self::After).or_else(|| moment(text).map(Self::Until))
    }

    /// When an object that was created then is due; `None` if that is beyond what times can say.
    pub fn due(self, created: Timestamp) -> Option<Timestamp> {
        match self {
            Self::After(duration) => created.checked_add(duration).ok(),
            Self::Until(moment) => Some(moment),
        }
    }
}

/// When the label of an object wants it to be deleted; `None` if it has none, or one that says nothing.
pub fn due(object: &Value) -> Option<Timestamp> {
    let lifetime = Lifetime::parse(object.str_at(&["metadata", "labels", TTL_LABEL])?)?;
    lifetime.due(time_at(object, &["metadata", "creationTimestamp"])?)
}

/// How dependents of an object are treated when its time has come; `None` leaves it to the API server.
pub fn propagation(object: &Value) -> Option<DeletionPropagation> {
    DeletionPropagation::parse(object.str_at(&["metadata", "annotations", PROPAGATION_ANNOTATION])?)
}

/// The units of long durations, and how many nanoseconds each has. Of the last name of each unit, any longer word is
/// one.
const UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60 * 1_000_000_000),
    (&["h", "hr", "hour"], 3_600 * 1_000_000_000),
    (&["d", "day"], 86_400 * 1_000_000_000),
    (&["w", "wk", "week"], 604_800 * 1_000_000_000),
];

fn unit(word: &str) -> Option<i64> {
    let word = word.to_lowercase();
    let named = |names: &[&str]| {
        names.contains(&word.as_str()) || names.last().is_some_and(|longest| word.starts_with(longest))
    };
    UNITS.iter().find(|(names, _)| named(names)).map(|(_, nanoseconds)| *nanoseconds)
}

/// Whole numbers with units, one after the other, and nothing else.
fn long_duration(text: &str) -> Option<SignedDuration> {
    let mut rest = text;
    let mut sum: i64 = 0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at_checked(rest.find(|c: char| !c.is_ascii_digit())?)?;
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (word, after) = after.split_at_checked(end)?;
        sum = sum.checked_add(number.parse::<i64>().ok()?.checked_mul(unit(word)?)?)?;
        rest = after;
    }
    (!text.is_empty()).then(|| SignedDuration::from_nanos(sum))
}

fn moment(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once('T').unwrap_or((text, "000000Z"));
    let [year, month, day] = date.split('-').collect::<Vec<_>>().try_into().ok()?;
    let part = |text: &str, length: usize| {
        (text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse::<i16>().ok())?
    };
    let small = |text: &str| i8::try_from(part(text, 2)?).ok();
    let date = Date::new(part(year, 4)?, small(month)?, small(day)?).ok()?;
    let time = time.strip_suffix('Z').filter(|time| time.len() == 6)?;
    let two = |from: usize| small(time.get(from..from + 2)?);
    let time = Time::new(two(0)?, two(2)?, two(4)?, 0).ok()?;
    Some(date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    #[test]
    fn lifetimes_are_durations_days_and_times() {
        let after = |seconds: i64| Some(Lifetime::After(SignedDuration::from_secs(seconds)));
        let until = |text: &str| Some(Lifetime::Until(text.parse().unwrap()));
        for (text, want) in [
            ("90s", after(90)),
            ("1h30m", after(5400)),
            ("1.5h", after(5400)),
            ("0", after(0)),
            ("0s", after(0)),
            ("100us", Some(Lifetime::After(SignedDuration::from_micros(100)))),
            ("1d", after(86_400)),
            ("1w", after(604_800)),
            ("1d2h", after(93_600)),
            ("2weeks", after(1_209_600)),
            ("3days", after(259_200)),
            ("5min", after(300)),
            ("90sec", after(90)),
            // One minute: units have no case.
            ("1M", after(60)),
            ("2030-01-02", until("2030-01-02T00:00:00Z")),
            ("2030-01-02T150405Z", until("2030-01-02T15:04:05Z")),
            ("2001-01-01", until("2001-01-01T00:00:00Z")),
            ("2hrs", None),
            ("1y", None),
            ("1y2d", None),
            ("1.5d", None),
            ("1h-5m", None),
            ("10", None),
            ("10ay", None),
            ("h", None),
            ("", None),
            ("tomorrow", None),
            ("2030-01-02T150405", None),
            ("2030-01-02T15:04:05Z", None),
            ("2030-13-02", None),
            ("2030-1-2", None),
            ("20300102", None),
            ("99999999999999999999w", None),
            ("99999999999w", None),
        ] {
            assert_eq!(Lifetime::parse(text), want, "{text}");
        }
    }

    #[test]
    fn an_object_is_due_by_its_label_and_its_age() {
        let object = |label: &str| {
            let metadata = format!("name: a, creationTimestamp: '2026-01-01T00:00:00Z', labels: {{{label}}}");
            parse_value(&format!("{{metadata: {{{metadata}}}}}")).unwrap()
        };
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        assert_eq!(due(&object("cleanup.kyverno.io/ttl: 1d")), at("2026-01-02T00:00:00Z"));
        assert_eq!(due(&object("cleanup.kyverno.io/ttl: '2020-01-01'")), at("2020-01-01T00:00:00Z"));
        assert_eq!(due(&object("cleanup.kyverno.io/ttl: soon")), None);
        assert_eq!(due(&object("a: b")), None);
        // An age that is not known is none.
        assert_eq!(due(&parse_value("{metadata: {labels: {cleanup.kyverno.io/ttl: 1s}}}").unwrap()), None);
    }
}
