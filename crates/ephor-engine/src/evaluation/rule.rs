//! One rule for one review: match, preconditions, exceptions, body.

use std::cell::OnceCell;

use ephor_expr::jmespath::Runtime as _;
use ephor_expr::{Map, Str, Value};

use super::step::{Author, Meter};
use crate::cel::{self, Matched, Stop};
use crate::compile::{Body, CompiledRule, GeneratedContent, Program, ValidateBody, ValidateCheck};
use crate::exceptions::ExceptionSet;
use crate::fetch::{Fact, Facts, Fetch};
use crate::gate::{AllowedFetch, Asker};
use crate::matching::{MatchError, MatchInput, NamespaceLabels, UserInfo, applies};
use crate::outcome::{Detail, Fault, MAX_MESSAGE, Outcome, RuleKind, Verdict, bounded};
use crate::policy::{FailurePolicy, Operation};
use crate::review::{Mode, Review};
use crate::rules::conditions;
use crate::rules::judgement::{Judgement, Pending};
use crate::rules::validate::pod_security::PodSecurityOutcome;
use crate::rules::{generate, mutate, validate};
use crate::scope::{Answer, Scope, Seed, World};
use crate::select::RuleRef;
use crate::trace::Note;

/// One rule about to run.
pub(super) struct RuleRun<'e> {
    pub(super) program: &'e Program,
    pub(super) rule: &'e CompiledRule,
    pub(super) reference: RuleRef,
    pub(super) review: &'e Review,
    /// What rules derive from the review, made by the first that needs it.
    pub(super) derived: &'e Derived,
    /// The labels of its namespace, if they are known.
    pub(super) namespace_labels: Option<&'e Map>,
    pub(super) exceptions: &'e ExceptionSet,
    pub(super) facts: &'e Facts,
    /// Whether the rule has asked often enough: a further question is an error.
    pub(super) give_up: bool,
    /// Whether the rule does what it is for.
    pub(super) bodies: Bodies,
    /// Whether the steps are wanted.
    pub(super) traced: bool,
    pub(super) meter: &'e Meter,
}

/// What looking at a rule counts for, in evaluation steps, beside what its blocks look at.
const RULE_STEPS: u64 = 16;

/// What all rules derive from a review alike, until a patch changes the object.
#[derive(Default)]
pub(super) struct Derived {
    /// The `request` variable.
    request: OnceCell<Value>,
    /// The steps of testing a `match` and an `exclude` block.
    matching: OnceCell<u64>,
}

/// Whether rules do what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bodies {
    /// They do.
    Run,
    /// They only tell that they apply.
    LeftAlone,
}

/// The result of a rule.
pub(super) enum Ran {
    /// It does not apply, or has nothing to say.
    NoResponse,
    /// It is judged; the object after, if it changed.
    Judged(Outcome, Option<Value>),
    /// Facts are missing.
    Needs(Vec<AllowedFetch>),
}

/// How many bytes an evaluation keeps of what a rule has `built`: its texts, and all of it if they are in objects.
fn kept(judgement: &Judgement, is_changed: bool, built: u64) -> u64 {
    if is_changed || judgement.detail.as_deref().is_some_and(Detail::has_objects) {
        return built;
    }
    built.min(judgement.message.len().min(MAX_MESSAGE) as u64)
}

/// A property of a report, which is not longer than a message.
fn bounded_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(bounded(text)),
        Value::Array(_) | Value::Object(_) => {
            let json = value.to_json();
            if json.len() > MAX_MESSAGE { Value::String(bounded(json.into())) } else { value }
        }
        scalar => scalar,
    }
}

type Answered = Result<Option<(Judgement, Option<Value>)>, Pending>;

