//! What a stored policy demands of the webhooks.

use ephor_cluster::object;
use ephor_engine::compile::Demands;
use ephor_expr::Str;
use ephor_runtime::policies::{PolicyId, StoredPolicy};

/// What a policy must see.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// The policy.
    pub policy: PolicyId,
    /// When it was created (RFC 3339); empty if it does not say.
    pub created: Str,
    /// Which requests it must see, and on which terms.
    pub demands: Demands,
}

impl Demand {
    /// What a stored policy must see; `None` if admission does not ask it.
    pub fn of(stored: &StoredPolicy) -> Option<Self> {
        Some(Self {
            policy: stored.key.clone(),
            created: Str::new(object::text(&stored.document, "creationTimestamp")),
            demands: stored.program.as_ref()?.demands()?,
        })
    }
}
