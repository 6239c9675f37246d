//! The JSON of a decision for the page.

use ephor_engine::outcome::Verdict;
use ephor_expr::{Str, Value};
use ephor_runtime::explain::ExplainedRule;
use jiff::Timestamp;

/// How something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ended {
    /// A request was let in.
    #[default]
    Allowed,
    /// A request was refused.
    Denied,
    /// A rule did something by itself.
    Done,
    /// A rule tried, and could not.
    Failed,
}

impl Ended {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// One decision: what was asked or done, how it ended and why. No text in it shows a value of a Secret.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// What was done, for example `create`.
    pub verb: Str,
    /// The kind of the object.
    pub kind: Str,
    /// The subresource, or nothing.
    pub subresource: Str,
    /// The namespace, or nothing.
    pub namespace: Str,
    /// The name.
    pub name: Str,
    /// The path of the object in the API, if it has one.
    pub path: String,
    /// Who asked.
    pub user: Str,
    /// Whether the request was a dry run.
    pub dry_run: bool,
    /// How it ended.
    pub ended: Ended,
    /// What the client was told.
    pub message: String,
    /// The rules that apply.
    pub rules: Vec<ExplainedRule>,
    /// What was changed, as a unified diff.
    pub changed: String,
}

/// How long a text of a decision may be, in bytes: the page keeps hundreds of them.
const TEXT_LIMIT: usize = 16 << 10;

impl Decision {
    /// The decision as the page reads it.
    pub fn value(&self, now: Timestamp) -> Value {
        Value::from([
            ("time", Value::from(now.to_string())),
            ("verb", Value::from(self.verb.clone())),
            ("kind", Value::from(self.kind.clone())),
            ("subresource", Value::from(self.subresource.clone())),
            ("namespace", Value::from(self.namespace.clone())),
            ("name", Value::from(self.name.clone())),
            ("path", Value::from(self.path.as_str())),
            ("user", Value::from(self.user.clone())),
            ("dryRun", Value::Bool(self.dry_run)),
            ("ended", Value::from(self.ended.as_str())),
            ("message", Value::from(bounded(self.message.trim()))),
            ("rules", Value::array(self.rules.iter().map(rule).collect())),
            ("changed", Value::from(bounded(&self.changed))),
        ])
    }
}

/// The text, or its beginning and how much is missing.
fn bounded(text: &str) -> Str {
    if text.len() <= TEXT_LIMIT {
        return text.into();
    }
    let end = text.floor_char_boundary(TEXT_LIMIT);
    let begin = text.get(..end).unwrap_or_default();
    format!("{begin}\n… {} more bytes", text.len() - end).into()
}

fn rule(rule: &ExplainedRule) -> Value {
    let steps = rule.steps.iter().map(|step| {
        let place = step.path.as_ref().map(ToString::to_string).unwrap_or_default();
        Value::from([("place", Value::from(place)), ("text", Value::from(bounded(&step.text)))])
    });
    Value::from([
        ("policy", Value::from(rule.key.clone())),
        ("rule", Value::from(rule.name.clone())),
        ("verdict", Value::from(rule.verdict.map_or("", Verdict::as_str))),
        ("steps", Value::array(steps.collect())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character() {
        assert_eq!(bounded("short"), "short");
        let long = bounded(&"é".repeat(TEXT_LIMIT));
        assert!(long.ends_with("é\n… 16384 more bytes"), "{}", long.len());
    }
}
