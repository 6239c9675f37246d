//! Arguments and environment into values of flags.
//!
//! As Go's flag package reads them: one dash or two, `-name=value` or `-name value`, and switches without a value.
//! Upstream's toggles may also come from the environment; a flag wins.

use std::collections::BTreeMap;
use std::time::Duration;

use ephor_expr::scalar::duration;
use ephor_expr::scalar::nearest::nearest;

use super::table::{Effect, FLAGS, Flag, For, Shape};

/// Why a role cannot be started like this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// There is no such flag.
    #[error("unknown flag `--{name}`{}", near.map(|near| format!(" (did you mean `--{near}`?)")).unwrap_or_default())]
    UnknownFlag {
        /// As written.
        name: String,
        /// The nearest that exists.
        near: Option<&'static str>,
    },
    /// There is no such toggle.
    #[error("unknown variable `{name}`{}", near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default())]
    UnknownVariable {
        /// As written.
        name: String,
        /// The nearest that exists.
        near: Option<&'static str>,
    },
    /// Something that is no flag.
    #[error("unexpected argument `{0}`")]
    Stray(String),
    /// The flag needs a value.
    #[error("flag `--{0}` needs a value")]
    NoValue(&'static str),
    /// The value is not what the flag takes.
    #[error("`{value}` is not a value of {source_name}: expected {expected}")]
    BadValue {
        /// Flag or variable.
        source_name: String,
        /// As written.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// The flag is known and what it asks for does not exist here.
    #[error("`--{name}={value}` is not supported yet: {why}; only the default `{default}` is accepted")]
    NotSupported {
        /// The flag.
        name: &'static str,
        /// As written.
        value: String,
        /// What is accepted.
        default: &'static str,
        /// What is missing.
        why: &'static str,
    },
}

/// The value of every flag of a role.
#[derive(Debug, Clone)]
pub(super) struct Values {
    texts: BTreeMap<&'static str, String>,
    /// Flags that were given and have no effect, with the reason.
    pub(super) without_effect: Vec<(&'static str, &'static str)>,
}

/// Whose flags are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reader {
    /// A role that is alone in its process.
    Alone(For),
    /// One of the roles of a process. Flags of the others are known and do not count. A flag of several roles is the
    /// admission role's if that has it: there is one certificate, one port and one switch for results of requests.
    Together(For),
}

impl Reader {
    /// Whether the flag counts for the role.
    fn takes(self, flag: &Flag) -> bool {
        let (Self::Alone(role) | Self::Together(role)) = self;
        let own = flag.role == For::All || flag.role == role;
        own && match self {
            Self::Alone(_) => true,
            Self::Together(_) => is_of_together(flag),
        }
    }

    /// Whether the flag may be given.
    fn accepts(self, flag: &Flag) -> bool {
        match self {
            Self::Alone(_) => self.takes(flag),
            Self::Together(_) => is_of_together(flag),
        }
    }

    /// Whether the role asks for the flag's value.
    fn needs(self, flag: &Flag) -> bool {
        let (Self::Alone(role) | Self::Together(role)) = self;
        flag.role == For::All || flag.role == role
    }
}

/// Whether a process with all roles has the flag.
fn is_of_together(flag: &Flag) -> bool {
    let of_admission = || FLAGS.iter().any(|other| other.role == For::Admission && other.name == flag.name);
    // The port of the webhooks answers probes.
    flag.role == For::Admission || (flag.name != "healthPort" && !of_admission())
}

