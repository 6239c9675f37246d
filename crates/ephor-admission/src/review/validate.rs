//! The validate webhook: rules that may block before the reply, audit after it, hand-over of background work between.
//!
//! A violation blocks where the rule resolves to Enforce for the namespace. An error blocks if the rule's own policy
//! says Fail. Upstream lets errors of one policy block by the failure policy of another, and errors of audit rules too;
//! here each policy answers for itself (docs/compatibility.md). Where a policy of `policies.kyverno.io` denies, its
//! errors block whatever its failure policy, as upstream's do.

use ephor_engine::compile::{Body, Program};
use ephor_engine::outcome::{Outcome, Phase, RuleKind, Verdict};
use ephor_engine::policy::{FailureAction, FailurePolicy};
use ephor_expr::{Map, Value};
use ephor_runtime::decision::answer::Answer;
use ephor_runtime::decision::observe::{Decided, Dropped};
use ephor_runtime::decision::path;
use ephor_runtime::decision::proof::Sender;
use ephor_runtime::decision::request::AdmissionRequest;

use super::audit::Job;
use super::handlers::{Inner, Prepared};
use super::judge::{Judge, WouldBlock};
use super::messages::{self, RuleMessage};
use super::policy_sets::WebhookPolicies;

impl Inner {
    pub(super) fn validate(
        &self,
        prepared: &Prepared<'_>,
        policies: &std::sync::Arc<WebhookPolicies>,
        judge: &Judge<'_>,
    ) -> Result<Answer, WouldBlock> {
        let request = prepared.request;
        let mut done = judge.evaluate(&policies.urgent, prepared.review.clone(), Phase::Validate)?;
        judge.redact(&mut done.outcomes);
        let explained = judge.explain(&policies.urgent, &done);
        let outcomes = done.outcomes;
        let programs = policies.urgent.programs();
        let weigh = Weighing {
            namespace: &prepared.review.namespace,
            labels: prepared.review.namespace_labels.as_ref().and_then(Value::as_object),
            force_ignore: self.options.force_failure_policy_ignore,
        };
        let blocked = outcomes.iter().any(|o| programs.get(o.policy).is_some_and(|program| weigh.blocks(program, o)));

        // Before anybody is told: a request that has to wait for the cluster is judged once more.
        let handed_over = if blocked { Ok(()) } else { self.hand_over(prepared, policies, judge)? };
        let refused = handed_over.as_ref().is_err_and(|answer| !answer.allowed);

        if !outcomes.is_empty() {
            self.parts.observer.decided(&Decided {
                phase: Phase::Validate,
                request,
                gvk: &prepared.gvk,
                object: request.subject(),
                snapshot: &prepared.sets.snapshot,
                programs,
                outcomes: &outcomes,
                explained: &explained,
                blocked: blocked || refused,
                took: prepared.begun.elapsed(),
            });
        }
        if blocked {
            return Ok(Answer::deny(denial(request, programs, &outcomes, &weigh)));
        }
        if let Err(answer) = &handed_over
            && refused
        {
            return Ok(answer.clone());
        }
        self.audit.take(
            Job {
                request: request.clone(),
                gvk: prepared.gvk.clone(),
                review: prepared.review.clone(),
                sets: std::sync::Arc::clone(&prepared.sets),
                policies: std::sync::Arc::clone(policies),
                explained: self.options.explained,
            },
            &self.parts,
        );
        if let Err(message) = handed_over {
            return Ok(message);
        }
        Ok(Answer::allow().with_warnings(warnings(programs, &outcomes)))
    }

    /// Hands work over to the background role; the answer to give instead if it could not be.
    fn hand_over(
        &self,
        prepared: &Prepared<'_>,
        policies: &WebhookPolicies,
        judge: &Judge<'_>,
    ) -> Result<Result<(), Answer>, WouldBlock> {
        if !policies.has_background_work || prepared.request.dry_run || self.options.shadow {
            return Ok(Ok(()));
        }
        if prepared.request.sender == Sender::Unproven {
            tracing::debug!(uid = %prepared.request.uid, "no work is handed over: the sender is not known to be the API server");
            self.parts.observer.dropped(Dropped::Unproven);
            return Ok(Ok(()));
        }
        let work = super::update_requests::plan(prepared, &policies.all, judge, &self.options)?;
        self.update_requests.write(work, judge.effort, &self.parts)
    }
}

