//! Policies over the triggers of a test, in upstream's order: mutations, each policy on the output of the
//! one before; then, on the object after, validations, mutations of targets and generations; then, on the trigger as it
//! is stored, deletions.

use std::sync::Arc;

use ephor_engine::outcome::{Outcome, Phase};
use ephor_engine::policy::Operation;
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::Value;
use ephor_expr::value::Path as FieldPath;
use ephor_runtime::facts::evaluate;
use ephor_runtime::redact::Learning;

use super::case::Case;
use super::subjects::Subject;
use crate::host::{Host, ObjectsAtHand};
use crate::load::{ValuesError, parse_operation};

/// What one policy made of one trigger in one phase.
#[derive(Debug)]
pub(super) struct Response {
    /// Index of the policy.
    pub(super) policy: usize,
    /// What it was run for.
    pub(super) subject: Subject,
    /// The operation, if results ask for one; `None`: the one that the values give, or CREATE.
    pub(super) operation: Option<Operation>,
    /// The outcomes of its rules.
    pub(super) outcomes: Vec<Outcome>,
    /// The trigger after the phase.
    pub(super) after: Value,
}

/// A policy on its own, with what it can ask.
struct PolicyBatch {
    set: PolicySet,
    name: ephor_expr::Str,
    phases: Vec<Phase>,
    /// The phases in which it judges any JSON value.
    of_json: Vec<Phase>,
    at_hand: Host,
    /// Clone sources, for generate rules.
    sources: Vec<Value>,
}

const PHASES: [Phase; 4] = [Phase::Mutate, Phase::Validate, Phase::MutateExisting, Phase::Generate];

/// Runs everything. Faults in the values are noted in the case.
pub(super) fn responses(case: &mut Case) -> Vec<Response> {
    let batches = batches(case);
    let mut operations = vec![None];
    for result in &case.results {
        let operation = result.operation.as_deref().and_then(parse_operation);
        if !operations.contains(&operation) {
            operations.push(operation);
        }
    }
    let now = jiff::Timestamp::now();
    let mut responses = Vec::new();
    let mut faults: Vec<ValuesError> = Vec::new();
    for operation in operations {
        for (trigger, object) in case.triggers.iter().enumerate() {
            let mut object = object.clone();
            for phase in PHASES {
                for (policy, batch) in batches.iter().enumerate().filter(|(_, batch)| batch.phases.contains(&phase)) {
                    let review = match review(case, &object, &batch.name, operation, now) {
                        Ok(review) => review,
                        Err(fault) => {
                            if !faults.contains(&fault) {
                                faults.push(fault);
                            }
                            continue;
                        }
                    };
                    let generating;
                    let host = if phase == Phase::Generate {
                        generating = generating_host(case, batch, &object);
                        &generating
                    } else {
                        &batch.at_hand
                    };
                    let deleted = review.object.is_null();
                    let answers = Learning::new(host, Redactor::of([&object]));
                    let mut done = evaluate(&batch.set, &case.exceptions, review, phase, &answers);
                    answers.learn([&done.object]);
                    answers.redact_outcomes(&mut done.outcomes);
                    if phase == Phase::Mutate && !deleted {
                        object = done.object.clone();
                    }
                    responses.push(Response {
                        policy,
                        subject: Subject::Trigger(trigger),
                        operation,
                        outcomes: done.outcomes,
                        after: if deleted { object.clone() } else { done.object },
                    });
                }
            }
        }
    }
    responses.extend(of_deletions(case, &batches, now));
    responses.extend(of_payloads(case, &batches, now));
    for fault in faults {
        case.fault("invalid-values", FieldPath::root(), fault.to_string());
    }
    responses
}

/// What policies that delete make of the triggers. No operation is under way for them.
fn of_deletions(case: &Case, batches: &[PolicyBatch], now: jiff::Timestamp) -> Vec<Response> {
    let mut responses = Vec::new();
    for (trigger, object) in case.triggers.iter().enumerate() {
        for (policy, batch) in batches.iter().enumerate().filter(|(_, batch)| batch.phases.contains(&Phase::Delete)) {
            let answers = Learning::new(&batch.at_hand, Redactor::of([object]));
            let mut done =
                evaluate(&batch.set, &case.exceptions, of_object(case, object, now), Phase::Delete, &answers);
            answers.redact_outcomes(&mut done.outcomes);
            let subject = Subject::Trigger(trigger);
            responses.push(Response { policy, subject, operation: None, outcomes: done.outcomes, after: done.object });
        }
    }
    responses
}