impl<'e> RuleRun<'e> {
    /// Runs the rule; `notes` gets its steps, if they are wanted.
    pub(super) fn run(&self, notes: &mut Vec<Note>) -> Ran {
        let asker = Asker { namespace: self.program.id.namespace.as_deref(), effects: self.review.effects };
        let seed = Seed { policy: &self.program.key, rule: &self.rule.name, review: self.review.seed };
        let author = Author::of(self.program);
        let budget = self.meter.budget(author);
        let most = budget.bytes_left();
        let mut world = World::new(self.facts, asker, self.review.now, seed, budget);
        if self.traced {
            world.trace();
        }
        let judged = match world.budget().charge_steps(self.matching_steps()) {
            Ok(()) => self.judge(&world),
            Err(error) => {
                let text = format!("cannot tell whether the rule matches: {error}");
                Ok(Some((Judgement::new(Verdict::Error, text), None)))
            }
        };
        let kept = match &judged {
            Ok(Some((judgement, after))) => kept(judgement, after.is_some(), most - world.budget().bytes_left()),
            _ => 0,
        };
        self.meter.read(world.budget(), author, kept);
        *notes = world.take_notes();
        match judged {
            Ok(None) => Ran::NoResponse,
            Ok(Some((judgement, after))) => Ran::Judged(self.outcome(judgement), after),
            Err(Pending) if self.give_up => {
                let judgement = Judgement::new(Verdict::Error, "the rule asks for data without end");
                Ran::Judged(self.outcome(judgement), None)
            }
            Err(Pending) => Ran::Needs(world.into_needs()),
        }
    }

    /// The steps of `match` and `exclude`, whose wildcards are compared with texts of the request.
    fn matching_steps(&self) -> u64 {
        *self.derived.matching.get_or_init(|| {
            let Review { name, namespace, user, .. } = self.review;
            let groups = |user: &UserInfo| user.groups.iter().map(|group| group.len() + 16).sum::<usize>();
            let user = user.as_ref().map_or(0, |user| user.username.len() + groups(user));
            let metadata = self.review.subject().get("metadata");
            let pairs = |key| metadata.and_then(|m| m.get(key)).and_then(Value::as_object).map_or(0, Map::len) * 64;
            let texts = name.len() + namespace.len() + user + pairs("labels") + pairs("annotations");
            RULE_STEPS + texts as u64 / 16
        })
    }

    fn outcome(&self, judgement: Judgement) -> Outcome {
        let judgement = if judgement.verdict == Verdict::Error { self.placed(judgement) } else { judgement };
        let unscored = judgement.verdict == Verdict::Fail && self.program.scoring.unscored;
        Outcome {
            policy: self.reference.policy as usize,
            index: self.reference.rule as usize,
            rule: self.rule.name.clone(),
            kind: self.rule.body.kind(),
            verdict: if unscored { Verdict::Warn } else { judgement.verdict },
            message: bounded(judgement.message),
            detail: judgement.detail,
        }
    }

    /// An error that names no place in the policy is one of the whole rule.
    fn placed(&self, judgement: Judgement) -> Judgement {
        judgement.with(|detail| {
            let known = detail.fault.as_ref().is_some_and(|fault| !fault.path.0.is_empty());
            if !known {
                detail.fault = Some(Fault { path: self.rule.path.clone(), offset: None, help: None });
            }
        })
    }

    /// How the rule's `match` and `exclude` see the object.
    pub(super) fn explain_selection(&self) -> Vec<Note> {
        let (input, path) = (self.input(), &self.rule.path);
        let matched = self.rule.matches.explain_match(&input, &path.key("match"));
        let excluded = self.rule.exclude.iter().flat_map(|e| e.explain_exclude(&input, &path.key("exclude")));
        matched.into_iter().map(Note::Match).chain(excluded.map(Note::Exclude)).collect()
    }

