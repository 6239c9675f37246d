//! Admission in process: what the API server asks Ephor over HTTPS in production, asked directly.
//!
//! The same handlers answer; only the way is shorter. Each webhook that would be registered is asked by itself, so that
//! a refusal carries the name that it has on a real cluster.

use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use ephor_admission::policy_admission::PolicyAdmission;
use ephor_admission::review::{Called, Handlers};
use ephor_cluster::admission::{Admission, Attributes, Mutated, Operation};
use ephor_cluster::{ClusterError, MemoryCluster};
use ephor_engine::cel::Matched;
use ephor_engine::cleanup::ttl::TTL_LABEL;
use ephor_engine::policy::{FailurePolicy, is_own_group};
use ephor_engine::rules::mutate::JsonPatch;
use ephor_expr::Value;
use ephor_expr::budget::Budget;
use ephor_runtime::decision::path::{Webhook, WebhookScope};
use ephor_runtime::decision::{AdmissionRequest, Answer};
use rustc_hash::FxHasher;

use super::admission_policies::{MutatingPolicies, ValidatingPolicies, check_policy};
use super::observe::ShownDecisions;
use super::{accounts, scheduling};

/// The group of policies in CEL.
const CEL_POLICIES: &str = "policies.kyverno.io";

/// The handlers as a cluster asks them.
pub(super) struct InProcess {
    cluster: MemoryCluster,
    handlers: Handlers,
    own: PolicyAdmission,
    mutating: MutatingPolicies,
    validating: ValidatingPolicies,
    shown: Arc<ShownDecisions>,
}

impl InProcess {
    /// Handlers of resources, and of Ephor's own kinds; who shows what they decide.
    pub(super) fn new(
        cluster: MemoryCluster,
        handlers: Handlers,
        own: PolicyAdmission,
        shown: Arc<ShownDecisions>,
    ) -> Self {
        let (mutating, validating) = (MutatingPolicies::of(&cluster), ValidatingPolicies::of(&cluster));
        Self { cluster, handlers, own, mutating, validating, shown }
    }

    /// What is asked about objects of Ephor's own kinds, under which name.
    fn about_own(&self, request: &AdmissionRequest) -> Option<(&'static str, Answer)> {
        if !request.sub_resource.is_empty() {
            return None;
        }
        match request.resource.group.as_str() {
            "kyverno.io" => {}
            CEL_POLICIES if request.resource.resource != "policyexceptions" => {
                return Some(("validate-policy.kyverno.svc", self.own.policy(request)));
            }
            CEL_POLICIES => {}
            _ => return None,
        }
        match request.resource.resource.as_str() {
            "clusterpolicies" | "policies" => Some(("validate-policy.kyverno.svc", self.own.policy(request))),
            "policyexceptions" => Some(("kyverno-exception-validate.kyverno.svc", self.own.exception(request))),
            "globalcontextentries" => Some(("kyverno-globalcontext.kyverno.svc", self.own.global_context(request))),
            "cleanuppolicies" | "clustercleanuppolicies" => {
                Some(("kyverno-cleanup-controller.kyverno.svc", self.own.cleanup_policy(request)))
            }
            _ => None,
        }
    }
}

/// The UID of all requests about one write.
fn uid(attributes: &Attributes) -> String {
    let mut hasher = FxHasher::default();
    attributes.serial.hash(&mut hasher);
    format!("{:08x}-0000-4000-8000-{:012x}", hasher.finish() >> 32, attributes.serial)
}

fn request(attributes: &Attributes) -> Result<AdmissionRequest, ClusterError> {
    AdmissionRequest::of_value(&attributes.request(&uid(attributes)))
        .map_err(|error| ClusterError::denied(500, "InternalError", error.to_string()))
}

/// Whether objects are of Ephor's own kinds, which are no resources of its policies.
fn is_own_kind(attributes: &Attributes) -> bool {
    is_own_group(&attributes.resource.group)
}

/// An answer as the API server takes it: warnings, or the refusal that the client sees.
fn judged(webhook: &str, answer: Answer) -> Result<Vec<String>, ClusterError> {
    if answer.allowed {
        return Ok(answer.warnings);
    }
    let why = answer.message.filter(|message| !message.is_empty());
    let message = match why {
        Some(why) => format!("admission webhook {webhook:?} denied the request: {why}"),
        None => format!("admission webhook {webhook:?} denied the request without explanation"),
    };
    Err(ClusterError::denied(answer.code.unwrap_or(400), "", message))
}

