//! The identity of an object, independent of the version it is read in.

use std::fmt;

use ephor_cluster::resource::split_api_version;
use ephor_expr::{Str, Value};
use ephor_runtime::kinds::GroupKind;

/// Group, kind, namespace and name of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The group; empty for the core group.
    pub group: Str,
    /// The kind.
    pub kind: Str,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: Str,
    /// The name.
    pub name: Str,
}

impl ObjectId {
    /// The identity of an object with `apiVersion`, `kind` and `metadata`.
    pub fn of(object: &Value) -> Self {
        let text = |keys: &[&str]| object.str_at(keys).unwrap_or_default();
        Self::new(text(&["apiVersion"]), text(&["kind"]), text(&["metadata", "namespace"]), text(&["metadata", "name"]))
    }

    /// The identity of the object of that name; the version in `api_version` does not count.
    pub fn new(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let (group, _) = split_api_version(api_version);
        Self { group: group.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    /// The kind of the object.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }

    /// The namespace, for calls of a cluster.
    pub fn namespace(&self) -> Option<&str> {
        Some(self.namespace.as_str()).filter(|n| !n.is_empty())
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}
