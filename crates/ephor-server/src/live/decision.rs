//! A decision as the page gets it.

use ephor_engine::outcome::Verdict;
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_expr::{Str, Value};

use crate::explain::{ExplainedRule, Explanation};

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided<'m> {
    /// It was let in.
    Allowed,
    /// It was refused, with this message.
    Denied(&'m str),
}

/// One decision: what was asked, how it ended and why. Rules that do not apply are left out.
pub fn decision(review: &Review, decided: Decided<'_>, explanation: &Explanation) -> Value {
    let redact = Redactor::of([&review.object, &review.old_object]);
    let rules = explanation.rules.iter().filter(|rule| rule.verdict.is_some()).map(rule);
    let (allowed, message) = match decided {
        Decided::Allowed => (true, Str::default()),
        Decided::Denied(message) => (false, Str::from(redact.text(message.trim()).into_owned())),
    };
    Value::from([
        ("time", Value::from(review.now.strftime("%H:%M:%S").to_string())),
        ("operation", Value::from(review.operation.as_str())),
        ("kind", Value::from(review.gvk.kind.clone())),
        ("subresource", Value::from(review.subresource.clone())),
        ("namespace", Value::from(review.namespace.clone())),
        ("name", Value::from(review.name.clone())),
        ("user", Value::from(review.user.as_ref().map(|user| user.username.clone()).unwrap_or_default())),
        ("allowed", Value::Bool(allowed)),
        ("message", Value::from(message)),
        ("rules", Value::array(rules.collect())),
        ("changed", Value::from(explanation.changed.as_str())),
    ])
}

fn rule(rule: &ExplainedRule) -> Value {
    let steps = rule.steps.iter().map(|step| {
        let place = step.path.as_ref().map(ToString::to_string).unwrap_or_default();
        Value::from([("place", Value::from(place)), ("text", Value::from(step.text.as_str()))])
    });
    Value::from([
        ("policy", Value::from(rule.key.clone())),
        ("rule", Value::from(rule.name.clone())),
        ("verdict", Value::from(rule.verdict.map_or("", Verdict::as_str))),
        ("steps", Value::array(steps.collect())),
    ])
}