    fn judge(&self, world: &'e World<'e>) -> Answered {
        let matched = self.matches(world)?;
        if self.traced {
            for note in self.explain_selection() {
                world.note(|| note);
            }
        }
        let Some(matched) = matched else { return Ok(None) };
        if let Err(judgement) = matched {
            return Ok(Some((judgement, None)));
        }
        match self.meets_conditions(world)? {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(judgement) => return Ok(Some((judgement, None))),
        }
        let request = self.derived.request.get_or_init(|| Value::object(self.review.request_value())).clone();
        let mut scope = Scope::new(world, self.review, request, &self.rule.declared, &self.rule.context);
        if let Some(block) = &self.rule.preconditions {
            match conditions::evaluate(block, &mut scope) {
                Ok(outcome) if outcome.holds => {}
                Ok(outcome) => {
                    let text = match outcome.message() {
                        Some(reasons) => Str::from(format!("preconditions not met; {reasons}")),
                        None => Str::new_static("preconditions not met"),
                    };
                    return Ok(Some((Judgement::new(Verdict::Skip, text), None)));
                }
                Err(error) => {
                    let (text, fault) = error.into_failure()?;
                    let message = format!("failed to evaluate preconditions: {text}");
                    return Ok(Some((Judgement::error_at(message, fault), None)));
                }
            }
        }
        let properties = self.properties(&mut scope)?;
        let (judgement, after) = match self.excepted(&mut scope)? {
            Some(judgement) => (judgement, None),
            None if self.bodies == Bodies::LeftAlone => match self.applies_alone(&scope)? {
                None => return Ok(None),
                Some(judgement) => (judgement, None),
            },
            None => match self.body(world, &mut scope)? {
                None => return Ok(None),
                Some(judged) => judged,
            },
        };
        let judgement =
            if properties.is_empty() { judgement } else { judgement.with(|detail| detail.properties = properties) };
        Ok(Some((judgement, after)))
    }

    /// Whether the review meets the conditions of the policy's webhook; an error judgement if they fail. Requests of an
    /// API server have met them.
    fn meets_conditions(&self, world: &World<'_>) -> Result<Result<bool, Judgement>, Pending> {
        // A policy of `policies.kyverno.io` evaluates its conditions itself.
        let by_itself = self.program.id.kind.is_of_cel();
        if by_itself || self.program.requests.is_unconditional() || self.review.mode == Mode::Admission {
            return Ok(Ok(true));
        }
        let inputs = cel::Inputs::new(self.review, world);
        let failed = |text: String| {
            let text = format!("cannot tell whether the rule matches: {text}");
            Ok(Err(Judgement::new(Verdict::Error, text)))
        };
        match cel::Evaluator::new(&self.program.requests, &inputs, &Value::Null).matches() {
            Ok(Matched::Yes) => Ok(Ok(true)),
            Ok(Matched::No(_)) => Ok(Ok(false)),
            // The API server does not call the webhook then.
            Ok(Matched::Failed(_)) if self.program.failure_policy == FailurePolicy::Ignore => Ok(Ok(false)),
            Ok(Matched::Failed(text)) => failed(text),
            Err(Stop::Pending) => Err(Pending),
            Err(Stop::Spent(error)) => failed(error.to_string()),
        }
    }

    fn properties(&self, scope: &mut Scope<'_>) -> Result<Map, Pending> {
        let mut properties = Map::new();
        for (key, template, _) in &self.rule.properties {
            match template.resolve(scope) {
                Ok(value) => properties.insert(key.clone(), bounded_value(value)),
                Err(error) if error.is_pending() => return Err(Pending),
                // One that cannot be resolved leaves all as they are written.
                Err(_) => {
                    let raw = self.rule.properties.iter();
                    return Ok(raw.map(|(key, _, text)| (key.clone(), Value::from(text.clone()))).collect());
                }
            };
        }
        Ok(properties)
    }

