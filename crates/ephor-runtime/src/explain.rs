//! Why rules come to their verdicts for one review: what `ephor explain` prints and the sandbox's page shows.

use ephor_engine::evaluation::{Done, Evaluation};
use ephor_engine::exceptions::ExceptionSet;
use ephor_engine::outcome::{Outcome, Phase, Verdict};
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_engine::trace::{FilterNote, Note, Part, RuleTrace};
use ephor_expr::value::Path;
use ephor_expr::yaml::to_yaml;
use ephor_expr::{Str, Value};
use similar::TextDiff;

use crate::facts::{Answers, drive};
use crate::redact::Learning;

/// The way of one review through all phases. No text in it shows a value of a Secret.
#[derive(Debug, Default)]
pub struct Explanation {
    /// The rules of all policies, by phase, in order of evaluation.
    pub rules: Vec<ExplainedRule>,
    /// What mutation changed, as a unified diff of YAML; empty if nothing.
    pub changed: String,
}

/// One rule for the review.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedRule {
    /// Index of the policy in its set.
    pub policy: usize,
    /// The policy's `namespace/name`, or name.
    pub key: Str,
    /// The rule's name.
    pub name: Str,
    /// Where the rule stands in the policy.
    pub path: Path,
    /// The verdict; `None` if the rule does not apply.
    pub verdict: Option<Verdict>,
    /// How it came to it, in order; the message last.
    pub steps: Vec<ExplainedStep>,
    /// Whether auto-gen made it for other kinds.
    pub for_others: bool,
}

/// One step, in words.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedStep {
    /// The place in the policy that it is about.
    pub path: Option<Path>,
    /// What was found.
    pub text: Str,
}

impl ExplainedStep {
    /// A step that is about no place of the policy.
    pub fn plain(text: impl Into<Str>) -> Self {
        Self { path: None, text: text.into() }
    }
}

impl Explanation {
    /// Takes a review through all phases, in their order.
    pub fn of(
        set: &PolicySet,
        exceptions: &ExceptionSet,
        mut review: Review,
        answers: &(impl Answers + ?Sized),
    ) -> Self {
        let answers = &Learning::new(answers, Redactor::of([&review.object, &review.old_object]));
        let mut explanation = Self::default();
        let stored = review.stored();
        for phase in [Phase::Mutate, Phase::Validate, Phase::Generate, Phase::MutateExisting, Phase::Delete] {
            let about = if phase == Phase::Delete { stored.clone() } else { review.clone() };
            let done = drive(Evaluation::new(set, exceptions, about, phase).traced(), answers);
            let redact = answers.secrets();
            let explained = done.traces.iter().filter_map(|trace| ExplainedRule::of(set, trace, &done, &redact));
            explanation.rules.extend(explained);
            if phase == Phase::Mutate && done.object != review.object {
                explanation.changed = difference(&review.object, &done.object);
                review.object = done.object;
            }
        }
        let mut changed = Str::from(std::mem::take(&mut explanation.changed));
        let steps = explanation.rules.iter_mut().flat_map(|rule| &mut rule.steps);
        answers.redact(steps.map(|step| &mut step.text).chain([&mut changed]));
        explanation.changed = changed.into();
        explanation
    }

    /// Whether a rule was violated or could not be judged.
    pub fn is_bad(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.verdict, Some(Verdict::Fail | Verdict::Error)))
    }
}

/// What is different in the second object: a unified diff of YAML, without values of Secrets.
pub fn difference(before: &Value, after: &Value) -> String {
    let (old, new) = (to_yaml(before), to_yaml(after));
    let diff = TextDiff::from_lines(&old, &new).unified_diff().context_radius(2).to_string();
    Redactor::of([before, after]).text(&diff).into_owned()
}

impl ExplainedRule {
    /// A rule of that name of which nothing else is known.
    pub fn named(name: Str) -> Self {
        Self {
            policy: 0,
            key: Str::default(),
            name,
            path: Path(Vec::new()),
            verdict: None,
            steps: Vec::new(),
            for_others: false,
        }
    }

    /// The way of a rule to its verdict, in words without values that `redact` knows; `None` for a rule that is not in
    /// `set`.
    pub fn of(set: &PolicySet, trace: &RuleTrace, done: &Done, redact: &Redactor) -> Option<Self> {
        let program = set.programs().get(trace.policy)?;
        let rule = program.rules.get(trace.index)?;
        let outcome = done.outcomes.iter().find(|o| o.policy == trace.policy && o.index == trace.index);
        let mut steps: Vec<_> = trace.notes.iter().flat_map(|note| told(note, &rule.path, redact)).collect();
        steps.extend(outcome.into_iter().flat_map(conclusion));
        for step in &mut steps {
            step.text = redact.text(&step.text).into();
        }
        Some(Self {
            policy: trace.policy,
            key: program.key.clone(),
            name: rule.name.clone(),
            path: rule.path.clone(),
            verdict: outcome.map(|outcome| outcome.verdict),
            steps,
            for_others: matches!(trace.notes.as_slice(), [Note::OtherController(_)]),
        })
    }
}

