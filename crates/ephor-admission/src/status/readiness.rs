//! Whether a policy holds: the API server asks for it where it must, and nothing that it wants in the background fails.

use ephor_runtime::policies::{StoredPolicy, background_failure};

use crate::registration::Registration;
use crate::webhooks::{RegisteredFrom, Serving, WebhookSettings};

/// Whether a policy holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It does: the API server asks for it, or need not, and nothing fails in the background.
    Ready,
    /// It does not, or not all of it, and why.
    Failed(String),
    /// It is not known yet; what was said before stands.
    Unknown,
}

/// Whether `policy` holds, given what is registered.
pub fn readiness(policy: &StoredPolicy, registration: &Registration, settings: &WebhookSettings) -> Readiness {
    let errors: Vec<String> = policy.findings.iter().filter(|f| f.is_error()).map(ToString::to_string).collect();
    if !errors.is_empty() {
        return Readiness::Failed(errors.join("; "));
    }
    let registered = is_asked_for(policy, registration, settings);
    match background_failure(&policy.document) {
        Some(failure) if registered == Readiness::Ready => Readiness::Failed(failure.to_owned()),
        _ => registered,
    }
}

/// Whether the API server asks for `policy`, or need not.
fn is_asked_for(policy: &StoredPolicy, registration: &Registration, settings: &WebhookSettings) -> Readiness {
    let asked = policy.program.as_ref().is_some_and(|program| program.admission);
    let follows = settings.registered_from == RegisteredFrom::Policies && settings.serving == Serving::Enforcing;
    if !asked || !follows {
        return Readiness::Ready;
    }
    match (registration.of(policy), &registration.failure) {
        (Some(registered), _) => registered.refusal.clone().map_or(Readiness::Ready, Readiness::Failed),
        (None, Some(failure)) => Readiness::Failed(format!("the webhooks cannot be registered: {failure}")),
        (None, None) => Readiness::Unknown,
    }
}
