//! Runs mutate rules for existing targets.

use std::sync::Arc;
use std::time::Instant;

use ephor_cluster::write::Part;
use ephor_cluster::{ErrorKind, Resource};
use ephor_engine::evaluation::Evaluation;
use ephor_engine::outcome::{PatchedTarget, Phase, Verdict};
use ephor_engine::policy::Operation;
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_expr::{Str, Value};
use ephor_runtime::content::{fingerprint, normalized_content, set_meta};
use ephor_runtime::queue::Moment;
use ephor_runtime::redact::Learning;
use ephor_runtime::update_request::{ResourceSpec, UpdateRequest};

use super::reconcile::{Lookup, ReconcileContext, ReconcileError};
use super::rules::PolicyInfo;
use super::state::Subject;
use super::trigger::{TriggerRef, admission_request, review_of_request};
use super::write_limit::WriteLimit;
use super::writer::{Note, Place, Words, WriteError};
use crate::plan::{Action, Change, ObjectId, Reason};

/// How often a rule is judged anew when a target has changed meanwhile.
const TRIES: usize = 5;

/// Why a target was not patched.
#[derive(Debug, thiserror::Error)]
enum TargetError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("{0} is patched again and again: the rule's own changes, or another's, bring it back")]
    Loop(ObjectId),
    #[error("{0} is patched too often")]
    TooOften(ObjectId, Moment),
}

/// The parts of a target that a patch has changed.
fn changed_places<'t>(target: &'t PatchedTarget, resource: &Resource) -> Vec<Place<'t>> {
    let (before, after) = (&target.before, &target.after);
    if let Some(below) = target.below.as_deref() {
        return if before == after { Vec::new() } else { vec![Place::Subresource(&below.subresource)] };
    }
    let object = (normalized_content(before) != normalized_content(after)).then_some(Place::Part(Part::Object));
    let status_differs = resource.has_status() && before.get("status") != after.get("status");
    object.into_iter().chain(status_differs.then_some(Place::Part(Part::Status))).collect()
}

