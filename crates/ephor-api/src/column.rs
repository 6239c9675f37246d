//! A column of a table: its header and its cells.

use ephor_expr::{Str, Value};
use jiff::Timestamp;

use crate::json_path::{self, Step};

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    title: Str,
    kind: Str,
    /// Columns above 0 are for `-o wide`.
    priority: i64,
    content: Content,
}

/// What a cell shows.
#[derive(Debug, Clone)]
pub enum Content {
    /// The value at a path.
    At(&'static [&'static str]),
    /// The value at a path, or nothing.
    AtOrEmpty(&'static [&'static str]),
    /// How long ago the time at that path was.
    Since(&'static [&'static str]),
    /// How long ago the time at the first of these paths was that leads to one.
    SinceAny(&'static [&'static [&'static str]]),
    /// What the function makes of the object.
    Made(fn(&Value) -> Value),
    /// What a definition says.
    Path(Vec<Step>),
}

impl Column {
    /// A column that is always shown.
    pub const fn of(title: &'static str, kind: &'static str, content: Content) -> Self {
        Self { title: Str::new_static(title), kind: Str::new_static(kind), priority: 0, content }
    }

    /// The same for `-o wide` alone.
    #[must_use]
    pub fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }

    /// A column of a custom kind.
    pub fn custom(title: &str, kind: &str, priority: i64, path: Vec<Step>) -> Self {
        Self { title: title.into(), kind: kind.into(), priority, content: Content::Path(path) }
    }

    /// The column in the table's head.
    pub fn definition(&self) -> Value {
        let format = if self.title == "Name" { "name" } else { "" };
        // A time is shown as an age, which is text.
        let kind = if self.kind == "date" { Str::new_static("string") } else { self.kind.clone() };
        Value::from([
            ("description", Value::from(self.title.clone())),
            ("format", Value::from(format)),
            ("name", Value::from(self.title.clone())),
            ("priority", Value::Int(self.priority)),
            ("type", Value::from(kind)),
        ])
    }

    /// The cell of an object.
    pub fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.content {
            Content::At(path) => object.at(path).cloned().map_or_else(|| Value::from("<none>"), scalar),
            Content::AtOrEmpty(path) => object.at(path).cloned().map_or_else(|| Value::from(""), scalar),
            Content::Since(path) => age_of(object.str_at(path), now),
            Content::SinceAny(paths) => age_of(paths.iter().find_map(|path| object.str_at(path)), now),
            Content::Made(make) => make(object),
            Content::Path(path) => {
                let found = json_path::find(object, path);
                match (self.kind.as_str(), found.as_slice()) {
                    (_, []) => Value::Null,
                    ("date", [one, ..]) => age_of(one.as_str(), now),
                    ("integer" | "number" | "boolean", [one, ..]) => (*one).clone(),
                    (_, [one]) => scalar((*one).clone()),
                    (_, more) => {
                        let texts: Vec<String> =
                            more.iter().map(|v| v.as_str().map_or_else(|| v.to_json(), str::to_owned)).collect();
                        Value::from(texts.join(","))
                    }
                }
            }
        }
    }
}

fn scalar(value: Value) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) => Value::from(value.to_json()),
        scalar => scalar,
    }
}

/// The time since then as kubectl words it: two units at most, one where it is long ago.
fn age_of(since: Option<&str>, now: Timestamp) -> Value {
    let Some(since) = since.and_then(|text| text.parse::<Timestamp>().ok()) else { return Value::from("<unknown>") };
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |a: i64, unit: &str, b: i64, small: &str| {
        if b == 0 { format!("{a}{unit}") } else { format!("{a}{unit}{b}{small}") }
    };
    let text = if seconds < 120 {
        format!("{seconds}s")
    } else if seconds < 600 {
        two(minutes, "m", seconds % 60, "s")
    } else if hours < 3 {
        format!("{minutes}m")
    } else if hours < 8 {
        two(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        two(days, "d", hours % 24, "h")
    } else if days < 730 {
        format!("{days}d")
    } else {
        two(days / 365, "y", days % 365, "d")
    };
    Value::from(text)
}

/// The first column of every table.
pub fn name() -> Column {
    Column::of("Name", "string", Content::At(&["metadata", "name"]))
}

/// The last column of nearly every table.
pub fn age() -> Column {
    Column::of("Age", "string", Content::Since(&["metadata", "creationTimestamp"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_worded_as_kubectl_does() {
        let then: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (seconds, want) in [
            (0, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (600, "10m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (100_000, "27h"),
            (200_000, "2d7h"),
            (8 * 86_400, "8d"),
            (800 * 86_400, "2y70d"),
        ] {
            let now = then + jiff::SignedDuration::from_secs(seconds);
            assert_eq!(age_of(Some("2026-01-01T00:00:00Z"), now), Value::from(want), "{seconds}");
        }
    }
}
