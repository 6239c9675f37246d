//! The webhooks of policies with match conditions, for a host that has no API server to evaluate the conditions.
//!
//! An API server evaluates the conditions of a webhook before it calls it. The sandbox asks here which of these
//! webhooks a request concerns and whether it meets their conditions, and calls them as an API server would.

use std::time::Instant;

use ephor_engine::cel::Matched;
use ephor_engine::outcome::Phase;
use ephor_engine::select::PolicySet;
use ephor_runtime::decision::path::{self, Webhook, WebhookScope};
use ephor_runtime::decision::request::AdmissionRequest;
use ephor_runtime::facts;
use ephor_runtime::policies::PolicyId;

use super::handlers::{Handlers, USUAL_TIME, seed};
use super::judge::Effort;
use crate::webhooks::{failure_segment, fine_grained};

/// A webhook of one policy, and whether a request meets its conditions.
#[derive(Debug)]
pub struct Conditioned {
    /// What to ask if it does.
    pub scope: WebhookScope,
    /// The end of the webhook's name, such as `-fail-finegrained-NAME`.
    pub name: String,
    /// Whether it does.
    pub matched: Matched,
}

impl Handlers {
    /// The webhooks of policies with match conditions that a request concerns by its kind and namespace.
    pub fn conditioned(&self, webhook: Webhook, request: &AdmissionRequest) -> Vec<Conditioned> {
        let inner = &self.0;
        let sets = inner.sets.get();
        let policies = sets.snapshot.policies.iter();
        let conditioned = policies.filter_map(|(key, policy)| {
            let program = policy.program.clone().filter(|p| p.admission && !p.match_conditions.is_empty())?;
            Some((key, program))
        });
        let mut found = Vec::new();
        let mut review = None;
        for (key, program) in conditioned {
            if review.is_none() {
                let effort = Effort::Blocking(Instant::now() + USUAL_TIME);
                let Ok(gvk) = inner.kinds.of(request, &inner.parts.cluster, effort) else { return found };
                let now = jiff::Timestamp::now();
                review = Some(request.review(gvk, request.user.clone(), now, seed(&request.uid)));
            }
            let Some(review) = &review else { return found };
            let set = PolicySet::new(vec![program.clone()]);
            let mut rules = Vec::new();
            let concerns = phases(webhook).iter().any(|phase| {
                set.candidates(*phase, &review.gvk.kind, &review.namespace, &mut rules);
                !rules.is_empty()
            });
            if concerns {
                let failure = path::failure_policy(&program, inner.options.force_failure_policy_ignore);
                found.push(Conditioned {
                    scope: WebhookScope::OnePolicy(failure, PolicyId::clone(key)),
                    name: format!("-{}{}", failure_segment(failure), fine_grained(key).0),
                    matched: facts::meets_conditions(&program, review, &*inner.parts.answers),
                });
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }
}

/// The phases that a webhook is called for.
fn phases(webhook: Webhook) -> &'static [Phase] {
    match webhook {
        Webhook::Mutate => &[Phase::Mutate],
        Webhook::Validate => &[Phase::Validate, Phase::Generate, Phase::MutateExisting],
    }
}
