//! Which policy: the identity that stores, indexes, statuses, metrics and reports share.
//!
//! Kinds have names of their own, so a policy is its kind, namespace and name together: two policies of one name never
//! share an entry of a map. Texts on the wire (`namespace/name` in URLs, labels and requests) name policies of
//! `kyverno.io` alone; [`PolicyId::kyverno`] and [`PolicyId::parse`] read those.

use std::fmt;

use ephor_expr::{Str, Value};

use super::PolicyKind;

/// Which kind of document a policy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProgramKind {
    /// `ClusterPolicy` of `kyverno.io`.
    ClusterPolicy,
    /// `Policy` of `kyverno.io`.
    Policy,
    /// `ValidatingAdmissionPolicy` of Kubernetes.
    ValidatingAdmissionPolicy,
    /// `MutatingAdmissionPolicy` of Kubernetes.
    MutatingAdmissionPolicy,
    /// `ValidatingPolicy` of `policies.kyverno.io`.
    ValidatingPolicy,
    /// `NamespacedValidatingPolicy` of `policies.kyverno.io`.
    NamespacedValidatingPolicy,
    /// `MutatingPolicy` of `policies.kyverno.io`.
    MutatingPolicy,
    /// `NamespacedMutatingPolicy` of `policies.kyverno.io`.
    NamespacedMutatingPolicy,
    /// `GeneratingPolicy` of `policies.kyverno.io`.
    GeneratingPolicy,
    /// `NamespacedGeneratingPolicy` of `policies.kyverno.io`.
    NamespacedGeneratingPolicy,
    /// `DeletingPolicy` of `policies.kyverno.io`.
    DeletingPolicy,
    /// `NamespacedDeletingPolicy` of `policies.kyverno.io`.
    NamespacedDeletingPolicy,
}

/// Whether a group is one of policies, exceptions and requests.
pub fn is_own_group(group: &str) -> bool {
    matches!(group, "kyverno.io" | "policies.kyverno.io")
}

impl ProgramKind {
    /// Whether it is an admission policy of Kubernetes.
    pub fn is_of_kubernetes(self) -> bool {
        matches!(self, Self::ValidatingAdmissionPolicy | Self::MutatingAdmissionPolicy)
    }

    /// Whether its policies live in namespaces.
    pub fn is_namespaced(self) -> bool {
        matches!(
            self,
            Self::Policy
                | Self::NamespacedValidatingPolicy
                | Self::NamespacedMutatingPolicy
                | Self::NamespacedGeneratingPolicy
                | Self::NamespacedDeletingPolicy
        )
    }

    /// Whether it is of `policies.kyverno.io`.
    pub fn is_of_cel(self) -> bool {
        matches!(
            self,
            Self::ValidatingPolicy
                | Self::NamespacedValidatingPolicy
                | Self::MutatingPolicy
                | Self::NamespacedMutatingPolicy
                | Self::GeneratingPolicy
                | Self::NamespacedGeneratingPolicy
                | Self::DeletingPolicy
                | Self::NamespacedDeletingPolicy
        )
    }

    /// The version in which its objects are read, and its kind, of the kinds whose objects Ephor follows in a cluster.
    pub const STORED: [(&'static str, Self); 8] = [
        ("kyverno.io/v1", Self::ClusterPolicy),
        ("kyverno.io/v1", Self::Policy),
        ("policies.kyverno.io/v1beta1", Self::ValidatingPolicy),
        ("policies.kyverno.io/v1beta1", Self::NamespacedValidatingPolicy),
        ("policies.kyverno.io/v1beta1", Self::MutatingPolicy),
        ("policies.kyverno.io/v1beta1", Self::NamespacedMutatingPolicy),
        ("policies.kyverno.io/v1beta1", Self::GeneratingPolicy),
        ("policies.kyverno.io/v1beta1", Self::NamespacedGeneratingPolicy),
    ];

    /// The same of the kinds that delete on a schedule. Only the cleanup role follows them.
    pub const DELETING: [(&'static str, Self); 2] = [
        ("policies.kyverno.io/v1beta1", Self::DeletingPolicy),
        ("policies.kyverno.io/v1beta1", Self::NamespacedDeletingPolicy),
    ];

    /// Whether the roles that judge requests and objects follow its objects in a cluster.
    pub fn is_stored(self) -> bool {
        Self::STORED.iter().any(|(_, kind)| *kind == self)
    }

    /// Whether any role carries out its objects in a cluster.
    pub fn is_carried_out(self) -> bool {
        self.is_stored() || Self::DELETING.iter().any(|(_, kind)| *kind == self)
    }

    /// The version in which its objects are read in a cluster; `None` of kinds that no role follows.
    pub fn api_version(self) -> Option<&'static str> {
        let followed = Self::STORED.into_iter().chain(Self::DELETING);
        followed.into_iter().find(|(_, kind)| *kind == self).map(|(version, _)| version)
    }

    /// The kind, as documents spell it; `None` for a kind that is no policy.
    pub fn parse(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == kind)
    }

