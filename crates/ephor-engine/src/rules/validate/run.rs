//! Validate rules: checks, loops, messages and the leniency for old violations.

use std::borrow::Cow;

use ephor_expr::jmespath::Runtime;
use ephor_expr::value::Path;
use ephor_expr::{Str, Value};

use super::manifests::ManifestOutcome;
use super::messages;
use super::pattern::{Mismatch, Pattern, Scalars};
use super::pod_security::PodSecurityOutcome;
use super::policy::Exemptions;
use crate::compile::{CompiledRule, ForEach, PatternBody, ValidateBody, ValidateCheck};
use crate::conditions::{BlockOutcome, CompiledConditions};
use crate::outcome::Verdict;
use crate::policy::Operation;
use crate::rules::conditions::{self, ConditionError};
use crate::rules::cost::{charge_element, charge_object};
use crate::rules::judgement::{Judged, Judgement, Pending, scope_error};
use crate::scope::{Scope, ScopeError, Shape, Template};

/// How deep loops may nest.
const MAX_LOOPS: usize = 16;

/// One validate rule at work.
pub(crate) struct Run<'e> {
    pub(crate) rule: &'e CompiledRule,
    pub(crate) body: &'e ValidateBody,
    pub(crate) exceptions: &'e dyn Exemptions,
}

/// Where a check stands: loops change both.
#[derive(Clone, Copy)]
struct Position<'v> {
    /// What patterns are matched against.
    subject: &'v Value,
    /// Whether that is a loop's element.
    in_element: bool,
    /// How many loops are around.
    depth: usize,
}

impl<'e> Run<'e> {
    /// Judges the review's object.
    pub(crate) fn judge(&self, scope: &mut Scope<'e>, resource: &Value) -> Judged {
        let position = Position { subject: resource, in_element: false, depth: 0 };
        self.check(&self.body.check, &self.body.path, position, scope)
    }

    fn check(&self, check: &'e ValidateCheck, path: &Path, at: Position<'_>, scope: &mut Scope<'e>) -> Judged {
        // A deleted object is compared with no pattern, but the variables of patterns are resolved all the same.
        let deleting = scope.review().operation == Operation::Delete && !at.in_element;
        let subject = Some(at.subject).filter(|_| !deleting);
        match check {
            ValidateCheck::Deny(block) => self.deny(block.as_ref(), scope),
            ValidateCheck::ForEach(loops) => self.loops(loops, at, scope),
            ValidateCheck::Pattern(pattern) => self.pattern(pattern, path, subject, scope),
            ValidateCheck::AnyPattern(patterns) => self.any_pattern(patterns, path, subject, scope),
            ValidateCheck::Cel(check) => check.judge(scope, &self.body.pass_message),
            ValidateCheck::Admission(check) => check.judge(scope),
            ValidateCheck::Policy(check) => check.judge(scope, self.exceptions),
            _ if deleting => Ok(None),
            ValidateCheck::PodSecurity(check) => {
                Ok(Some(pod_security_judgement(check.evaluate(at.subject, &self.rule.name, &[]))))
            }
            ValidateCheck::Manifests(check) => {
                // What a dry run would create is not what anybody signed.
                if scope.review().attributes.get("dryRun").and_then(Value::as_bool) == Some(true) {
                    return Ok(Some(Judgement::new(Verdict::Pass, "allowed because of DryRun request")));
                }
                Ok(Some(match check.evaluate(at.subject) {
                    ManifestOutcome::Pass { message } => Judgement::new(Verdict::Pass, message),
                    ManifestOutcome::Fail { message } => Judgement::new(Verdict::Fail, message),
                }))
            }
        }
    }

    fn deny(&self, block: Option<&CompiledConditions<Template>>, scope: &mut Scope<'e>) -> Judged {
        let outcome = match block.map(|block| conditions::evaluate(block, scope)).transpose() {
            Ok(outcome) => outcome,
            Err(error) => {
                let (text, fault) = error.into_failure()?;
                let message = format!("failed to check deny conditions: {text}");
                return Ok(Some(Judgement::error_at(message, fault)));
            }
        };
        if outcome.as_ref().is_some_and(|outcome| !outcome.holds) {
            return Ok(Some(Judgement::new(Verdict::Pass, self.body.pass_message.clone())));
        }
        let message = self.deny_message(outcome.as_ref(), scope)?;
        Ok(Some(Judgement::new(Verdict::Fail, message)))
    }

