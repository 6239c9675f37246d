//! The webhooks that an API server would call, for a host that has none: their names, and whether a request meets their
//! conditions.
//!
//! An API server evaluates the selectors and conditions of a webhook before it calls it. The sandbox asks here which
//! webhooks a request concerns, and calls them as an API server would.

use std::sync::Arc;
use std::time::Instant;

use ephor_engine::cel::Matched;
use ephor_engine::compile::{Program, RequestDemand};
use ephor_engine::matching::RequestResource;
use ephor_engine::outcome::Phase;
use ephor_engine::policy::FailurePolicy;
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_runtime::decision::path::{self, Webhook, WebhookScope};
use ephor_runtime::decision::request::AdmissionRequest;
use ephor_runtime::facts;
use ephor_runtime::policies::PolicyId;

use super::handlers::{Handlers, USUAL_TIME, seed};
use super::judge::Effort;
use crate::webhooks::{failure_segment, fine_grained};

/// A webhook, and whether a request meets its conditions.
#[derive(Debug)]
pub struct Called {
    /// What to ask if it does.
    pub scope: WebhookScope,
    /// The webhook's name, such as `validate.kyverno.svc-fail`.
    pub name: String,
    /// Whether it does.
    pub matched: Matched,
}

/// In the order in which they are asked.
const FAILURES: [FailurePolicy; 2] = [FailurePolicy::Ignore, FailurePolicy::Fail];

impl Handlers {
    /// The webhooks that would be registered, as far as a request concerns them: those that policies share first.
    pub fn webhooks(&self, webhook: Webhook, request: &AdmissionRequest) -> Vec<Called> {
        let mut called: Vec<Called> = FAILURES
            .into_iter()
            .map(|failure| Called {
                scope: WebhookScope::ByFailurePolicy(failure),
                name: format!("{}.kyverno.svc-{}", webhook.as_str(), failure_segment(failure)),
                matched: Matched::Yes,
            })
            .collect();
        called.extend(self.shared(webhook));
        let mut own = self.own(webhook, request);
        own.sort_by(|a, b| a.name.cmp(&b.name));
        called.extend(own);
        called
    }

    fn failure(&self, program: &Program) -> FailurePolicy {
        path::failure_policy(program, self.0.options.force_failure_policy_ignore)
    }

    /// The webhooks that policies of `policies.kyverno.io` share.
    fn shared(&self, webhook: Webhook) -> Vec<Called> {
        let sets = self.0.sets.get();
        let mut called = Vec::new();
        for (kind, failure) in path::kinds_of(webhook).flat_map(|kind| FAILURES.map(|failure| (kind, failure))) {
            let shares = |program: &&Arc<Program>| {
                program.id.kind == kind && program.admission && !program.webhook.own && self.failure(program) == failure
            };
            let policies: Vec<PolicyId> =
                sets.snapshot.set.programs().iter().filter(shares).map(|program| program.id.clone()).collect();
            if !policies.is_empty() {
                let word = path::word(kind).unwrap_or_default();
                called.push(Called {
                    scope: WebhookScope::Policies(failure, policies),
                    name: format!("{word}.validate.kyverno.svc-{}", failure_segment(failure)),
                    matched: Matched::Yes,
                });
            }
        }
        called
    }

    /// The webhooks of single policies that a request concerns by its resource and namespace.
    fn own(&self, webhook: Webhook, request: &AdmissionRequest) -> Vec<Called> {
        let inner = &self.0;
        let sets = inner.sets.get();
        let policies = sets.snapshot.policies.iter();
        let owning = policies.filter_map(|(key, policy)| {
            let program = policy.program.clone().filter(|program| program.admission && program.webhook.own)?;
            Some((key, program))
        });
        let mut found = Vec::new();
        let mut review = None;
        for (key, program) in owning {
            if review.is_none() {
                let effort = Effort::Blocking(Instant::now() + USUAL_TIME);
                let Ok(gvk) = inner.kinds.of(request, &inner.parts.cluster, effort) else { return found };
                let now = jiff::Timestamp::now();
                let mut made = request.review(gvk, request.user.clone(), now, seed(&request.uid));
                made.namespace_labels = inner.parts.namespaces.get(request.object_namespace());
                review = Some(made);
            }
            let Some(review) = &review else { return found };
            if concerns(&program, webhook, request, review) {
                let failure = self.failure(&program);
                let word = match path::word(key.kind) {
                    Some(word) => format!("{word}.validate"),
                    None => webhook.as_str().to_owned(),
                };
                found.push(Called {
                    scope: WebhookScope::Policies(failure, vec![PolicyId::clone(key)]),
                    name: format!("{word}.kyverno.svc-{}{}", failure_segment(failure), fine_grained(key).0),
                    matched: facts::meets_conditions(&program, review, &*inner.parts.answers),
                });
            }
        }
        found
    }
}

/// Whether a policy's own webhook is about a request.
fn concerns(program: &Arc<Program>, webhook: Webhook, request: &AdmissionRequest, review: &Review) -> bool {
    let resource = RequestResource {
        group: &request.resource.group,
        version: &request.resource.version,
        resource: &request.resource.resource,
        subresource: &request.sub_resource,
    };
    if program.id.kind.is_of_cel() {
        let hook = |demand: &RequestDemand| webhook.hook() == demand.hook;
        let of_hook = program.rules.iter().filter(|rule| rule.demands.requests.iter().any(hook));
        let in_place = program.id.namespace.as_ref().is_none_or(|own| *own == review.namespace);
        return in_place
            && of_hook.filter_map(|rule| rule.body.constraints()).any(|constraints| {
                constraints.matches(review, &resource) && constraints.selects_namespace(review) != Some(false)
            });
    }
    let set = PolicySet::new(vec![Arc::clone(program)]);
    let mut rules = Vec::new();
    phases(webhook).iter().any(|phase| {
        set.candidates(*phase, review, &mut rules);
        !rules.is_empty()
    })
}

/// The phases that a webhook is called for.
fn phases(webhook: Webhook) -> &'static [Phase] {
    match webhook {
        Webhook::Mutate => &[Phase::Mutate],
        Webhook::Validate => &[Phase::Validate, Phase::Generate, Phase::MutateExisting],
    }
}
