//! Schedules: cron's fields, or a word such as `@hourly`. Only the syntax is checked here.

use std::ops::RangeInclusive;

use ephor_expr::scalar::duration::Duration;

/// How schedules of a kind of policy are written. Upstream reads them with two parsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CronGrammar {
    /// Of cleanup policies: five fields, perhaps after a time zone, or `@every`.
    Minutes,
    /// Of `DeletingPolicy`: a sixth field is the year, with a seventh the first one is the second. `L`, `W` and `#`
    /// name days from the end of the month, working days and days of one week.
    Seconds,
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const LONG_MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const LONG_DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// One field.
struct Field {
    name: &'static str,
    bounds: RangeInclusive<u32>,
    words: &'static [&'static str],
    /// The same in full, where that is allowed.
    long_words: &'static [&'static str],
    days: Days,
}

/// Which days a field can name beside numbers.
#[derive(PartialEq, Eq)]
enum Days {
    /// None.
    No,
    /// `L`, `LW`, `15W`.
    OfMonth,
    /// `5L`, `5#2`.
    OfWeek,
}

const fn field(name: &'static str, bounds: RangeInclusive<u32>) -> Field {
    Field { name, bounds, words: &[], long_words: &[], days: Days::No }
}

const MINUTE: Field = field("minute", 0..=59);
const HOUR: Field = field("hour", 0..=23);
const DAY: Field = field("day of the month", 1..=31);
const MONTH: Field = Field { words: &MONTHS, ..field("month", 1..=12) };
const WEEKDAY: Field = Field { words: &DAYS, ..field("day of the week", 0..=6) };

const MINUTES: [Field; 5] = [MINUTE, HOUR, DAY, MONTH, WEEKDAY];
const SECONDS: [Field; 7] = [
    field("second", 0..=59),
    MINUTE,
    HOUR,
    Field { days: Days::OfMonth, ..DAY },
    Field { long_words: &LONG_MONTHS, ..MONTH },
    Field { bounds: 0..=7, long_words: &LONG_DAYS, days: Days::OfWeek, ..WEEKDAY },
    field("year", 1970..=2099),
];

impl CronGrammar {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Minutes => &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"],
            Self::Seconds => &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly"],
        }
    }

    /// What so many fields are; else how many there should be.
    fn fields(self, count: usize) -> Result<&'static [Field], &'static str> {
        let (fields, wanted): (Option<&[Field]>, _) = match (self, count) {
            (Self::Minutes, 5) => (Some(&MINUTES), "5"),
            (Self::Minutes, _) => (None, "5"),
            (Self::Seconds, 5) => (SECONDS.get(1..6), "5 to 7"),
            (Self::Seconds, 6) => (SECONDS.get(1..7), "5 to 7"),
            (Self::Seconds, 7) => (Some(&SECONDS), "5 to 7"),
            (Self::Seconds, _) => (None, "5 to 7"),
        };
        fields.ok_or(wanted)
    }
}

/// What is wrong with a schedule.
pub(crate) fn fault(text: &str, grammar: CronGrammar) -> Option<String> {
    let mut rest = text.trim();
    if grammar == CronGrammar::Minutes {
        if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
            rest = rest.split_once(char::is_whitespace).map_or("", |(_, schedule)| schedule.trim());
        }
        if let Some(every) = rest.strip_prefix("@every ") {
            return Duration::parse(every.trim()).is_err().then(|| format!("`{every}` is no duration"));
        }
    }
    if rest.starts_with('@') {
        let words = grammar.words();
        return (!words.contains(&rest)).then(|| format!("`{rest}` is not one of {}", words.join(", ")));
    }
    let parts: Vec<&str> = rest.split_whitespace().collect();
    match grammar.fields(parts.len()) {
        Err(wanted) => Some(format!("expected {wanted} fields, found {}", parts.len())),
        Ok(fields) => {
            fields.iter().zip(parts).find_map(|(field, part)| part.split(',').find_map(|item| field.fault(item)))
        }
    }
}