    /// The rule's message and the conditions'; if a variable of them cannot be resolved, the conditions' as written, or
    /// why there are none.
    fn deny_message(
        &self,
        outcome: Option<&BlockOutcome<'_, Template>>,
        scope: &mut Scope<'e>,
    ) -> Result<Str, Pending> {
        let own = self.body.message.iter();
        let reasons = outcome.iter().flat_map(|outcome| &outcome.messages).map(|message| &message.template);
        let mut rendered = Vec::new();
        for template in own.chain(reasons) {
            match template.render(scope) {
                Ok(text) => rendered.push(text),
                Err(ScopeError::Pending) => return Err(Pending),
                Err(error) => {
                    let written = outcome.and_then(BlockOutcome::message).filter(|text| !text.is_empty());
                    let why = || messages::denied_without_message(&self.rule.name, &error.cause_text());
                    return Ok(written.unwrap_or_else(why));
                }
            }
        }
        let separator = outcome.map_or("", |outcome| outcome.separator);
        let texts: Vec<&str> = rendered.iter().map(|rendered| rendered.text.as_str()).collect();
        Ok(match (rendered.as_slice(), texts.as_slice()) {
            ([], _) => messages::denied(&self.rule.name),
            ([only], _) if only.is_string => only.text.clone(),
            ([_], _) => messages::NOT_A_STRING,
            (_, [own, reasons @ ..]) if self.body.message.is_some() => {
                format!("{own}; {}", reasons.join(separator)).into()
            }
            (_, reasons) => reasons.join(separator).into(),
        })
    }

    fn pattern(&self, pattern: &'e PatternBody, path: &Path, subject: Option<&Value>, scope: &mut Scope<'e>) -> Judged {
        let resolved = match pattern {
            PatternBody::Fixed(pattern) => Cow::Borrowed(pattern),
            PatternBody::Variable(template) => match template.resolve_as(Shape::Pattern, scope) {
                Ok(value) => Cow::Owned(Pattern::compile(&value)),
                Err(error) => {
                    return scope_error("variable substitution failed: ", &path.key("pattern"), &error).map(Some);
                }
            },
        };
        let Some(subject) = subject else { return Ok(None) };
        let name = &self.rule.name;
        Ok(Some(match resolved.matches(subject, scope.world().budget()) {
            Ok(()) => Judgement::new(Verdict::Pass, self.body.pass_message.clone()),
            Err(Mismatch::Skip { message }) => Judgement::new(Verdict::Skip, message),
            Err(Mismatch::Fail { path, message }) => {
                let text = match self.message(scope)? {
                    Ok(own) => messages::failed(own.as_deref(), name, &path),
                    Err(()) => messages::unsubstituted(name, &message),
                };
                Judgement::new(Verdict::Fail, text)
            }
            Err(Mismatch::Error { message }) => {
                let own = self.message(scope)?.unwrap_or_default();
                Judgement::new(Verdict::Error, messages::execution_error(own.as_deref(), name, &message))
            }
            Err(Mismatch::Spent(error)) => Judgement::new(Verdict::Error, error.to_string()),
        }))
    }

    fn any_pattern(
        &self,
        patterns: &'e [PatternBody],
        path: &Path,
        subject: Option<&Value>,
        scope: &mut Scope<'e>,
    ) -> Judged {
        // All alternatives are substituted before any is tried: one bad variable is an error.
        let mut ready = Vec::with_capacity(patterns.len());
        for (i, pattern) in patterns.iter().enumerate() {
            ready.push(match pattern {
                PatternBody::Fixed(pattern) => Cow::Borrowed(pattern),
                PatternBody::Variable(template) => match template.resolve_as(Shape::Pattern, scope) {
                    Ok(value) => Cow::Owned(Pattern::compile_with(&value, Scalars::Floats)),
                    Err(error) => {
                        let base = path.key("anyPattern").index(i);
                        return scope_error("variable substitution failed: ", &base, &error).map(Some);
                    }
                },
            });
        }
        let Some(subject) = subject else { return Ok(None) };
        if patterns.is_empty() {
            let own = self.message(scope)?.unwrap_or_default().unwrap_or_default();
            return Ok(Some(Judgement::new(Verdict::Pass, own)));
        }
        let name = &self.rule.name;
        let (mut failed, mut skipped) = (Vec::new(), Vec::new());
        for (i, pattern) in ready.iter().enumerate() {
            match pattern.matches(subject, scope.world().budget()) {
                Ok(()) => return Ok(Some(Judgement::new(Verdict::Pass, messages::any_passed(name, i)))),
                Err(Mismatch::Skip { message }) => skipped.push(messages::alternative_skipped(name, i, &message)),
                Err(Mismatch::Fail { path, .. }) => failed.push(messages::alternative_failed(name, i, &path)),
                Err(Mismatch::Error { message }) => failed.push(messages::alternative_error(name, i, &message)),
                Err(Mismatch::Spent(error)) => return Ok(Some(Judgement::new(Verdict::Error, error.to_string()))),
            }
        }
        if failed.is_empty() {
            return Ok(Some(Judgement::new(Verdict::Skip, skipped.join(" "))));
        }
        let text = match self.message(scope)? {
            Ok(own) => messages::any_failed(own.as_deref(), &failed),
            Err(()) => messages::unsubstituted(name, &failed.join(" ")),
        };
        Ok(Some(Judgement::new(Verdict::Fail, text)))
    }

    /// The rule's message: `Ok(None)` if it has none, `Err` if its variables cannot be resolved.
    fn message(&self, scope: &mut Scope<'e>) -> Result<Result<Option<Str>, ()>, Pending> {
        let Some(message) = &self.body.message else { return Ok(Ok(None)) };
        match message.render(scope) {
            Ok(rendered) if rendered.is_string => Ok(Ok(Some(rendered.text))),
            Ok(_) => Ok(Ok(Some(messages::NOT_A_STRING))),
            Err(ScopeError::Pending) => Err(Pending),
            Err(_) => Ok(Err(())),
        }
    }

