//! Evaluates the policies for one existing object.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_engine::evaluation::Evaluation;
use ephor_engine::fetch::{Fact, Fetch, Merger};
use ephor_engine::gate::AllowedFetch;
use ephor_engine::outcome::Phase;
use ephor_engine::redact::Redactor;
use ephor_engine::review::{Effects, Mode, Review};
use ephor_expr::budget::Interrupt;
use ephor_expr::{Str, Value};
use ephor_reports::Entry;
use ephor_runtime::deadline::Deadline;
use ephor_runtime::facts::{self, Answers};
use ephor_runtime::metrics::Metrics;
use ephor_runtime::redact::Learning;
use parking_lot::Mutex;

use crate::controller::answer_text;
use crate::reportable::Reportable;

/// How long judging one object may take, so that none keeps a worker from the others.
const MAX_DURATION: Duration = Duration::from_secs(30);

/// The result of evaluating an object.
#[derive(Debug)]
pub struct Judged {
    /// Its results, rendered without timestamps, in order of evaluation.
    pub results: Vec<Value>,
    /// What the rules asked for, and the answers as text.
    pub read: BTreeMap<AllowedFetch, String>,
}

/// Judges an object as a scan does: as if it were created now, by no user in particular.
pub fn judge(
    policies: &Reportable,
    object: &Value,
    namespace_labels: Option<Value>,
    answers: &dyn Answers,
    metrics: &Metrics,
    now: jiff::Timestamp,
) -> Judged {
    let mut review = Review::of_object(object.clone(), now);
    review.mode = Mode::Scan;
    review.effects = Effects::Scan;
    review.namespace_labels = namespace_labels;
    let recorded = Recorded { answers, read: Mutex::default() };
    let learning = Learning::new(&recorded, Redactor::default());
    learning.learn([object]);
    // How many objects are judged at once bounds what they build.
    let deadline: Arc<dyn Interrupt> = Arc::new(Deadline::blocking(Instant::now() + MAX_DURATION, &Arc::default()));
    let mut results = Vec::new();
    for (set, phase) in [(&policies.set, Phase::Validate), (&policies.mutating, Phase::Mutate)] {
        if set.programs().is_empty() {
            continue;
        }
        let begun = Instant::now();
        let evaluation = Evaluation::new(set, &policies.exceptions, review.clone(), phase);
        let evaluation = evaluation.interrupted_by(Arc::clone(&deadline));
        let mut outcomes = facts::drive(evaluation, &learning).outcomes;
        learning.redact_outcomes(&mut outcomes);
        let programs = set.programs();
        let rules = u32::try_from(outcomes.len()).unwrap_or(u32::MAX).max(1);
        let of_one = begun.elapsed() / rules;
        for same in outcomes.chunk_by(|a, b| a.policy == b.policy) {
            if let Some(program) = same.first().and_then(|outcome| programs.get(outcome.policy)) {
                let took = of_one * u32::try_from(same.len()).unwrap_or(u32::MAX);
                metrics.background_judged(program, &review, same, took);
            }
        }
        let entries = outcomes.iter().filter_map(|outcome| Some(Entry::of(programs.get(outcome.policy)?, outcome)));
        results.extend(entries.map(|entry| Value::object(entry.members())));
    }
    drop(learning);
    Judged { results, read: recorded.read.into_inner() }
}

/// Answers, of which the questions are kept.
struct Recorded<'a> {
    answers: &'a dyn Answers,
    read: Mutex<BTreeMap<AllowedFetch, String>>,
}

impl Answers for Recorded<'_> {
    fn answer(&self, fetch: &AllowedFetch) -> Fact {
        let fact = self.answers.answer(fetch);
        if !matches!(fetch.fetch(), Fetch::NamespaceLabels { .. }) {
            let mut read = self.read.lock();
            read.insert(fetch.clone(), answer_text(&fact));
        }
        fact
    }

    fn context_limit(&self) -> u64 {
        self.answers.context_limit()
    }

    fn merger(&self) -> Option<Arc<dyn Merger>> {
        self.answers.merger()
    }

    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value> {
        self.answers.secrets(fetch, answer)
    }
}

/// The text at `metadata.KEY` of an object.
pub(crate) fn text(object: &Value, key: &str) -> Str {
    Str::new(ephor_cluster::object::text(object, key))
}