impl Field {
    /// What is wrong with `*`, `n`, `n-m`, each with `/step` perhaps, or a day by another name.
    fn fault(&self, item: &str) -> Option<String> {
        if self.names_day(&item.to_ascii_lowercase()) {
            return None;
        }
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        if step.is_some_and(|step| step.parse::<u32>().ok().is_none_or(|n| n == 0)) {
            return Some(format!("the step of `{item}` is not a positive number"));
        }
        if matches!(range, "*" | "?") {
            return None;
        }
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (self.number(first), self.number(last)) {
            (Some(first), Some(last)) if first <= last => None,
            (Some(_), Some(_)) => Some(format!("`{range}` ends before it begins")),
            _ => {
                let (from, to) = (self.bounds.start(), self.bounds.end());
                Some(format!("`{item}` is no {}: expected {from} to {to}", self.name))
            }
        }
    }

    fn names_day(&self, item: &str) -> bool {
        let is_number = |text: &str| self.number(text).is_some();
        match self.days {
            Days::No => false,
            Days::OfMonth => matches!(item, "l" | "lw") || item.strip_suffix('w').is_some_and(is_number),
            Days::OfWeek => match item.split_once('#') {
                Some((day, week)) => is_number(day) && matches!(week, "1" | "2" | "3" | "4" | "5"),
                None => item.strip_suffix('l').is_some_and(is_number),
            },
        }
    }

    fn number(&self, text: &str) -> Option<u32> {
        let word = text.to_ascii_lowercase();
        let among = |words: &[&str]| words.iter().position(|known| *known == word);
        let named = among(self.words).or_else(|| among(self.long_words)).map(|i| i as u32 + self.bounds.start());
        named.or_else(|| text.parse().ok()).filter(|n| self.bounds.contains(n))
    }
}

#[cfg(test)]
mod tests {
    use super::{CronGrammar, fault};

    #[test]
    fn schedules_of_cleanup_policies_are_crons() {
        for good in ["*/5 * * * *", "0 0 1,15 * MON-fri", "TZ=UTC 1-59/2 0 ? jan *", "@daily", "@every 1h30m"] {
            assert_eq!(fault(good, CronGrammar::Minutes), None, "{good}");
        }
        for (bad, want) in [
            ("* * * *", "expected 5 fields, found 4"),
            ("* * * * * *", "expected 5 fields, found 6"),
            ("60 * * * *", "`60` is no minute: expected 0 to 59"),
            ("* * * * 7", "`7` is no day of the week: expected 0 to 6"),
            ("* * L * *", "`L` is no day of the month: expected 1 to 31"),
            ("* * * january *", "`january` is no month: expected 1 to 12"),
            ("5-1 * * * *", "`5-1` ends before it begins"),
            ("*/0 * * * *", "the step of `*/0` is not a positive number"),
            ("@every day", "`day` is no duration"),
            ("@dayly", "`@dayly` is not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly"),
            ("", "expected 5 fields, found 0"),
        ] {
            assert_eq!(fault(bad, CronGrammar::Minutes).as_deref(), Some(want), "{bad}");
        }
    }

    #[test]
    fn schedules_of_deleting_policies_have_seconds_and_years() {
        for good in [
            "*/1 * * * *",
            "0 0 L * 7",
            "0 0 LW * *",
            "0 0 15w january Sunday,5L,mon#2",
            "0 0 1 1 * 2030-2040/2",
            "*/10 0 0 1 1 ? 2099",
            "@hourly",
        ] {
            assert_eq!(fault(good, CronGrammar::Seconds), None, "{good}");
        }
        for (bad, want) in [
            ("* * * *", "expected 5 to 7 fields, found 4"),
            ("* * * * * * * *", "expected 5 to 7 fields, found 8"),
            ("0 0 1 1 * 1969", "`1969` is no year: expected 1970 to 2099"),
            ("60 0 0 1 1 * *", "`60` is no second: expected 0 to 59"),
            ("0 24 * * *", "`24` is no hour: expected 0 to 23"),
            ("0 0 32W * *", "`32W` is no day of the month: expected 1 to 31"),
            ("0 0 * * 5#6", "`5#6` is no day of the week: expected 0 to 7"),
            ("@every 5m", "`@every 5m` is not one of @yearly, @annually, @monthly, @weekly, @daily, @hourly"),
            ("TZ=UTC * * * *", "`TZ=UTC` is no minute: expected 0 to 59"),
        ] {
            assert_eq!(fault(bad, CronGrammar::Seconds).as_deref(), Some(want), "{bad}");
        }
    }
}
