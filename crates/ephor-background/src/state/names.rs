//! How labels encode the names of policies and keys.

use ephor_expr::Str;
use ephor_runtime::policies::PolicyKey;

use crate::plan::Owner;
use crate::queue::WorkKey;

/// The key of an owner.
pub fn key_of(owner: &Owner) -> WorkKey {
    WorkKey { policy: policy_key(&owner.policy_namespace, &owner.policy), trigger: owner.trigger.clone() }
}

/// The key of a policy, from labels.
pub fn policy_key(namespace: &str, name: &str) -> PolicyKey {
    PolicyKey { namespace: Some(Str::new(namespace)).filter(|ns| !ns.is_empty()), name: name.into() }
}

/// Namespace (empty for none) and name of a policy, as labels have them.
pub fn label_parts(key: &PolicyKey) -> (&str, &str) {
    (key.namespace.as_deref().unwrap_or_default(), &key.name)
}