/// Reads arguments and toggles for a role.
pub(super) fn parse(
    reader: Reader,
    arguments: &[String],
    variables: &BTreeMap<String, String>,
) -> Result<Values, SettingsError> {
    let known = || FLAGS.iter().filter(|flag| reader.accepts(flag));
    let mut values = Values { texts: BTreeMap::new(), without_effect: Vec::new() };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let body = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')).unwrap_or_default();
        if body.is_empty() || body.starts_with(['-', '=']) {
            return Err(SettingsError::Stray(argument.clone()));
        }
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (body, None),
        };
        let named = || known().filter(|flag| flag.name == name);
        let flag = named().find(|flag| reader.takes(flag)).or_else(|| named().next());
        let flag = flag.ok_or_else(|| SettingsError::UnknownFlag {
            name: name.to_owned(),
            near: nearest(name, known().map(|flag| flag.name))
                .and_then(|near| known().map(|f| f.name).find(|n| *n == near)),
        })?;
        let value = match value {
            Some(value) => value,
            None if flag.shape == Shape::Switch => "true".to_owned(),
            None => rest.next().ok_or(SettingsError::NoValue(flag.name))?.clone(),
        };
        if reader.takes(flag) {
            values.take(flag, value, &format!("flag `--{}`", flag.name))?;
        }
    }
    for (variable, value) in variables.iter().filter(|(name, _)| name.starts_with("FLAG_")) {
        // The environment is shared by all roles: toggles of another one are known and do not count.
        let flag = FLAGS.iter().find(|flag| flag.variable == Some(variable.as_str())).ok_or_else(|| {
            let names = || FLAGS.iter().filter_map(|flag| flag.variable);
            let near = nearest(variable, names()).and_then(|near| names().find(|name| *name == near));
            SettingsError::UnknownVariable { name: variable.clone(), near }
        })?;
        if reader.takes(flag) && !values.texts.contains_key(flag.name) && !value.is_empty() {
            values.take(flag, value.clone(), &format!("variable `{variable}`"))?;
        }
    }
    for flag in FLAGS.iter().filter(|flag| reader.needs(flag)) {
        values.texts.entry(flag.name).or_insert_with(|| flag.default.to_owned());
    }
    Ok(values)
}

impl Values {
    fn take(&mut self, flag: &Flag, value: String, source_name: &str) -> Result<(), SettingsError> {
        if let Some(expected) = misfit(flag.shape, &value) {
            return Err(SettingsError::BadValue { source_name: source_name.to_owned(), value, expected });
        }
        match flag.effect {
            Effect::Missing(why) if !same(flag.shape, &value, flag.default) => {
                let default = flag.default;
                return Err(SettingsError::NotSupported { name: flag.name, value, default, why });
            }
            Effect::None(why) if !same(flag.shape, &value, flag.default) => self.without_effect.push((flag.name, why)),
            _ => {}
        }
        self.texts.insert(flag.name, value);
        Ok(())
    }

    /// The text of a flag.
    pub(super) fn text(&self, name: &str) -> &str {
        debug_assert!(self.texts.contains_key(name), "no flag `{name}`");
        self.texts.get(name).map_or("", String::as_str)
    }

    /// The text of a flag, or what it is when it is empty.
    pub(super) fn text_or(&self, name: &str, default: impl FnOnce() -> String) -> String {
        match self.text(name) {
            "" => default(),
            text => text.to_owned(),
        }
    }

    /// The entries of a comma list.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        self.text(name).split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    }

    /// The value of a switch.
    pub(super) fn switch(&self, name: &str) -> bool {
        switch(self.text(name)).unwrap_or_default()
    }

    /// The value of a number.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// The value of a port.
    pub(super) fn port(&self, name: &str) -> u16 {
        self.text(name).parse().unwrap_or_default()
    }

    /// The value of a duration.
    pub(super) fn time(&self, name: &str) -> Duration {
        time(self.text(name)).unwrap_or_default()
    }

    /// The error for a value that only the flag's own meaning rules out.
    pub(super) fn refuse(&self, name: &str, expected: &'static str) -> SettingsError {
        let value = self.text(name).to_owned();
        SettingsError::BadValue { source_name: format!("flag `--{name}`"), value, expected }
    }
}

/// The words of Go's `strconv.ParseBool`.
fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn time(text: &str) -> Option<Duration> {
    duration::Duration::parse(text).ok().and_then(|d| u64::try_from(d.0).ok()).map(Duration::from_nanos)
}

fn misfit(shape: Shape, value: &str) -> Option<&'static str> {
    let (fits, expected) = match shape {
        Shape::Switch => (switch(value).is_some(), "`true` or `false`"),
        Shape::Text => (true, "a text"),
        Shape::Count => (value.parse::<u64>().is_ok(), "a whole number"),
        Shape::Number => (value.parse::<f64>().is_ok_and(|n| n.is_finite() && n >= 0.0), "a number"),
        Shape::Time => (time(value).is_some(), "a duration such as `90s`"),
        Shape::Port => (value.parse::<u16>().is_ok(), "a port"),
    };
    (!fits).then_some(expected)
}

/// Whether two spellings mean the same.
fn same(shape: Shape, a: &str, b: &str) -> bool {
    a == b
        || match shape {
            Shape::Switch => switch(a) == switch(b),
            Shape::Time => time(a) == time(b),
            Shape::Number => a.parse::<f64>().ok() == b.parse::<f64>().ok(),
            Shape::Text | Shape::Count | Shape::Port => false,
        }
}
