//! One resource through all policies.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use ephor_engine::cleanup::{CleanupProgram, CleanupVerdict};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::outcome::{Detail, Outcome, Phase, RuleKind, Verdict};
use ephor_engine::policy::FailureAction;
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_expr::value::Path;
use ephor_expr::yaml::{Options, PrintStyle, RawDocument};
use ephor_expr::{Str, Value};
use ephor_runtime::facts;
use ephor_runtime::redact::Learning;

use super::plan::{Keep, Plan, PolicyBatch};
use super::row::{Action, Row, Subject};
use super::sink::Write;
use crate::host::Host;
use crate::load::{ValuesError, expand_lists, normalise};
use crate::locate::{Located, Origin, SourceFile};
use crate::output::plain;
use crate::tally::Tally;

/// Where a document comes from.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The line where the document begins, from 1; 0 if it is in no file.
    pub line: u32,
}

/// What some resources came to.
#[derive(Debug, Default)]
pub struct Judged {
    /// Which part of the run this is; no two parts have the same number.
    pub chunk: u64,
    /// How many resources there were.
    pub resources: u64,
    /// All verdicts.
    pub tally: Tally,
    /// The rows that are kept.
    pub rows: Vec<Row>,
    /// Changed and created objects, printed.
    pub changes: String,
    /// Changed and created objects for the user's place.
    pub writes: Vec<Write>,
    /// Documents that are no resources.
    pub faults: Vec<Located>,
}

impl Plan {
    /// Judges what stands in one document: a resource, or a list of some.
    pub fn judge_document(&self, document: &RawDocument, file: &Arc<str>, out: &mut Judged) {
        match document.values(&Options::default()) {
            Ok(values) => {
                for value in values {
                    for object in expand_lists(value) {
                        match misshapen(&object) {
                            None => {
                                let place = Place { file: Arc::clone(file), line: first_line(document) };
                                self.judge(object, &place, out);
                            }
                            Some((path, message)) => out.faults.push(not_a_resource(document, file, path, message)),
                        }
                    }
                }
            }
            Err(error) => {
                let source = SourceFile { name: file.to_string(), text: document.text.clone() };
                out.faults.push(Located::of_yaml(error, &Arc::new(source)));
            }
        }
    }

    /// Judges one resource.
    pub fn judge(&self, object: Value, place: &Place, out: &mut Judged) {
        let object = normalise(object, |version, kind| of_cluster(&self.cluster_scoped, version, kind));
        out.resources += 1;
        let mut review = Review::of_object(object, self.now);
        // No two resources of a run start `random()` at the same place.
        review.seed = (out.chunk << 32) | out.resources;
        review.user.clone_from(&self.user);
        if let Some(values) = &self.values {
            review.namespace_labels = values.namespace_labels(&review.namespace);
            if let Some((parent, subresource)) = values.subresource(&review.gvk) {
                (review.gvk, review.subresource) = (parent, subresource);
            }
        }
        let original = review.object.clone();
        let answers = Learning::new(&self.host, Redactor::of([&original]));
        let first_row = out.rows.len();
        let mut resource = Resource { plan: self, place, original: original.clone(), subject: None, answers, out };
        if let Err(error) = resource.go(&mut review) {
            let message = format!("{}: {error}", resource.subject());
            resource.out.faults.push(Located::plain("invalid-values", message));
            return;
        }
        // What deletes looks at objects as they are stored.
        review.object = original;
        for batch in &self.deletions {
            let done = facts::evaluate(&batch.set, &self.exceptions, review.clone(), Phase::Delete, &resource.answers);
            resource.keep(batch, done.outcomes, &review);
        }
        for (policy, program) in &self.cleanups {
            resource.clean(*policy, program, &review);
        }
        resource.redact(first_row);
    }

    /// The review with the values that the user gives for the batch's policy.
    fn with_values<'r>(&self, review: &'r Review, batch: &PolicyBatch) -> Result<Cow<'r, Review>, ValuesError> {
        let Some(values) = &self.values else { return Ok(Cow::Borrowed(review)) };
        let mut review = review.clone();
        values.apply(&mut review, &batch.name, Some(&self.set), None)?;
        Ok(Cow::Owned(review))
    }
}

/// The line where a document says something: comments and empty lines before it do not count.
fn first_line(document: &RawDocument) -> u32 {
    let silent = |line: &&str| {
        let line = line.trim_start();
        line.is_empty() || line.starts_with('#') || line.starts_with("---")
    };
    document.first_line + document.text.lines().take_while(silent).count() as u32
}

/// Whether a kind is one of those without namespace, given as group and kind.
pub(super) fn of_cluster(kinds: &BTreeSet<(Str, Str)>, api_version: &str, kind: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    !kinds.is_empty() && kinds.contains(&(group.into(), kind.into()))
}

/// Whether an object can be a resource.
pub(super) fn is_resource(object: &Value) -> bool {
    misshapen(object).is_none()
}

