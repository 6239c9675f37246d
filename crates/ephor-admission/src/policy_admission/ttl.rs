//! The label `cleanup.kyverno.io/ttl`: when an object is to be deleted.

use ephor_expr::Value;
use ephor_runtime::decision::Answer;

/// The label.
pub const LABEL: &str = "cleanup.kyverno.io/ttl";

/// When an object is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// So many seconds after it was created.
    After(u64),
    /// At this time.
    At(jiff::Timestamp),
}

/// Reads a value of the label: a duration in one unit (`90s`, `5m`, `4h`, `1d`, `1w`), a day, or a time of a day without
/// colons, both UTC.
pub fn parse(text: &str) -> Option<Due> {
    if let Some((digits, seconds)) = unit(text) {
        return digits.parse::<u64>().ok()?.checked_mul(seconds).map(Due::After);
    }
    let (date, time) = text.split_once('T').unwrap_or((text, "000000Z"));
    let date: jiff::civil::Date = date.parse().ok()?;
    let time = time.strip_suffix('Z').filter(|time| time.len() == 6)?;
    let two = |from: usize| time.get(from..from + 2)?.parse::<i8>().ok();
    let time = jiff::civil::Time::new(two(0)?, two(2)?, two(4)?, 0).ok()?;
    let zoned = date.to_datetime(time).to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(Due::At(zoned.timestamp()))
}

fn unit(text: &str) -> Option<(&str, u64)> {
    let seconds = match text.chars().next_back()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    let digits = text.get(..text.len() - 1)?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some((digits, seconds))
}

/// Warns of a label that says nothing.
pub(super) fn check(object: &Value) -> Answer {
    let value = object.str_at(&["metadata", "labels", LABEL]);
    match value.filter(|value| parse(value).is_none()) {
        None => Answer::allow(),
        Some(value) => Answer::allow().with_warnings([format!(
            "{LABEL} label value cannot be parsed as any recognizable format (`{value}` is neither a duration such as \
             90s, 5m, 4h, 1d, 1w nor a time such as 2006-01-02 or 2006-01-02T150405Z): the object is kept"
        )]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_durations_days_and_times() {
        let at = |text: &str| Some(Due::At(text.parse().unwrap()));
        for (text, want) in [
            ("90s", Some(Due::After(90))),
            ("1w", Some(Due::After(604_800))),
            ("2006-01-02", at("2006-01-02T00:00:00Z")),
            ("2006-01-02T150405Z", at("2006-01-02T15:04:05Z")),
            ("10ay", None),
            ("", None),
            ("h", None),
            ("1h30m", None),
            ("2006-01-02T15:04:05Z", None),
            ("2006-13-02", None),
            ("99999999999999999999w", None),
        ] {
            assert_eq!(parse(text), want, "{text}");
        }
    }
}
