//! Schedules of cleanup policies: cron's five fields, or a word such as `@hourly`.

use std::ops::RangeInclusive;

use ephor_expr::scalar::duration::Duration;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const WORDS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// One of the five fields.
struct Field {
    name: &'static str,
    bounds: RangeInclusive<u32>,
    words: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", bounds: 0..=59, words: &[] },
    Field { name: "hour", bounds: 0..=23, words: &[] },
    Field { name: "day of the month", bounds: 1..=31, words: &[] },
    Field { name: "month", bounds: 1..=12, words: &MONTHS },
    Field { name: "day of the week", bounds: 0..=6, words: &DAYS },
];

/// What is wrong with a schedule.
pub(super) fn fault(text: &str) -> Option<String> {
    let mut rest = text.trim();
    if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
        rest = rest.split_once(char::is_whitespace).map_or("", |(_, schedule)| schedule.trim());
    }
    if let Some(every) = rest.strip_prefix("@every ") {
        return Duration::parse(every.trim()).is_err().then(|| format!("`{every}` is no duration"));
    }
    if rest.starts_with('@') {
        return (!WORDS.contains(&rest)).then(|| format!("`{rest}` is not one of {}", WORDS.join(", ")));
    }
    let parts: Vec<&str> = rest.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Some(format!("expected 5 fields, found {}", parts.len()));
    }
    FIELDS.iter().zip(parts).find_map(|(field, part)| part.split(',').find_map(|item| field.fault(item)))
}

impl Field {
    /// What is wrong with `*`, `n`, `n-m`, each with `/step` perhaps.
    fn fault(&self, item: &str) -> Option<String> {
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

    fn number(&self, text: &str) -> Option<u32> {
        let word = text.to_ascii_lowercase();
        let named = self.words.iter().position(|known| *known == word).map(|i| i as u32 + self.bounds.start());
        named.or_else(|| text.parse().ok()).filter(|n| self.bounds.contains(n))
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn schedules_are_crons() {
        for good in ["*/5 * * * *", "0 0 1,15 * MON-fri", "TZ=UTC 1-59/2 0 ? jan *", "@daily", "@every 1h30m"] {
            assert_eq!(fault(good), None, "{good}");
        }
        for (bad, want) in [
            ("* * * *", "expected 5 fields, found 4"),
            ("60 * * * *", "`60` is no minute: expected 0 to 59"),
            ("* * * * 7", "`7` is no day of the week: expected 0 to 6"),
            ("5-1 * * * *", "`5-1` ends before it begins"),
            ("*/0 * * * *", "the step of `*/0` is not a positive number"),
            ("@every day", "`day` is no duration"),
            ("@dayly", "`@dayly` is not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly"),
            ("", "expected 5 fields, found 0"),
        ] {
            assert_eq!(fault(bad).as_deref(), Some(want), "{bad}");
        }
    }
}
