//! The fields of cron: their text, and the numbers that it means.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::Grammar;

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

/// The years that a schedule can name.
pub(super) const YEARS: RangeInclusive<u32> = 1970..=2099;

/// When a schedule is due, field by field.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Fields {
    pub(super) seconds: Numbers,
    pub(super) minutes: Numbers,
    pub(super) hours: Numbers,
    pub(super) days: Numbers,
    pub(super) months: Numbers,
    /// Days of the week, Sunday is 0.
    pub(super) weekdays: Numbers,
    pub(super) years: Numbers,
}

/// The numbers that a field means, and days by other names.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Numbers {
    /// Whether the field restricts nothing: `*`.
    pub(super) any: bool,
    pub(super) listed: BTreeSet<u32>,
    pub(super) days: BTreeSet<NamedDay>,
}

impl Numbers {
    pub(super) fn contains(&self, number: u32) -> bool {
        self.any || self.listed.contains(&number)
    }

    fn only(number: u32) -> Self {
        Self { listed: BTreeSet::from([number]), ..Self::default() }
    }

    fn any() -> Self {
        Self { any: true, ..Self::default() }
    }
}

/// A day that depends on the month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedDay {
    /// The last one.
    Last,
    /// The last working day.
    LastWorking,
    /// The working day that is next to this one, in the same month.
    Working(u32),
    /// The last of this day of the week.
    LastOfWeek(u32),
    /// The so-manieth of this day of the week.
    NthOfWeek(u32, u32),
}

/// What there is to know of a field.
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

const SECOND: Field = field("second", 0..=59);
const MINUTE: Field = field("minute", 0..=59);
const HOUR: Field = field("hour", 0..=23);
const DAY: Field = field("day of the month", 1..=31);
const MONTH: Field = Field { words: &MONTHS, ..field("month", 1..=12) };
const WEEKDAY: Field = Field { words: &DAYS, ..field("day of the week", 0..=6) };
const YEAR: Field = field("year", YEARS);
const ANY_DAY: Field = Field { days: Days::OfMonth, ..DAY };
const ANY_MONTH: Field = Field { long_words: &LONG_MONTHS, ..MONTH };
const ANY_WEEKDAY: Field = Field { bounds: 0..=7, long_words: &LONG_DAYS, days: Days::OfWeek, ..WEEKDAY };

impl Grammar {
    /// The words that stand for fields.
    fn words(self) -> &'static [(&'static str, &'static str)] {
        const SHARED: [(&str, &str); 7] = [
            ("@yearly", "0 0 1 1 *"),
            ("@annually", "0 0 1 1 *"),
            ("@monthly", "0 0 1 * *"),
            ("@weekly", "0 0 * * 0"),
            ("@daily", "0 0 * * *"),
            ("@hourly", "0 * * * *"),
            ("@midnight", "0 0 * * *"),
        ];
        match self {
            Self::Minutes => &SHARED,
            Self::Seconds => SHARED.split_at(6).0,
        }
    }
}

impl Fields {
    /// Reads fields or a word that stands for them, or says what is wrong.
    pub(super) fn parse(text: &str, grammar: Grammar) -> Result<Self, String> {
        if text.starts_with('@') {
            let known = grammar.words();
            let Some((_, fields)) = known.iter().find(|(word, _)| *word == text) else {
                let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                return Err(format!("`{text}` is not one of {}", words.join(", ")));
            };
            return Self::parse(fields, grammar);
        }
        let parts: Vec<&str> = text.split_whitespace().collect();
        let wanted = match grammar {
            Grammar::Minutes => "5",
            Grammar::Seconds => "5 to 7",
        };
        let (second, rest, year) = match (grammar, parts.as_slice()) {
            (_, rest @ [_, _, _, _, _]) => (None, rest, None),
            (Grammar::Seconds, [rest @ .., year]) if rest.len() == 5 => (None, rest, Some(year)),
            (Grammar::Seconds, [second, rest @ .., year]) if rest.len() == 5 => (Some(second), rest, Some(year)),
            _ => return Err(format!("expected {wanted} fields, found {}", parts.len())),
        };
        let [minute, hour, day, month, weekday] = rest else {
            return Err(format!("expected {wanted} fields, found {}", parts.len()));
        };
        let (days, months, weekdays) = match grammar {
            Grammar::Minutes => (&DAY, &MONTH, &WEEKDAY),
            Grammar::Seconds => (&ANY_DAY, &ANY_MONTH, &ANY_WEEKDAY),
        };
        Ok(Self {
            seconds: second.map_or_else(|| Ok(Numbers::only(0)), |text| SECOND.parse(text))?,
            minutes: MINUTE.parse(minute)?,
            hours: HOUR.parse(hour)?,
            days: days.parse(day)?,
            months: months.parse(month)?,
            weekdays: weekdays.parse(weekday)?,
            years: year.map_or_else(|| Ok(Numbers::any()), |text| YEAR.parse(text))?,
        })
    }
}

impl Field {
    fn parse(&self, text: &str) -> Result<Numbers, String> {
        let mut numbers = Numbers::default();
        for item in text.split(',') {
            self.add(item, &mut numbers)?;
        }
        Ok(numbers)
    }

    /// Takes in `*`, `n`, `n-m`, each with `/step` perhaps, or a day by another name.
    fn add(&self, item: &str, numbers: &mut Numbers) -> Result<(), String> {
        if let Some(day) = self.named_day(&item.to_ascii_lowercase()) {
            numbers.days.insert(day);
            return Ok(());
        }
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        let step = match step.map(str::parse::<u32>) {
            None => None,
            Some(Ok(step)) if step > 0 => Some(step),
            Some(_) => return Err(format!("the step of `{item}` is not a positive number")),
        };
        let (from, to) = (*self.bounds.start(), *self.bounds.end());
        let (first, last) = if matches!(range, "*" | "?") {
            if step.unwrap_or(1) == 1 {
                numbers.any = true;
                return Ok(());
            }
            (from, to)
        } else {
            let (first, last) = range.split_once('-').map_or((range, None), |(first, last)| (first, Some(last)));
            match (self.number(first), last.map(|last| self.number(last))) {
                // `5/15` begins at 5 and has no end.
                (Some(first), None) => (first, if step.is_some() { to } else { first }),
                (Some(first), Some(Some(last))) if first <= last => (first, last),
                (Some(_), Some(Some(_))) => return Err(format!("`{range}` ends before it begins")),
                _ => return Err(format!("`{item}` is no {}: expected {from} to {to}", self.name)),
            }
        };
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(usize::MAX);
        numbers.listed.extend((first..=last).step_by(step).map(|number| self.counted(number)));
        Ok(())
    }

    /// Sunday is the day 0 and the day 7.
    fn counted(&self, number: u32) -> u32 {
        if *self.bounds.end() == 7 { number % 7 } else { number }
    }

    fn named_day(&self, item: &str) -> Option<NamedDay> {
        match self.days {
            Days::No => None,
            Days::OfMonth => match item {
                "l" => Some(NamedDay::Last),
                "lw" => Some(NamedDay::LastWorking),
                _ => self.number(item.strip_suffix('w')?).map(NamedDay::Working),
            },
            Days::OfWeek => match item.split_once('#') {
                Some((day, week)) => {
                    let week = week.parse().ok().filter(|week| (1..=5).contains(week))?;
                    Some(NamedDay::NthOfWeek(self.counted(self.number(day)?), week))
                }
                None => Some(NamedDay::LastOfWeek(self.counted(self.number(item.strip_suffix('l')?)?))),
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