impl ReconcileContext<'_> {
    /// Does what a mutate request asks for, which was first seen that long ago; `None` if what it is about is gone, or
    /// was not stored.
    pub fn mutate(
        &self,
        info: &Arc<PolicyInfo>,
        request: &Arc<UpdateRequest>,
        age: Moment,
    ) -> Result<Option<Vec<ResourceSpec>>, ReconcileError> {
        let trigger = TriggerRef::of_spec(&request.spec.resource);
        let Some(admission) = admission_request(request) else {
            let Lookup::Live(object) = self.find(&trigger)? else { return Ok(None) };
            let review = self.review_of(&object, Operation::Create, &info.uid);
            return self.mutate_for(info, &request.spec.rule, &review).map(Some);
        };
        let payload = admission.operation == Operation::Connect || !admission.sub_resource.is_empty();
        let object = if payload {
            admission.object.clone()
        } else {
            // As it is now and not as it was then: of two requests the later one counts, in whatever order they are
            // done.
            match (self.find_after(&trigger, request, &admission, age)?, admission.operation) {
                (Lookup::Gone, Operation::Delete) => Value::Null,
                (Lookup::Live(live), Operation::Create | Operation::Update) => live,
                _ => return Ok(None),
            }
        };
        let old = admission.old_object.clone();
        let review = review_of_request(request, &admission, &trigger, object, old, self.clock);
        self.mutate_for(info, &request.spec.rule, &review).map(Some)
    }

    /// Patches what a rule selects for a review; an empty rule name means all rules of the policy.
    pub fn mutate_for(
        &self,
        info: &PolicyInfo,
        rule: &str,
        review: &Review,
    ) -> Result<Vec<ResourceSpec>, ReconcileError> {
        let exceptions = Arc::clone(&self.lock().snapshot.exceptions);
        let mut conflict = None;
        let subject = if review.object.is_null() { &review.old_object } else { &review.object };
        let trigger = TriggerRef::of_object(subject);
        for _ in 0..TRIES {
            conflict = None;
            let begun = Instant::now();
            // What fails may quote what was read, in the words of an API server too.
            let answers = Learning::new(&*self.env.answers, Redactor::default());
            answers.learn([&review.object, &review.old_object]);
            let evaluation = Evaluation::new(&info.set, &exceptions, review.clone(), Phase::MutateExisting);
            // A policy may have very many rules, each with a request of its own.
            let evaluation = if rule.is_empty() { evaluation } else { evaluation.only(rule) };
            let done = self.env.evaluate(evaluation, &answers);
            if let Some(program) = &info.program {
                self.env.metrics.background_judged(program, review, &done.outcomes, begun.elapsed());
            }
            let mut patched = Vec::new();
            let (mut failure, mut later, mut no_target) = (None, None, true);
            for outcome in &done.outcomes {
                let targets = outcome.detail.as_deref().map(|d| d.targets.as_slice()).unwrap_or_default();
                answers.learn(targets.iter().map(|target| &target.before));
                // One that is right already needs no write, and fails no more.
                for target in targets.iter().filter(|t| matches!(t.verdict, Verdict::Pass | Verdict::Skip)) {
                    match self.write_target(info, &outcome.rule, &trigger, target) {
                        Ok(Some(spec)) => patched.push(spec),
                        // The target is gone, or there was nothing to change.
                        Ok(None) => {}
                        Err(TargetError::Write(WriteError::Lost(_))) => return Err(ReconcileError::LostLease),
                        Err(TargetError::Write(error)) if error.is(ErrorKind::Conflict) => {
                            conflict = Some(error.to_string());
                        }
                        Err(TargetError::TooOften(id, wait)) => {
                            later.get_or_insert(ReconcileError::RetryAfter(wait, format!("{id} is patched too often")));
                        }
                        Err(error) => {
                            no_target = false;
                            failure.get_or_insert(error.to_string());
                        }
                    }
                }
                if matches!(outcome.verdict, Verdict::Error | Verdict::Fail) {
                    no_target &= outcome.detail.as_deref().is_some_and(|detail| detail.no_target);
                    failure.get_or_insert(outcome.message.to_string());
                }
            }
            let secrets = answers.into_secrets();
            if let Some(error) = &mut conflict {
                *error = secrets.text(error).into_owned();
                continue;
            }
            return match failure {
                Some(message) => {
                    let message = secrets.text(&message).into_owned();
                    let (policy, rule) = (info.key.clone(), Str::new(rule));
                    let failed = ReconcileError::of_rule(&rule, &trigger, &message);
                    (self.env.observer)(&Note::Failed { policy, rule, trigger: Some(trigger), message });
                    Err(match failed {
                        ReconcileError::Failed(message) if no_target => ReconcileError::TargetNotFound(message),
                        failed => failed,
                    })
                }
                None => later.map_or(Ok(patched), Err),
            };
        }
        Err(ReconcileError::Failed(conflict.unwrap_or_default()))
    }

    /// Writes a patched target, bound to the version that was patched.
    fn write_target(
        &self,
        info: &PolicyInfo,
        rule: &Str,
        trigger: &TriggerRef,
        target: &PatchedTarget,
    ) -> Result<Option<ResourceSpec>, TargetError> {
        // Which object is written is read from what was read, never from what a patch made of it.
        let own = ObjectId::of(&target.before);
        let (api_version, kind) = match target.below.as_deref() {
            Some(below) => (below.api_version.clone(), below.kind.clone()),
            None => (Str::new(target.before.str_at(&["apiVersion"]).unwrap_or_default()), own.kind.clone()),
        };
        let resource = self.env.resource(&api_version, &kind).map_err(WriteError::from)?;
        let places = changed_places(target, &resource);
        let id = match target.below.as_deref() {
            Some(below) => {
                ObjectId::new(&api_version, &format!("{kind}/{}", below.subresource), &own.namespace, &own.name)
            }
            None => own,
        };
        let subject = Subject::Target(id.clone());
        if places.is_empty() {
            self.lock().set_failure(&info.key, subject, None, self.now);
            return Ok(None);
        }
        let content = fingerprint(&Value::array(vec![
            normalized_content(&target.after),
            target.after.get("status").cloned().unwrap_or_default(),
        ]));
        let limit = self.lock().recent_writes.check(&id, &content, self.now);
        if let Some(limit) = limit {
            tracing::warn!(policy = %info.key, %rule, target = %id, "patched repeatedly: a loop");
            let message = TargetError::Loop(id.clone()).to_string();
            self.lock().set_failure(&info.key, subject, Some(message), self.now);
            return Err(match limit {
                WriteLimit::Loop => TargetError::Loop(id),
                WriteLimit::Rate(wait) => TargetError::TooOften(id, wait),
            });
        }
        let writer = self.env.writer(&info.key);
        let (mut seen, mut after) = (target.before.clone(), target.after.clone());
        for place in places {
            match writer.replace(&resource, place, &seen, &after) {
                Ok(stored) => {
                    // The next part is bound to what this write has made.
                    set_meta(&mut after, "resourceVersion", stored.at(&["metadata", "resourceVersion"]).cloned());
                    seen = stored;
                }
                Err(error) if error.is(ErrorKind::NotFound) => {
                    self.lock().set_failure(&info.key, subject, None, self.now);
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let stored = seen;
        {
            let mut state = self.lock();
            state.recent_writes.record(&id, content, self.now);
            state.set_failure(&info.key, subject, None, self.now);
        }
        let spec = ResourceSpec::of_object(&stored);
        let action = Action::Replace { before: target.before.clone(), after: target.after.clone() };
        let change = Change { id, api_version, action, reason: Reason::Mutated };
        let (policy, rule, trigger) = (info.key.clone(), rule.clone(), Some(trigger.clone()));
        (self.env.observer)(&Note::Changed {
            policy,
            rule,
            trigger,
            change: Box::new(change),
            object: stored,
            words: Words::default(),
        });
        Ok(Some(spec))
    }
}
