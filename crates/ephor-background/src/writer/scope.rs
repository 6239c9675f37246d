//! The objects that the rules of a policy may write.
//!
//! A namespaced policy belongs to the owner of a namespace, who may know nothing of other namespaces. The controller
//! that writes for the policy may write everywhere, so it is this check that keeps the policy at home: it looks at the
//! object that is about to be written and at the scope of its kind, whatever rendered the object.

use ephor_cluster::Resource;
use ephor_expr::Str;
use ephor_runtime::policies::PolicyId;

use crate::plan::ObjectId;

/// Where the rules of a policy may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteScope {
    /// Objects of namespaced kinds in this namespace.
    Namespace(Str),
    /// All objects.
    Cluster,
}

/// Why a policy may not write an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutOfScope {
    /// The kind has no namespace.
    #[error("a Policy of namespace `{own}` may not write {id}: the kind is cluster-scoped")]
    ClusterScoped {
        /// The policy's namespace.
        own: Str,
        /// The object.
        id: Box<ObjectId>,
    },
    /// The object is in another namespace.
    #[error("a Policy of namespace `{own}` may not write {id}, which is in another namespace")]
    ForeignNamespace {
        /// The policy's namespace.
        own: Str,
        /// The object.
        id: Box<ObjectId>,
    },
    /// The namespace is that of Ephor itself.
    #[error("a Policy may not write {id}: namespace `{own}` holds the settings and the records of Ephor")]
    Settings {
        /// The namespace.
        own: Str,
        /// The object.
        id: Box<ObjectId>,
    },
}

impl WriteScope {
    /// The scope of a policy's rules.
    pub fn of(policy: &PolicyId) -> Self {
        policy.namespace.clone().map_or(Self::Cluster, Self::Namespace)
    }

    /// Whether an object of this kind may be written. `resource` comes from discovery; `settings` is the namespace in
    /// which Ephor keeps its settings and records.
    pub fn check(&self, resource: &Resource, id: &ObjectId, settings: &str) -> Result<(), OutOfScope> {
        let Self::Namespace(own) = self else { return Ok(()) };
        let (own, id) = (own.clone(), Box::new(id.clone()));
        if !resource.namespaced {
            Err(OutOfScope::ClusterScoped { own, id })
        } else if id.namespace != own {
            Err(OutOfScope::ForeignNamespace { own, id })
        } else if own == settings {
            Err(OutOfScope::Settings { own, id })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespaced_policy_writes_into_its_own_namespace_alone() {
        let config_map = Resource::guess("v1", "ConfigMap");
        let node = Resource { namespaced: false, ..Resource::guess("v1", "Node") };
        let policy = |namespace: Option<&str>| PolicyId::kyverno(namespace.unwrap_or_default(), "p");
        for (namespace, resource, object, allowed) in [
            (Some("team-a"), &config_map, ("ConfigMap", "team-a"), true),
            (Some("team-a"), &config_map, ("ConfigMap", "team-b"), false),
            (Some("team-a"), &config_map, ("ConfigMap", "team-a/../team-b"), false),
            (Some("team-a"), &config_map, ("ConfigMap", ""), false),
            (Some("team-a"), &node, ("Node", ""), false),
            (Some("team-a"), &node, ("Node", "team-a"), false),
            (Some("kyverno"), &config_map, ("ConfigMap", "kyverno"), false),
            (None, &config_map, ("ConfigMap", "team-b"), true),
            (None, &config_map, ("ConfigMap", "kyverno"), true),
            (None, &node, ("Node", ""), true),
        ] {
            let id = ObjectId::new("v1", object.0, object.1, "x");
            let checked = WriteScope::of(&policy(namespace)).check(resource, &id, "kyverno");
            assert_eq!(checked.is_ok(), allowed, "{namespace:?} {id}: {checked:?}");
        }
    }
}