/// What the outcome adds to the steps: the message at the place of the fault, and what is made.
fn conclusion(outcome: &Outcome) -> Vec<ExplainedStep> {
    let detail = outcome.detail.as_deref();
    let fault = detail.and_then(|detail| detail.fault.as_ref());
    let mut steps = Vec::new();
    if !outcome.message.is_empty() {
        steps.push(ExplainedStep { path: fault.map(|fault| fault.path.clone()), text: outcome.message.clone() });
    }
    steps.extend(fault.and_then(|fault| fault.help.clone()).map(ExplainedStep::plain));
    for downstream in detail.into_iter().flat_map(|detail| &detail.generated) {
        steps.push(ExplainedStep::plain(format!("makes {}", name_of(&downstream.object))));
    }
    for target in detail.into_iter().flat_map(|detail| &detail.targets) {
        let word = if target.before == target.after { "leaves" } else { "changes" };
        steps.push(ExplainedStep::plain(format!("{word} {}", name_of(&target.before))));
    }
    steps
}

/// An object as people name it: `Kind namespace/name`.
pub fn name_of(object: &Value) -> String {
    let text = |keys: &[&str]| object.str_at(keys).unwrap_or_default();
    let namespace = text(&["metadata", "namespace"]);
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{} {namespace}{slash}{}", text(&["kind"]), text(&["metadata", "name"]))
}

/// A note in words, and the parts of an expression below it.
fn told(note: &Note, rule: &Path, redact: &Redactor) -> Vec<ExplainedStep> {
    let mut steps = vec![step(note, rule, redact)];
    if let Note::Evaluated { parts, .. } = note {
        steps.extend(parts.iter().map(|part| ExplainedStep::plain(part_told(part, redact))));
    }
    steps
}

/// A part of an expression and its values. One within a fold has several.
fn part_told(part: &Part, redact: &Redactor) -> String {
    let indent = "  ".repeat(part.depth.min(MOST_INDENTED) + 1);
    let mut values: Vec<String> = part.values.iter().map(|value| found(value, redact)).collect();
    if part.more > 0 {
        values.push(format!("… and {} more", part.more));
    }
    let is = if matches!(part.values.first(), Some(Err(_))) { "" } else { "= " };
    format!("{indent}`{}` {is}{}", one_line(&part.text, redact), values.join(", "))
}

/// How many levels parts of expressions are indented.
const MOST_INDENTED: usize = 8;

fn found(value: &Result<Value, String>, redact: &Redactor) -> String {
    match value {
        Ok(value) => short(value, redact),
        Err(error) => format!("fails: {}", shortened(error, redact)),
    }
}

/// An expression in one line.
fn one_line(text: &str, redact: &Redactor) -> String {
    shortened(&text.split_whitespace().collect::<Vec<_>>().join(" "), redact)
}

/// A note in words, and its place in the policy.
fn step(note: &Note, rule: &Path, redact: &Redactor) -> ExplainedStep {
    match note {
        Note::OtherNamespace(own) => ExplainedStep::plain(format!("the policy is for namespace {own} only")),
        Note::OtherController(kinds) => ExplainedStep::plain(format!("made by auto-gen for {}", kinds.join(", "))),
        Note::Match(filter) => selection(filter, rule, "selects the resource"),
        Note::Exclude(filter) => selection(filter, rule, "takes the resource out"),
        Note::Loaded { entry, value } => ExplainedStep::plain(format!("context {entry} = {}", short(value, redact))),
        Note::Compared { path, key, operator, value, holds } => {
            let word = if *holds { "holds" } else { "does not hold" };
            let comparison = format!("{} {} {}", short(key, redact), operator.as_str(), short(value, redact));
            let text = format!("{}: {comparison}: {word}", relative(path, rule));
            ExplainedStep { path: Some(path.clone()), text: text.into() }
        }
        Note::Evaluated { path, text, value, .. } => {
            let value = match value {
                Ok(value) => format!("= {}", short(value, redact)),
                Err(error) => format!("fails: {error}"),
            };
            let text = format!("{}: `{}` {value}", relative(path, rule), one_line(text, redact));
            ExplainedStep { path: Some(path.clone()), text: text.into() }
        }
    }
}

fn selection(filter: &FilterNote, rule: &Path, selects: &str) -> ExplainedStep {
    let place = relative(&filter.path, rule);
    let text = match filter.unmet {
        None => format!("{place} {selects}"),
        Some(attribute) => format!("{place} does not: {attribute}"),
    };
    ExplainedStep { path: Some(filter.path.clone()), text: text.into() }
}

/// A path as seen from the rule; one that leads elsewhere in the policy as it is.
fn relative(path: &Path, rule: &Path) -> String {
    Path(path.0.strip_prefix(rule.0.as_slice()).unwrap_or(&path.0).to_vec()).to_string()
}

/// How much of a value is shown.
const SHOWN: usize = 100;

fn short(value: &Value, redact: &Redactor) -> String {
    shortened(&value.to_json(), redact)
}

/// The beginning of a text. What may not be shown goes first: its beginning would not be known for it.
fn shortened(text: &str, redact: &Redactor) -> String {
    let text = redact.text(text);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}
