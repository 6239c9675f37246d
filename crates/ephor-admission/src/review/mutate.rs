//! The mutate webhook: every mutate rule in order, each seeing what the ones before made; one patch.

use ephor_engine::outcome::{Outcome, Phase, Verdict};
use ephor_engine::policy::FailurePolicy;
use ephor_expr::Value;
use ephor_runtime::decision::answer::Answer;
use ephor_runtime::decision::observe::Decided;
use ephor_runtime::decision::path;
use ephor_runtime::redact;

use super::handlers::{Inner, Prepared};
use super::judge::{Judge, WouldBlock};
use super::policy_sets::WebhookPolicies;
use super::{messages, patch};

impl Inner {
    pub(super) fn mutate(
        &self,
        prepared: &Prepared<'_>,
        policies: &WebhookPolicies,
        judge: &Judge<'_>,
    ) -> Result<Answer, WouldBlock> {
        let request = prepared.request;
        let mut done = judge.evaluate(&policies.all, prepared.review.clone(), Phase::Mutate)?;
        if done.outcomes.is_empty() {
            return Ok(Answer::allow());
        }
        judge.redact(&mut done.outcomes);
        let explained = judge.explain(&policies.all, &done);
        let blocking = self.failed_mutation(prepared, policies, &done.outcomes);
        self.parts.observer.decided(&Decided {
            phase: Phase::Mutate,
            request,
            gvk: &prepared.gvk,
            object: &done.object,
            snapshot: &prepared.sets.snapshot,
            programs: policies.all.programs(),
            outcomes: &done.outcomes,
            explained: &explained,
            blocked: blocking.is_some(),
            took: prepared.begun.elapsed(),
        });
        if let Some(message) = blocking {
            return Ok(Answer::deny(message));
        }
        let operations = patch::between(&request.object, &done.object);
        if self.options.dump_patches && !operations.is_empty() {
            let before = redact::without_values(&request.object);
            let operations = Value::array(patch::between(&before, &redact::without_values(&done.object)));
            tracing::info!(uid = %request.uid, patch = %operations, "admission patch");
        }
        let warnings = done.outcomes.iter().filter(|outcome| outcome.verdict != Verdict::Skip).filter_map(|outcome| {
            let program = policies.all.programs().get(outcome.policy)?;
            program.emit_warning.then(|| messages::warning(&program.id.name, &outcome.rule, &outcome.message))
        });
        Ok(Answer {
            patch: (!operations.is_empty()).then(|| Value::array(operations)),
            ..Answer::allow().with_warnings(warnings)
        })
    }

    /// The denial by the first policy that could not be applied and must not be passed over. The changes of one that
    /// may be are dropped.
    fn failed_mutation(
        &self,
        prepared: &Prepared<'_>,
        policies: &WebhookPolicies,
        outcomes: &[Outcome],
    ) -> Option<String> {
        let failed = outcomes.iter().find(|outcome| {
            outcome.verdict == Verdict::Error
                && policies.all.programs().get(outcome.policy).is_some_and(|program| {
                    path::failure_policy(program, self.options.force_failure_policy_ignore) == FailurePolicy::Fail
                })
        })?;
        let program = policies.all.programs().get(failed.policy)?;
        if program.id.kind.is_of_cel() {
            let request = prepared.request;
            let (namespace, name) = (request.object_namespace(), request.object_name());
            let errors = [(program.id.name.as_str(), failed.message.as_str())];
            return Some(messages::cel_mutation_failed(namespace, name, &prepared.gvk.kind, &errors));
        }
        let errors: Vec<(&str, &str)> = outcomes
            .iter()
            .filter(|outcome| outcome.policy == failed.policy && outcome.verdict == Verdict::Error)
            .map(|outcome| (outcome.rule.as_str(), outcome.message.as_str()))
            .collect();
        Some(messages::mutation_failed(&program.id.name, &errors))
    }
}
