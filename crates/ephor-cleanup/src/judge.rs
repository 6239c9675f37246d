//! What a policy says of one object.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::Resource;
use ephor_engine::cleanup::CleanupVerdict;
use ephor_engine::evaluation::Evaluation;
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::outcome::{Phase, Verdict};
use ephor_engine::redact::Redactor;
use ephor_engine::review::{Effects, Mode, Review};
use ephor_expr::budget::Interrupt;
use ephor_expr::{Str, Value};
use ephor_runtime::deadline::Deadline;
use ephor_runtime::facts::{self, Answers};
use ephor_runtime::redact::Learning;
use jiff::Timestamp;

use crate::policy::Body;

/// How long judging one object may take.
const MAX_DURATION: Duration = Duration::from_secs(30);

/// Whether an object goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// It is to be deleted.
    Delete,
    /// It stays.
    Keep,
    /// It cannot be told, so it stays.
    Unclear(Str),
}

/// Judges an object as it is stored. Values of Secrets do not appear in what is said.
pub fn judge(
    body: &Body,
    exceptions: &ExceptionSet,
    resource: &Resource,
    object: &Value,
    answers: &dyn Answers,
    now: Timestamp,
) -> Judged {
    let mut review = Review::of_object(object.clone(), now);
    review.mode = Mode::Scan;
    review.effects = Effects::Scan;
    let named = [("group", &resource.group), ("version", &resource.version), ("resource", &resource.plural)];
    let named = named.map(|(key, text)| (key, Value::from(text.clone())));
    review.attributes.insert("resource", Value::from(named));
    let learning = Learning::new(answers, Redactor::default());
    learning.learn([object]);
    let mut judged = match body {
        Body::Cleanup(program) => match facts::clean(program, &review, &learning) {
            CleanupVerdict::Delete => Judged::Delete,
            CleanupVerdict::Unselected | CleanupVerdict::Keep(_) => Judged::Keep,
            CleanupVerdict::Error(text, _) => Judged::Unclear(text),
        },
        Body::Deleting(body) => {
            let until: Arc<dyn Interrupt> =
                Arc::new(Deadline::blocking(Instant::now() + MAX_DURATION, &Arc::default()));
            let evaluation = Evaluation::new(&body.set, exceptions, review, Phase::Delete).interrupted_by(until);
            match facts::drive(evaluation, &learning).outcomes.into_iter().next() {
                Some(outcome) if outcome.verdict == Verdict::Pass => Judged::Delete,
                Some(outcome) if outcome.verdict == Verdict::Error => Judged::Unclear(outcome.message),
                _ => Judged::Keep,
            }
        }
    };
    if let Judged::Unclear(text) = &mut judged {
        learning.redact(std::iter::once(text));
    }
    judged
}