/// How outcomes count in one namespace.
struct Weighing<'w> {
    namespace: &'w str,
    labels: Option<&'w Map>,
    force_ignore: bool,
}

impl Weighing<'_> {
    /// Whether the outcome was due before the reply.
    fn is_urgent(&self, program: &Program, outcome: &Outcome) -> bool {
        program.emit_warning
            || actions(program, outcome)
                .is_none_or(|actions| actions.urgency(self.namespace, self.labels) == FailureAction::Enforce)
    }

    fn blocks(&self, program: &Program, outcome: &Outcome) -> bool {
        let Some(actions) = actions(program, outcome) else { return false };
        let enforced = actions.urgency(self.namespace, self.labels) == FailureAction::Enforce;
        match outcome.verdict {
            // A policy that warns and denies does both.
            Verdict::Fail => {
                (enforced || program.emit_warning)
                    && actions.action(self.namespace, self.labels) == FailureAction::Enforce
            }
            Verdict::Error if program.id.kind.is_of_cel() => enforced && !self.force_ignore,
            Verdict::Error => enforced && path::failure_policy(program, self.force_ignore) == FailurePolicy::Fail,
            Verdict::Pass | Verdict::Warn | Verdict::Skip => false,
        }
    }
}

fn actions<'p>(program: &'p Program, outcome: &Outcome) -> Option<&'p ephor_engine::compile::FailureActions> {
    match &program.rules.get(outcome.index)?.body {
        Body::Validate(body) => Some(&body.actions),
        Body::Mutate(_) | Body::Generate(_) | Body::Admission(_) | Body::Policy(_) | Body::Delete(_) => None,
    }
}

fn denial(
    request: &AdmissionRequest,
    programs: &[std::sync::Arc<Program>],
    outcomes: &[Outcome],
    weigh: &Weighing<'_>,
) -> String {
    // Webhooks are for policies of `kyverno.io`, or of `policies.kyverno.io`.
    if programs.first().is_some_and(|program| program.id.kind.is_of_cel()) {
        let blocking = outcomes.iter().filter_map(|outcome| {
            let program = programs.get(outcome.policy).filter(|program| weigh.blocks(program, outcome))?;
            Some(messages::of_cel(&program.id.name, outcome.verdict, &outcome.message))
        });
        return blocking.collect::<Vec<_>>().join("; ");
    }
    let said: Vec<RuleMessage<'_>> = outcomes
        .iter()
        .filter(|outcome| !matches!(outcome.verdict, Verdict::Pass | Verdict::Skip))
        .filter_map(|outcome| {
            let program = programs.get(outcome.policy)?;
            weigh.is_urgent(program, outcome).then(|| RuleMessage {
                policy: &program.id.name,
                policy_key: &program.key,
                rule: &outcome.rule,
                message: &outcome.message,
            })
        })
        .collect();
    let subject = request.subject();
    let kind = subject.str_at(&["kind"]).unwrap_or(&request.kind.kind);
    let namespace = subject.str_at(&["metadata", "namespace"]).unwrap_or(request.object_namespace());
    messages::denial(kind, namespace, request.object_name(), &said)
}

/// What policies with `emitWarning` have to say about a request that goes on: violations and errors.
fn warnings(programs: &[std::sync::Arc<Program>], outcomes: &[Outcome]) -> Vec<String> {
    outcomes
        .iter()
        .filter(|o| o.kind == RuleKind::Validate && !matches!(o.verdict, Verdict::Pass | Verdict::Skip))
        .filter_map(|outcome| {
            let program = programs.get(outcome.policy)?;
            let name = &program.id.name;
            program.emit_warning.then(|| {
                if program.id.kind.is_of_cel() {
                    messages::of_cel(name, outcome.verdict, &outcome.message)
                } else {
                    messages::warning(name, &outcome.rule, &outcome.message)
                }
            })
        })
        .collect()
}