    const ALL: [Self; 12] = [
        Self::ClusterPolicy,
        Self::Policy,
        Self::ValidatingAdmissionPolicy,
        Self::MutatingAdmissionPolicy,
        Self::ValidatingPolicy,
        Self::NamespacedValidatingPolicy,
        Self::MutatingPolicy,
        Self::NamespacedMutatingPolicy,
        Self::GeneratingPolicy,
        Self::NamespacedGeneratingPolicy,
        Self::DeletingPolicy,
        Self::NamespacedDeletingPolicy,
    ];

    /// The kind, as documents spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterPolicy => "ClusterPolicy",
            Self::Policy => "Policy",
            Self::ValidatingAdmissionPolicy => "ValidatingAdmissionPolicy",
            Self::MutatingAdmissionPolicy => "MutatingAdmissionPolicy",
            Self::ValidatingPolicy => "ValidatingPolicy",
            Self::NamespacedValidatingPolicy => "NamespacedValidatingPolicy",
            Self::MutatingPolicy => "MutatingPolicy",
            Self::NamespacedMutatingPolicy => "NamespacedMutatingPolicy",
            Self::GeneratingPolicy => "GeneratingPolicy",
            Self::NamespacedGeneratingPolicy => "NamespacedGeneratingPolicy",
            Self::DeletingPolicy => "DeletingPolicy",
            Self::NamespacedDeletingPolicy => "NamespacedDeletingPolicy",
        }
    }
}

impl From<PolicyKind> for ProgramKind {
    fn from(kind: PolicyKind) -> Self {
        match kind {
            PolicyKind::ClusterPolicy => Self::ClusterPolicy,
            PolicyKind::Policy => Self::Policy,
        }
    }
}

/// Which policy. Cluster-wide ones come first, each by name: the order in which policies are evaluated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId {
    /// The namespace of a namespaced kind; `None` for cluster-wide ones.
    pub namespace: Option<Str>,
    /// The name.
    pub name: Str,
    /// The kind.
    pub kind: ProgramKind,
}

impl PolicyId {
    /// The policy of a kind. A namespaced one without a namespace is in `default`, a cluster-wide one has none.
    pub fn new(kind: ProgramKind, namespace: Option<&str>, name: Str) -> Self {
        let namespace = namespace.filter(|namespace| !namespace.is_empty()).unwrap_or("default");
        Self { namespace: kind.is_namespaced().then(|| Str::new(namespace)), name, kind }
    }

    /// The policy that a document is. Kinds that are none are read as `ClusterPolicy`, which compiling them refuses.
    pub fn of(document: &Value) -> Self {
        let kind = document.str_at(&["kind"]).and_then(ProgramKind::parse).unwrap_or(ProgramKind::ClusterPolicy);
        let name = Str::new(document.str_at(&["metadata", "name"]).unwrap_or_default());
        Self::new(kind, document.str_at(&["metadata", "namespace"]), name)
    }

    /// The `Policy` of a namespace, or the `ClusterPolicy` if the namespace is empty.
    pub fn kyverno(namespace: &str, name: &str) -> Self {
        let kind = if namespace.is_empty() { ProgramKind::ClusterPolicy } else { ProgramKind::Policy };
        Self::new(kind, Some(namespace), name.into())
    }

    /// The policy of `kyverno.io` that `namespace/name` or `name` stands for.
    pub fn parse(text: &str) -> Self {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        Self::kyverno(namespace, name)
    }

    /// The namespace as labels have it: empty for cluster-wide policies.
    pub fn namespace_label(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }
}

/// `namespace/name`, or the name of a cluster-wide policy.
impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    #[test]
    fn policies_of_one_name_and_several_kinds_are_several() {
        let ids = ["ClusterPolicy", "Policy", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"]
            .map(|kind| PolicyId::of(&parse_value(&format!("{{kind: {kind}, metadata: {{name: p}}}}")).unwrap()));
        let different: std::collections::BTreeSet<&PolicyId> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert_eq!(ids.map(|id| id.to_string()), ["p", "default/p", "p", "p"]);
    }

    #[test]
    fn texts_name_policies_of_kyverno() {
        for (text, kind) in [("p", ProgramKind::ClusterPolicy), ("n/p", ProgramKind::Policy)] {
            let id = PolicyId::parse(text);
            assert_eq!((id.kind, id.to_string().as_str()), (kind, text));
            assert_eq!(PolicyId::kyverno(id.namespace_label(), &id.name), id);
        }
    }
}