    fn loops(&self, loops: &'e [ForEach], at: Position<'_>, scope: &mut Scope<'e>) -> Judged {
        if at.depth >= MAX_LOOPS {
            return Ok(Some(Judgement::new(Verdict::Error, "loops nest too deep")));
        }
        let mut applied = false;
        let mut list_error = None;
        for entry in loops {
            let list = match scope.evaluate_bare(&entry.list) {
                Ok(list) => list,
                Err(error) if error.is_unknown_key() => continue,
                Err(error) => {
                    let judgement = scope_error("", &entry.path.key("list"), &error)?;
                    let message = format!("failed to evaluate list: {}", error.cause_text()).into();
                    let judgement = Judgement { message, ..judgement };
                    if !error.is_unresolved() {
                        return Ok(Some(judgement));
                    }
                    list_error = Some(judgement);
                    continue;
                }
            };
            match self.elements(entry, &list, at, scope)? {
                Looped::Nothing => {}
                Looped::Applied => applied = true,
                Looped::Ended(judgement) => return Ok(Some(judgement)),
            }
        }
        match (applied, list_error) {
            (true, _) => Ok(Some(Judgement::new(Verdict::Pass, "rule passed"))),
            (false, error) => Ok(error),
        }
    }

    fn elements(
        &self,
        entry: &'e ForEach,
        list: &Value,
        at: Position<'_>,
        scope: &mut Scope<'e>,
    ) -> Result<Looped, Pending> {
        let single = [list.clone()];
        let elements = match list {
            Value::Null => return Ok(Looped::Nothing),
            Value::Array(items) => items.as_slice(),
            _ => &single,
        };
        let mut looped = Looped::Nothing;
        let budget = scope.world().budget();
        let patterns = matches!(entry.check, ValidateCheck::Pattern(_) | ValidateCheck::AnyPattern(_));
        for (index, element) in elements.iter().enumerate().filter(|(_, element)| !element.is_null()) {
            let is_map = matches!(element, Value::Object(_));
            if entry.element_scope == Some(true) && !is_map {
                let message = messages::scope_is_no_map(element);
                return Ok(Looped::Ended(Judgement::new(Verdict::Error, message)));
            }
            let scoped = entry.element_scope.unwrap_or(is_map);
            let whole = patterns && !scoped;
            let charged = if whole { charge_object(budget, at.subject) } else { charge_element(budget) };
            if let Err(error) = charged {
                return Ok(Looped::Ended(Judgement::new(Verdict::Error, error.to_string())));
            }
            let before = scope.checkpoint();
            scope.bind_element(&entry.list, element, index, at.depth, &self.rule.declared);
            scope.declare(&entry.context);
            let position = Position {
                subject: if scoped { element } else { at.subject },
                in_element: scoped || at.in_element,
                depth: at.depth + 1,
            };
            let judged = self.element(entry, position, scope);
            scope.restore(before);
            match judged? {
                None => {}
                Some(judgement) => match judgement.verdict {
                    Verdict::Skip => {}
                    Verdict::Pass => looped = Looped::Applied,
                    _ => {
                        let message = format!("validation failure: {}", judgement.message).into();
                        return Ok(Looped::Ended(Judgement { message, ..judgement }));
                    }
                },
            }
        }
        Ok(looped)
    }

    fn element(&self, entry: &'e ForEach, position: Position<'_>, scope: &mut Scope<'e>) -> Judged {
        if let Some(block) = &entry.preconditions {
            match conditions::evaluate(block, scope) {
                Ok(outcome) if outcome.holds => {}
                // An element that lacks what its preconditions read does not count; data that could not be fetched is
                // another matter.
                Ok(_) | Err(ConditionError::Unresolved(..)) => return Ok(None),
                Err(error) => {
                    let (text, fault) = error.into_failure()?;
                    let message = format!("failed to evaluate preconditions: {text}");
                    return Ok(Some(Judgement::error_at(message, fault)));
                }
            }
        }
        self.check(&entry.check, &entry.path, position, scope)
    }
}

/// A podSecurity outcome as a judgement.
pub(crate) fn pod_security_judgement(outcome: PodSecurityOutcome) -> Judgement {
    match outcome {
        PodSecurityOutcome::Pass { message } => Judgement::new(Verdict::Pass, message),
        PodSecurityOutcome::Skip => Judgement::new(Verdict::Skip, ""),
        PodSecurityOutcome::Error { message } => Judgement::new(Verdict::Error, message),
        PodSecurityOutcome::Fail(failure) => {
            Judgement::new(Verdict::Fail, failure.message.clone()).with(|detail| detail.pod_security = Some(failure))
        }
    }
}

/// What a loop came to.
enum Looped {
    /// No element counted.
    Nothing,
    /// All that counted passed.
    Applied,
    /// An element ended the rule.
    Ended(Judgement),
}
