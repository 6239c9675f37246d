//! What a match block is tested against.

use std::collections::BTreeMap;

use ephor_expr::{Map, Str, Value};

use super::Gvk;
use crate::policy::Operation;

/// An object and the request that brought it, as far as match blocks look.
#[derive(Debug, Clone, Copy)]
pub struct MatchInput<'a> {
    /// The kind of the request's top-level resource: `Pod` for `pods/exec`, `Deployment` for `deployments/scale`.
    pub gvk: &'a Gvk,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The object's name; may be empty on creation.
    pub name: &'a str,
    /// The object's `generateName`, which stands in for an empty name.
    pub generate_name: &'a str,
    /// The object's namespace; empty for a cluster-scoped one.
    pub namespace: &'a str,
    /// The object that labels and annotations are read from: the old one on DELETE, the new one otherwise.
    pub object: &'a Value,
    /// What the request does; scans and the command line test as CREATE.
    pub operation: Operation,
    /// The user; `None` if there is none, as in scans.
    pub user: Option<&'a UserInfo>,
    /// Labels of the object's namespace.
    pub namespace_labels: NamespaceLabels<'a>,
}

impl<'a> MatchInput<'a> {
    /// The object's labels.
    pub(super) fn labels(&self) -> Option<&'a Map> {
        self.object.at(&["metadata", "labels"])?.as_object()
    }

    /// The object's annotations.
    pub(super) fn annotations(&self) -> Option<&'a Map> {
        self.object.at(&["metadata", "annotations"])?.as_object()
    }
}

/// The labels of a namespace, or that they are not known.
#[derive(Debug, Clone, Copy)]
pub enum NamespaceLabels<'a> {
    /// `metadata.labels` of the namespace; empty when it has none.
    Known(&'a Map),
    /// Not fetched, or not found.
    Unknown,
}

/// Who sent a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The user's name.
    pub username: Str,
    /// The user's id.
    pub uid: Str,
    /// The user's groups.
    pub groups: Vec<Str>,
    /// More attributes, as the authenticator gave them.
    pub extra: BTreeMap<Str, Vec<Str>>,
    /// Roles bound to the user, `namespace:name`.
    pub roles: Vec<Str>,
    /// Cluster roles bound to the user.
    pub cluster_roles: Vec<Str>,
}

impl UserInfo {
    /// Namespace and name of the service account that the user is, for `serviceAccountNamespace` and
    /// `serviceAccountName`; both empty if it is none.
    ///
    /// As in the reference, what stands after the length of `system:serviceaccount:` is split at `:`; the prefix
    /// itself is not checked.
    pub fn service_account(&self) -> (&str, &str) {
        let rest = self.username.get("system:serviceaccount:".len()..).unwrap_or_default();
        let mut parts = rest.split(':');
        match (parts.next(), parts.next()) {
            (Some(namespace), Some(name)) => (namespace, name),
            _ => ("", ""),
        }
    }
}

/// Why it cannot be told whether a block matches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// A `namespaceSelector` decides, and the labels of the namespace are not known.
    #[error("the labels of namespace `{namespace}` are not available")]
    NamespaceLabelsUnavailable {
        /// Whose labels are missing.
        namespace: Str,
    },
}