/// Why an object cannot be a resource, with the place in it.
fn misshapen(object: &Value) -> Option<(Path, String)> {
    if object.as_object().is_none() {
        return Some((Path::root(), format!("expected a resource, found {}", object.type_name())));
    }
    for key in ["apiVersion", "kind"] {
        match object.get(key) {
            Some(Value::String(text)) if !text.is_empty() => {}
            None => return Some((Path::root(), format!("not a resource: `{key}` is missing"))),
            Some(_) => return Some((Path::root().key(key), format!("`{key}` must be a text that is not empty"))),
        }
    }
    match object.get("metadata") {
        None | Some(Value::Null | Value::Object(_)) => None,
        Some(other) => {
            Some((Path::root().key("metadata"), format!("`metadata` must be an object, not {}", other.type_name())))
        }
    }
}

fn not_a_resource(document: &RawDocument, file: &Arc<str>, path: Path, message: String) -> Located {
    let source = Arc::new(SourceFile { name: file.to_string(), text: document.text.clone() });
    // Read again for the places of its fields: faults are few.
    match document.documents(&Options::default()).map(|mut documents| documents.pop()) {
        Ok(Some(parsed)) => {
            let origin = Origin { file: source, map: Arc::new(parsed.source) };
            Located::of_diagnostic(Diagnostic::error("not-a-resource", path, message), &origin)
        }
        _ => Located::plain("not-a-resource", format!("{file}: {message}")),
    }
}

/// One resource on its way through the policies.
struct Resource<'r> {
    plan: &'r Plan,
    place: &'r Place,
    original: Value,
    /// Made when a row needs it.
    subject: Option<Arc<Subject>>,
    /// Who answers, and the values of Secrets that output must not show.
    answers: Learning<'r, Host>,
    out: &'r mut Judged,
}

