//! Whether a policy is enforced: it compiles, and the webhooks that it needs are registered.
//!
//! Work in the background that fails is told beside that and never makes a policy unready. Everybody who may create a
//! trigger could make work fail, with a quota for example, and so turn a ClusterPolicy that protects all namespaces
//! into one that looks broken.

use ephor_runtime::policies::{StoredPolicy, background_failure};

use crate::registration::Registration;
use crate::webhooks::{RegisteredFrom, Serving, WebhookSettings};

/// Whether a policy serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It does: the API server asks for it, or need not.
    Ready {
        /// What fails in the background.
        failing: Option<String>,
    },
    /// It does not, or not all of it, and why.
    Failed(String),
    /// It is not known yet; what was said before stands.
    Unknown,
}

/// Whether `policy` serves, given what is registered.
pub fn readiness(policy: &StoredPolicy, registration: &Registration, settings: &WebhookSettings) -> Readiness {
    let errors: Vec<String> = policy.findings.iter().filter(|f| f.is_error()).map(ToString::to_string).collect();
    if !errors.is_empty() {
        return Readiness::Failed(errors.join("; "));
    }
    let ready = || Readiness::Ready { failing: background_failure(&policy.document).map(str::to_owned) };
    is_asked_for(policy, registration, settings).unwrap_or_else(ready)
}

/// What speaks against the API server asking for `policy`; `None` if it asks, or need not.
fn is_asked_for(policy: &StoredPolicy, registration: &Registration, settings: &WebhookSettings) -> Option<Readiness> {
    let asked = policy.program.as_ref().is_some_and(|program| program.admission);
    let follows = settings.registered_from == RegisteredFrom::Policies && settings.serving == Serving::Enforcing;
    if !asked || !follows {
        return None;
    }
    match (registration.of(policy), &registration.failure) {
        (Some(registered), _) => registered.refusal.clone().map(Readiness::Failed),
        (None, Some(failure)) => Some(Readiness::Failed(format!("the webhooks cannot be registered: {failure}"))),
        (None, None) => Some(Readiness::Unknown),
    }
}