/// What policies that judge any JSON value make of the payloads.
fn of_payloads(case: &Case, batches: &[PolicyBatch], now: jiff::Timestamp) -> Vec<Response> {
    let mut responses = Vec::new();
    for (index, payload) in case.payloads.iter().enumerate() {
        for (policy, batch) in batches.iter().enumerate() {
            for phase in &batch.of_json {
                let review = Review::of_object(payload.value.clone(), now);
                let answers = Learning::new(&batch.at_hand, Redactor::of([&payload.value]));
                let mut done = evaluate(&batch.set, &case.exceptions, review, *phase, &answers);
                answers.redact_outcomes(&mut done.outcomes);
                let subject = Subject::Payload(index);
                let (outcomes, after) = (done.outcomes, done.object);
                responses.push(Response { policy, subject, operation: None, outcomes, after });
            }
        }
    }
    responses
}

fn batches(case: &mut Case) -> Vec<PolicyBatch> {
    let mut batches = Vec::with_capacity(case.policies.policies.len());
    for i in 0..case.policies.policies.len() {
        let Some(program) = case.policies.policies.get(i).map(|loaded| Arc::clone(&loaded.program)) else { break };
        let (mut phases, mut of_json): (Vec<Phase>, Vec<Phase>) = Default::default();
        for rule in &program.rules {
            for (known, takes_part) in [(&mut phases, true), (&mut of_json, rule.body.judges_json())] {
                if takes_part && !known.contains(&rule.phase()) {
                    known.push(rule.phase());
                }
            }
        }
        let mut files: Vec<ephor_expr::Str> = Vec::new();
        for result in case.results.iter().filter(|r| last_segment(&r.policy) == program.id.name) {
            files.extend(result.clone_source_resource.clone().filter(|f| !f.is_empty() && !files.contains(f)));
        }
        let sources = files.iter().flat_map(|file| case.read(file)).collect();
        let of_context = case.context.iter().map(|context| &context.resources);
        let objects_of_case = [&case.triggers, &case.targets, &case.params].into_iter();
        let at_hand = objects_of_case.chain(&case.cluster).chain(of_context).chain(&case.values.namespaces);
        let at_hand = objects(case, at_hand.flatten().cloned().collect());
        let images = case.context.as_ref().map(|context| context.images.clone()).unwrap_or_default();
        batches.push(PolicyBatch {
            name: program.id.name.clone(),
            set: PolicySet::new(vec![program]),
            phases,
            of_json,
            at_hand: Host::new().with(case.mocks.clone()).with(images).with(at_hand),
            sources,
        });
    }
    batches
}

/// A generate rule sees the trigger, its sources, the imagined cluster and the context, and nothing else.
fn generating_host(case: &Case, batch: &PolicyBatch, trigger: &Value) -> Host {
    let of_context = case.context.iter().flat_map(|context| &context.resources);
    let at_hand = std::iter::once(trigger).chain(&batch.sources).chain(case.cluster.iter().flatten()).chain(of_context);
    Host::new().with(case.mocks.clone()).with(objects(case, at_hand.cloned().collect()))
}

/// Only an imagined cluster and a context answer calls of the API.
fn objects(case: &Case, at_hand: Vec<Value>) -> ObjectsAtHand {
    let objects = ObjectsAtHand::new(at_hand);
    if case.cluster.is_some() || case.context.is_some() { objects.with_api() } else { objects }
}

/// The part of a policy's name after its namespace.
pub(super) fn last_segment(policy: &str) -> &str {
    policy.rsplit_once('/').map_or(policy, |(_, name)| name)
}

fn review(
    case: &Case,
    object: &Value,
    policy: &str,
    operation: Option<Operation>,
    now: jiff::Timestamp,
) -> Result<Review, ValuesError> {
    let mut review = of_object(case, object, now);
    review.user.clone_from(&case.user);
    case.values.apply(&mut review, policy, None, operation)?;
    Ok(review)
}

/// A review of an object, with what the test says about its kind and namespace.
fn of_object(case: &Case, object: &Value, now: jiff::Timestamp) -> Review {
    let mut review = Review::of_object(object.clone(), now);
    // Where there is an imagined cluster, kinds are what they are.
    if case.cluster.is_none()
        && let Some((parent, subresource)) = case.values.subresource(&review.gvk)
    {
        review.gvk = parent;
        review.subresource = subresource;
    }
    review.namespace_labels = case.values.namespace_labels(&review.namespace);
    review
}