impl Resource<'_> {
    fn subject(&mut self) -> Arc<Subject> {
        let make = || Arc::new(Subject::of(&self.original, Arc::clone(&self.place.file), self.place.line));
        Arc::clone(self.subject.get_or_insert_with(make))
    }

    /// Takes the resource through mutation, validation and creation.
    fn go(&mut self, review: &mut Review) -> Result<(), ValuesError> {
        let plan = self.plan;
        for batch in &plan.mutations {
            let own = plan.with_values(review, batch)?;
            let after = self.mutate(batch, &own);
            // A deletion results in no object.
            if !after.is_null() {
                review.object = after;
            }
        }
        self.write_mutated(&review.object);
        for batch in &plan.validations {
            let own = plan.with_values(review, batch)?;
            let done =
                facts::evaluate(&batch.set, &plan.exceptions, Review::clone(&own), Phase::Validate, &self.answers);
            self.keep(batch, done.outcomes, &own);
        }
        for batch in &plan.creations {
            let own = plan.with_values(review, batch)?;
            for phase in [Phase::Generate, Phase::MutateExisting] {
                let done = facts::evaluate(&batch.set, &plan.exceptions, Review::clone(&own), phase, &self.answers);
                self.create(batch, done.outcomes, &own);
            }
        }
        Ok(())
    }

    /// Asks a cleanup policy. As upstream counts: deletion is a pass, anything else a failure.
    fn clean(&mut self, policy: usize, program: &CleanupProgram, review: &Review) {
        let verdict = facts::clean(program, review, &self.answers);
        let mut fault = None;
        let (verdict, message) = match verdict {
            CleanupVerdict::Delete => (Verdict::Pass, Str::new_static("resource would be deleted")),
            CleanupVerdict::Unselected => (Verdict::Fail, Str::new_static("resource is not selected")),
            CleanupVerdict::Keep(None) => (Verdict::Fail, Str::new_static("conditions are not met")),
            CleanupVerdict::Keep(Some(reasons)) => {
                (Verdict::Fail, Str::from(format!("conditions are not met: {reasons}")))
            }
            CleanupVerdict::Error(text, place) => {
                fault = place;
                (Verdict::Error, text)
            }
        };
        self.out.tally.add(verdict);
        if verdict == Verdict::Pass && self.plan.keep == Keep::Findings {
            return;
        }
        let row = Row {
            policy,
            index: 0,
            rule: Str::default(),
            action: Action::Cleanup,
            verdict,
            audited: false,
            message,
            subject: self.subject(),
            detail: fault.map(|fault| Box::new(Detail { fault: Some(fault), ..Detail::default() })),
        };
        self.out.rows.push(row);
    }

    /// Takes the resource through one policy's mutations and gives it as it is then.
    fn mutate(&mut self, batch: &PolicyBatch, review: &Review) -> Value {
        let plan = self.plan;
        let done = facts::evaluate(&batch.set, &plan.exceptions, review.clone(), Phase::Mutate, &self.answers);
        self.answers.learn([&done.object]);
        // A rule that fails takes back what the others of its policy patched.
        let patched = done.outcomes.iter().any(|o| o.verdict == Verdict::Pass);
        let failed = done.outcomes.iter().any(|o| o.verdict == Verdict::Error);
        if patched && (!failed || done.object != review.object) && plan.print_changes {
            self.print(batch.first, &done.object, "");
            self.out.changes.push_str("Mutation:\nMutation has been applied successfully.\n");
        }
        self.keep(batch, done.outcomes, review);
        done.object
    }

    fn write_mutated(&mut self, object: &Value) {
        if self.plan.write_changes && *object != self.original {
            let subject = self.subject();
            self.out.writes.push(Write { name: format!("{}-mutated", subject.name), text: print(object) });
        }
    }

    /// Takes up what generate and mutate-existing rules want.
    fn create(&mut self, batch: &PolicyBatch, outcomes: Vec<Outcome>, review: &Review) {
        for outcome in &outcomes {
            let Some(detail) = &outcome.detail else { continue };
            self.answers.learn(detail.generated.iter().map(|downstream| &downstream.object));
            self.answers.learn(detail.targets.iter().map(|target| &target.after));
            if !detail.generated.is_empty() {
                if self.plan.print_changes {
                    for downstream in &detail.generated {
                        self.print(batch.first + outcome.policy, &downstream.object, "");
                    }
                    self.out.changes.push_str("Generate:\nGeneration completed successfully.\n");
                }
                if self.plan.write_changes {
                    let policy = self.plan.policies.get(batch.first + outcome.policy).map_or("", |policy| &policy.name);
                    let name = format!("{policy}-generated");
                    let writes = detail.generated.iter();
                    let writes = writes.map(|d| Write { name: name.clone(), text: print(&d.object) });
                    self.out.writes.extend(writes);
                }
            }
            let patched = detail.targets.iter().filter(|target| target.verdict == Verdict::Pass);
            let patched: Vec<&Value> = patched.map(|target| &target.after).collect();
            if patched.is_empty() {
                continue;
            }
            if self.plan.print_changes {
                self.print(batch.first + outcome.policy, &review.object, "patched targets:\n");
                for target in &patched {
                    let _ = writeln!(self.out.changes, "\n{}---", print(&self.answers.shown(target)));
                }
                self.out.changes.push_str("Mutation:\nMutation has been applied successfully.\n");
            }
            if self.plan.write_changes {
                for target in patched {
                    let name = target.str_at(&["metadata", "name"]).unwrap_or_default();
                    self.out.writes.push(Write { name: format!("{name}-mutated"), text: print(target) });
                }
            }
        }
        self.keep(batch, outcomes, review);
    }

    /// Prints an object as upstream does: under the policy that made it so.
    fn print(&mut self, policy: usize, object: &Value, after: &str) {
        let subject = self.subject();
        let policy = plain::line(self.plan.policies.get(policy).map_or("", |policy| &policy.name));
        let printed = print(&self.answers.shown(object));
        let _ = write!(self.out.changes, "\npolicy {policy} applied to {subject}:\n{printed}---\n{after}");
    }

    /// Takes values of Secrets out of all that the rows from `first` on say.
    fn redact(&mut self, first: usize) {
        let rows = self.out.rows.get_mut(first..).unwrap_or_default();
        for row in rows {
            self.answers.redact_result(&mut row.message, row.detail.as_deref_mut());
        }
    }

    fn keep(&mut self, batch: &PolicyBatch, outcomes: Vec<Outcome>, review: &Review) {
        for outcome in outcomes {
            let mut verdict = outcome.verdict;
            let audited = verdict == Verdict::Fail && self.plan.audit_warn && is_audit(batch, &outcome, review);
            if audited {
                verdict = Verdict::Warn;
            }
            self.out.tally.add(verdict);
            let shown = match verdict {
                Verdict::Fail | Verdict::Warn | Verdict::Error => true,
                Verdict::Skip => outcome.kind == RuleKind::Mutate,
                Verdict::Pass => false,
            };
            if !shown && self.plan.keep == Keep::Findings {
                continue;
            }
            let mut detail = outcome.detail;
            if let Some(detail) = &mut detail {
                // The objects have been taken up; a row is small.
                detail.generated = Vec::new();
                detail.targets = Vec::new();
            }
            let row = Row {
                policy: batch.first + outcome.policy,
                index: outcome.index,
                rule: outcome.rule,
                action: Action::Rule(outcome.kind),
                verdict,
                audited,
                message: outcome.message,
                subject: self.subject(),
                detail,
            };
            self.out.rows.push(row);
        }
    }
}

/// Whether a violation of this rule is only reported.
fn is_audit(batch: &PolicyBatch, outcome: &Outcome, review: &Review) -> bool {
    let rule = batch.set.programs().get(outcome.policy).and_then(|program| program.rules.get(outcome.index));
    let labels = review.namespace_labels.as_ref().and_then(Value::as_object);
    rule.is_some_and(|rule| match &rule.body {
        ephor_engine::compile::Body::Validate(body) => {
            body.actions.action(&review.namespace, labels) == FailureAction::Audit
        }
        _ => false,
    })
}

fn print(object: &Value) -> String {
    PrintStyle::V3.print(object)
}

impl Place {
    /// A place by its parts.
    pub fn new(file: impl Into<Arc<str>>, line: u32) -> Self {
        Self { file: file.into(), line }
    }
}