    /// Whether the rule applies: `None` if not, an error judgement if it could not be told.
    fn matches(&self, world: &World<'_>) -> Result<Option<Result<(), Judgement>>, Pending> {
        match applies(&self.rule.matches, self.rule.exclude.as_ref(), &self.input()) {
            Ok(true) => Ok(Some(Ok(()))),
            Ok(false) => Ok(None),
            Err(MatchError::NamespaceLabelsUnavailable { namespace }) => {
                match world.ask(Fetch::NamespaceLabels { name: namespace.clone() }) {
                    Answer::Pending => Err(Pending),
                    Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason) | Fact::Unavailable(reason)) => {
                        let text = format!(
                            "cannot tell whether the rule matches: labels of namespace `{namespace}`: {reason}"
                        );
                        Ok(Some(Err(Judgement::new(Verdict::Error, text))))
                    }
                    Answer::Known(_) | Answer::Refused(_) => {
                        let text = format!("cannot tell whether the rule matches: no namespace `{namespace}`");
                        Ok(Some(Err(Judgement::new(Verdict::Error, text))))
                    }
                }
            }
        }
    }

    fn input(&self) -> MatchInput<'e> {
        input(self.review, self.namespace_labels.map_or(NamespaceLabels::Unknown, NamespaceLabels::Known))
    }

    fn excepted(&self, scope: &mut Scope<'e>) -> Result<Option<Judgement>, Pending> {
        // An API server knows no exceptions, and policies of `policies.kyverno.io` look at theirs themselves.
        let kind = self.program.id.kind;
        if self.exceptions.is_empty() || kind.is_of_kubernetes() || kind.is_of_cel() {
            return Ok(None);
        }
        let scanning = self.review.mode == Mode::Scan;
        let applying = self.exceptions.applying(&self.program.key, &self.rule.name, &self.input(), scanning, scope)?;
        let Some(excepted) = applying else { return Ok(None) };
        let keys = excepted.keys.join(", ");
        let pod_security = match &self.rule.body {
            Body::Validate(body) => match &body.check {
                ValidateCheck::PodSecurity(check) => Some(check),
                _ => None,
            },
            _ => None,
        };
        let skip = |text: String| {
            Judgement::new(Verdict::Skip, text).with(|detail: &mut Detail| detail.exceptions.clone_from(&excepted.keys))
        };
        Ok(match (pod_security, &excepted.exclusions) {
            (None, _) => Some(skip(format!("rule is skipped due to policy exceptions{keys}"))),
            (Some(_), None) => Some(skip(format!("rule is skipped due to policy exception {keys}"))),
            (Some(check), Some(exclusions)) => {
                let subject = self.review.subject();
                match check.evaluate(subject, &self.rule.name, exclusions) {
                    PodSecurityOutcome::Skip => Some(skip(format!("rule is skipped due to policy exceptions {keys}"))),
                    outcome => Some(validate::pod_security_judgement(outcome)),
                }
            }
        })
    }

    /// Whether the rule applies whose body is left alone. A `GeneratingPolicy` says so in its constraints and
    /// conditions.
    fn applies_alone(&self, scope: &Scope<'e>) -> Result<Option<Judgement>, Pending> {
        match &self.rule.body {
            Body::Generate(body) => match &body.content {
                GeneratedContent::Policy(generation) => generation.applies(scope, self.exceptions),
                GeneratedContent::Targets(_) => Ok(Some(Judgement::new(Verdict::Pass, ""))),
            },
            _ => Ok(Some(Judgement::new(Verdict::Pass, ""))),
        }
    }

    fn body(&self, world: &'e World<'e>, scope: &mut Scope<'e>) -> Answered {
        match &self.rule.body {
            Body::Validate(body) => {
                let run = validate::Run { rule: self.rule, body, exceptions: self.exceptions };
                let Some(judgement) = run.judge(scope, &self.review.object)? else { return Ok(None) };
                if judgement.verdict == Verdict::Fail
                    && let Some(tolerated) = self.tolerated(body, world)?
                {
                    return Ok(Some((tolerated, None)));
                }
                Ok(Some((judgement, None)))
            }
            Body::Mutate(body) => {
                let run = mutate::Run { rule: self.rule, body };
                match &body.targets {
                    Some(targets) => Ok(Some((run.judge_targets(targets, scope)?, None))),
                    None if self.review.operation == Operation::Delete => Ok(None),
                    None => run.judge(scope, &self.review.object).map(Some),
                }
            }
            Body::Admission(_) | Body::Policy(_) if self.review.operation == Operation::Delete => Ok(None),
            Body::Admission(mutation) => mutation.judge(scope),
            Body::Policy(mutation) => mutation.judge(scope, self.exceptions),
            Body::Generate(body) => {
                let judged = match &body.content {
                    GeneratedContent::Targets(_) => generate::Run { program: self.program, rule: self.rule, body }
                        .judge(scope, self.review.subject()),
                    GeneratedContent::Policy(generation) => generation.judge(scope, self.exceptions),
                };
                Ok(judged?.map(|judgement| (judgement, None)))
            }
            Body::Delete(deletion) => Ok(deletion.judge(scope, self.exceptions)?.map(|judgement| (judgement, None))),
        }
    }

    /// Whether a violation was there before and is let pass: only under Enforce, on UPDATE, for rules
    /// without preconditions that also match the old object as a CREATE without a user.
    fn tolerated(&self, body: &'e ValidateBody, world: &World<'_>) -> Result<Option<Judgement>, Pending> {
        let review = self.review;
        let both = !review.object.is_null() && !review.old_object.is_null();
        // Without a signature the old object is no reason to admit the new one, and CEL compares the two itself.
        let strict = matches!(
            body.check,
            ValidateCheck::Manifests(_)
                | ValidateCheck::Cel(_)
                | ValidateCheck::Admission(_)
                | ValidateCheck::Policy(_)
        );
        if strict || !body.allow_existing_violations || !body.actions.enforces() || !both {
            return Ok(None);
        }
        if review.operation != Operation::Update {
            return Ok(Some(Judgement::new(Verdict::Skip, "failed to validate old object")));
        }
        if self.rule.preconditions.is_some() {
            return Ok(None);
        }
        let old = Review {
            object: review.old_object.clone(),
            old_object: Value::Null,
            operation: Operation::Create,
            user: None,
            // Upstream: a rule about a subresource does not match the old object, so that `*/scale` with `deny: {}`
            // denies (validate/clusterpolicy/standard/subresource-deprecated).
            subresource: Str::default(),
            ..review.clone()
        };
        let nobody = UserInfo::default();
        let input = MatchInput { user: Some(&nobody), ..input(&old, self.input().namespace_labels) };
        if !applies(&self.rule.matches, self.rule.exclude.as_ref(), &input).unwrap_or(false) {
            return Ok(None);
        }
        let request = Value::object(old.request_value());
        let mut scope = Scope::new(world, &old, request, &self.rule.declared, &self.rule.context);
        match (validate::Run { rule: self.rule, body, exceptions: self.exceptions }.judge(&mut scope, &old.object)) {
            Err(Pending) => Err(Pending),
            Ok(Some(judgement)) if judgement.verdict == Verdict::Fail => Ok(Some(Judgement::new(
                Verdict::Skip,
                "skipping the rule evaluation as pre-existing violations are allowed",
            ))),
            Ok(Some(judgement)) if judgement.verdict == Verdict::Error => {
                Ok(Some(Judgement::new(Verdict::Skip, "failed to validate old object")))
            }
            Ok(_) => Ok(None),
        }
    }
}

/// What match blocks are tested against.
fn input<'r>(review: &'r Review, namespace_labels: NamespaceLabels<'r>) -> MatchInput<'r> {
    let object = review.subject();
    // Stands in for a name that is not given yet.
    let generate_name = || object.str_at(&["metadata", "generateName"]).unwrap_or_default();
    MatchInput {
        gvk: &review.gvk,
        subresource: &review.subresource,
        name: &review.name,
        generate_name: if review.name.is_empty() { generate_name() } else { "" },
        namespace: &review.namespace,
        object,
        operation: review.operation,
        user: review.user.as_ref(),
        namespace_labels,
    }
}

impl CompiledRule {
    /// The phase in which the rule runs.
    pub fn phase(&self) -> crate::outcome::Phase {
        use crate::outcome::Phase;
        match (&self.body, self.body.kind()) {
            (Body::Mutate(body), _) if body.targets.is_some() => Phase::MutateExisting,
            (_, RuleKind::Mutate) => Phase::Mutate,
            (_, RuleKind::Validate) => Phase::Validate,
            (_, RuleKind::Generate) => Phase::Generate,
            (_, RuleKind::Delete) => Phase::Delete,
        }
    }
}
