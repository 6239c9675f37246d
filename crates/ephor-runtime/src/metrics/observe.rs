//! Metrics of admission decisions.

use std::time::Duration;

use ephor_engine::outcome::Outcome;
use ephor_engine::policy::Operation;

use super::families::{About, ByOutcome, Families, Handle};
use super::policies::{of_program, rule_type};
use super::{Metrics, labels};
use crate::decision::observe::{Decided, Dropped, Observer};
use crate::decision::path::Webhook;
use crate::decision::{AdmissionRequest, Answer};

impl Observer for Metrics {
    fn decided(&self, decided: &Decided<'_>) {
        let families = self.families();
        let request = decided.request;
        if decided.outcomes.is_empty() || !families.exposure.counts(&request.namespace) {
            return;
        }
        let mut about = About {
            kind: decided.gvk.kind.clone(),
            namespace: labels::namespace_of(&request.kind.group, &request.kind.kind, &request.namespace).into(),
            operation: operation(request),
        };
        let handles = self.told_apart(&families, &mut about);
        let share = decided.took.as_secs_f64() / decided.outcomes.len() as f64;
        for outcome in decided.outcomes {
            let Some(program) = decided.programs.get(outcome.policy) else { continue };
            let key = (std::ptr::from_ref(&**program).addr(), outcome.index, outcome.verdict, request.dry_run);
            let known = handles.read().handles.get(&key).cloned();
            let (counter, histogram) = known.unwrap_or_else(|| {
                let made = make(&families, &about, decided, outcome);
                let mut handles = handles.write();
                let ByOutcome { handles, programs } = &mut *handles;
                if !programs.iter().any(|known| std::sync::Arc::ptr_eq(known, program)) {
                    programs.push(std::sync::Arc::clone(program));
                }
                handles.insert(key, made.clone());
                made
            });
            if let Some(counter) = counter {
                counter.inc();
            }
            if let Some(histogram) = histogram {
                histogram.observe(share);
            }
        }
    }

    fn answered(&self, request: &AdmissionRequest, webhook: Webhook, answer: &Answer, took: Duration) {
        let families = self.families();
        if !families.exposure.counts(&request.namespace) {
            return;
        }
        let mut about = About {
            kind: request.kind.kind.clone(),
            namespace: labels::namespace_of(&request.kind.group, &request.kind.kind, &request.namespace).into(),
            operation: operation(request),
        };
        self.told_apart(&families, &mut about);
        let labels = [
            ("resource_kind", about.kind.as_str()),
            ("resource_namespace", about.namespace.as_str()),
            ("resource_request_operation", about.operation),
            ("request_allowed", if answer.allowed { "true" } else { "false" }),
            (
                "request_webhook",
                match webhook {
                    Webhook::Mutate => "MutatingWebhookConfiguration",
                    Webhook::Validate => "ValidatingWebhookConfiguration",
                },
            ),
        ];
        families.admission_requests.inc(&labels);
        families.admission_duration.observe(&labels, took);
    }

    fn dropped(&self, what: Dropped) {
        let circuit = match what {
            Dropped::Audit => "admission audit",
            Dropped::UpdateRequest => "update requests",
            Dropped::Request => "admission requests",
            Dropped::Unproven => "unproven reviews",
        };
        self.breaker(circuit, true);
    }
}

fn operation(request: &AdmissionRequest) -> &'static str {
    operation_word(request.operation)
}

/// The word for an operation.
pub(super) fn operation_word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => "connect",
    }
}

fn make(families: &Families, about: &About, decided: &Decided<'_>, outcome: &Outcome) -> Handle {
    let Some(program) = decided.programs.get(outcome.policy) else { return (None, None) };
    let mut labels = of_program(program).to_vec();
    labels.extend([
        ("resource_kind", about.kind.as_str()),
        ("resource_namespace", about.namespace.as_str()),
        ("resource_request_operation", about.operation),
        ("rule_name", outcome.rule.as_str()),
        ("rule_result", outcome.verdict.as_str()),
        ("rule_type", rule_type(outcome.kind)),
        ("rule_execution_cause", "admission_request"),
        ("dry_run", if decided.request.dry_run { "true" } else { "false" }),
    ]);
    (families.policy_results.handle(&labels), families.policy_duration.handle(&labels))
}
