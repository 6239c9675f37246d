//! A decision as the page gets it.

use ephor_engine::outcome::Verdict;
use ephor_expr::{Str, Value};
use jiff::Timestamp;

use crate::explain::ExplainedRule;

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
    /// Who asked.
    pub user: Str,
    /// How it ended.
    pub ended: Ended,
    /// What the client was told.
    pub message: String,
    /// The rules that apply.
    pub rules: Vec<ExplainedRule>,
    /// What was changed, as a unified diff.
    pub changed: String,
}

impl Decision {
    /// The decision as the page reads it.
    pub fn value(&self, now: Timestamp) -> Value {
        Value::from([
            ("time", Value::from(now.strftime("%H:%M:%S").to_string())),
            ("verb", Value::from(self.verb.clone())),
            ("kind", Value::from(self.kind.clone())),
            ("subresource", Value::from(self.subresource.clone())),
            ("namespace", Value::from(self.namespace.clone())),
            ("name", Value::from(self.name.clone())),
            ("user", Value::from(self.user.clone())),
            ("ended", Value::from(self.ended.as_str())),
            ("message", Value::from(self.message.trim())),
            ("rules", Value::array(self.rules.iter().map(rule).collect())),
            ("changed", Value::from(self.changed.as_str())),
        ])
    }
}

fn rule(rule: &ExplainedRule) -> Value {
    let steps = rule.steps.iter().map(|step| {
        let place = step.path.as_ref().map(ToString::to_string).unwrap_or_default();
        Value::from([("place", Value::from(place)), ("text", Value::from(step.text.clone()))])
    });
    Value::from([
        ("policy", Value::from(rule.key.clone())),
        ("rule", Value::from(rule.name.clone())),
        ("verdict", Value::from(rule.verdict.map_or("", Verdict::as_str))),
        ("steps", Value::array(steps.collect())),
    ])
}