/// Whether a webhook with match conditions is called. If they fail its failure policy decides, as in an API server.
fn is_called(scope: &WebhookScope, matched: Matched, attributes: &Attributes) -> Result<bool, ClusterError> {
    match (matched, scope.failure_policy()) {
        (Matched::Yes, _) => Ok(true),
        (Matched::No(_), _) | (Matched::Failed(_), FailurePolicy::Ignore) => Ok(false),
        (Matched::Failed(why), FailurePolicy::Fail) => {
            Err(ClusterError::forbidden(&attributes.resource, &attributes.name, &why))
        }
    }
}

fn patched(object: &Value, patch: &Value) -> Result<Value, ClusterError> {
    let fault = |why: String| ClusterError::denied(500, "InternalError", why);
    let patch = JsonPatch::from_value(patch).map_err(|error| fault(error.to_string()))?;
    patch.apply(object, &Budget::default()).map_err(|error| fault(error.to_string()))
}

impl Admission for InProcess {
    fn mutate(&self, attributes: &Attributes) -> Result<Mutated, ClusterError> {
        let mutated = self.ask_to_mutate(attributes);
        if let Err(refused) = &mutated {
            self.shown.finished(&uid(attributes), attributes, Some(refused));
        }
        mutated
    }

    fn validate(&self, attributes: &Attributes) -> Result<Vec<String>, ClusterError> {
        let validated = self.ask_to_validate(attributes);
        self.shown.finished(&uid(attributes), attributes, validated.as_ref().err());
        validated
    }
}

impl InProcess {
    fn ask_to_mutate(&self, attributes: &Attributes) -> Result<Mutated, ClusterError> {
        // Nothing mutates what goes.
        if attributes.operation == Operation::Delete {
            return Ok(Mutated::default());
        }
        let mut attributes = attributes.clone();
        let before = attributes.object.clone();
        if let Some(pod) = accounts::admitted(&self.cluster, &attributes) {
            attributes.object = scheduling::admitted(&self.cluster, pod);
        }
        let mutations = self.mutating.mutate(&mut attributes, request)?;
        let warnings = self.ask_webhooks_to_mutate(&mut attributes)?;
        self.mutating.mutate_again(mutations, &mut attributes, request)?;
        let object = Some(attributes.object).filter(|object| *object != before);
        Ok(Mutated { object, warnings })
    }

    /// Changes the object as the webhooks of Ephor do; their warnings.
    fn ask_webhooks_to_mutate(&self, attributes: &mut Attributes) -> Result<Vec<String>, ClusterError> {
        let mut warnings = Vec::new();
        if is_own_kind(attributes) {
            return Ok(warnings);
        }
        for Called { scope, name, matched } in self.handlers.webhooks(Webhook::Mutate, &request(attributes)?) {
            if !is_called(&scope, matched, attributes)? {
                continue;
            }
            let answer = self.handlers.mutate(&request(attributes)?, &scope);
            let patch = answer.patch.clone();
            warnings.extend(judged(&name, answer)?);
            if let Some(patch) = patch {
                attributes.object = patched(&attributes.object, &patch)?;
            }
        }
        Ok(warnings)
    }

    fn ask_to_validate(&self, attributes: &Attributes) -> Result<Vec<String>, ClusterError> {
        let request = request(attributes)?;
        check_policy(attributes)?;
        let mut warnings = self.validating.judge(attributes, &request)?;
        if let Some((webhook, answer)) = self.about_own(&request) {
            warnings.extend(judged(webhook, answer)?);
        }
        if is_own_kind(attributes) {
            return Ok(warnings);
        }
        for Called { scope, name, matched } in self.handlers.webhooks(Webhook::Validate, &request) {
            if is_called(&scope, matched, attributes)? {
                warnings.extend(judged(&name, self.handlers.validate(&request, &scope))?);
            }
        }
        if request.object.at(&["metadata", "labels", TTL_LABEL]).is_some() {
            warnings.extend(judged("kyverno-cleanup-controller.kyverno.svc", self.own.ttl(&request))?);
        }
        Ok(warnings)
    }
}
