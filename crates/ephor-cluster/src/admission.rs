//! What is asked before an object is written: the place of admission in an API server's write path.
//!
//! The order is that of Kubernetes: the new state is computed, [`Admission::mutate`] may change it, it is checked
//! against its schema, [`Admission::validate`] may refuse it, it is stored. If the object changed meanwhile, all of
//! it happens again.

use std::collections::BTreeMap;

use ephor_expr::{Map, Str, Value};

use crate::error::ClusterError;
use crate::resource::{Resource, split_api_version};

/// Who writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name, for example `system:serviceaccount:default:builder`.
    pub name: Str,
    /// The unique id, if there is one.
    pub uid: Str,
    /// The groups.
    pub groups: Vec<Str>,
    /// Anything else that the authenticator says.
    pub extra: BTreeMap<Str, Vec<Str>>,
}

impl Default for User {
    /// The administrator of a new cluster.
    fn default() -> Self {
        Self::new("kubernetes-admin", ["kubeadm:cluster-admins", "system:authenticated"])
    }
}

impl User {
    /// A user in groups.
    pub fn new<G: Into<Str>>(name: impl Into<Str>, groups: impl IntoIterator<Item = G>) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { name: name.into(), uid: Str::default(), groups, extra: BTreeMap::new() }
    }

    /// A service account, with the groups that all of its kind have.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let all = Str::new_static("system:serviceaccounts");
        let of_namespace = Str::from(format!("system:serviceaccounts:{namespace}"));
        Self::new(
            format!("system:serviceaccount:{namespace}:{name}"),
            [all, of_namespace, Str::new_static("system:authenticated")],
        )
    }

    /// The `userInfo` of requests.
    pub fn info(&self) -> Value {
        let mut info = Map::from_iter([
            (Str::new_static("groups"), Value::from(self.groups.clone())),
            (Str::new_static("username"), Value::from(self.name.clone())),
        ]);
        if !self.uid.is_empty() {
            info.insert("uid", self.uid.clone());
        }
        if !self.extra.is_empty() {
            let extra = self.extra.iter().map(|(key, values)| (key.clone(), Value::from(values.clone())));
            info.insert("extra", Value::object(extra.collect()));
        }
        Value::object(info)
    }
}

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It is created.
    Create,
    /// It is replaced, patched or applied.
    Update,
    /// It is deleted.
    Delete,
    /// Something is opened to it: a shell, a port, a proxy.
    Connect,
}

impl Operation {
    /// As reviews write it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A write that is about to happen.
#[derive(Debug, Clone, PartialEq)]
pub struct Attributes {
    /// The number of this attempt to write: all that is asked about one has the same.
    pub serial: u64,
    /// What is done.
    pub operation: Operation,
    /// The resource in the URL.
    pub resource: Resource,
    /// The subresource in the URL, or nothing.
    pub subresource: Str,
    /// `apiVersion` and `kind` of what is sent: for `pods/eviction` an `Eviction`.
    pub kind: (Str, Str),
    /// The namespace; empty for cluster-scoped kinds. Of a Namespace its own name.
    pub namespace: Str,
    /// The name; empty while it is still to be generated.
    pub name: Str,
    /// The new state; null on deletion.
    pub object: Value,
    /// The state before; null on creation.
    pub old_object: Value,
    /// `CreateOptions`, `UpdateOptions` and so on.
    pub options: Value,
    /// Whether nothing will be stored.
    pub dry_run: bool,
    /// Who writes.
    pub user: User,
}

impl Attributes {
    /// The `request` of an `AdmissionReview` (`admission.k8s.io/v1`) about this, with that `uid`.
    pub fn request(&self, uid: &str) -> Value {
        let (group, version) = split_api_version(&self.kind.0);
        let kind = Value::from([
            ("group", Value::from(group)),
            ("kind", Value::from(self.kind.1.clone())),
            ("version", Value::from(version)),
        ]);
        let resource = Value::from([
            ("group", Value::from(self.resource.group.clone())),
            ("resource", Value::from(self.resource.plural.clone())),
            ("version", Value::from(self.resource.version.clone())),
        ]);
        let mut request = Map::from_iter([
            (Str::new_static("dryRun"), Value::from(self.dry_run)),
            (Str::new_static("kind"), kind.clone()),
            (Str::new_static("object"), self.object.clone()),
            (Str::new_static("oldObject"), self.old_object.clone()),
            (Str::new_static("operation"), Value::from(self.operation.text())),
            (Str::new_static("options"), self.options.clone()),
            (Str::new_static("requestKind"), kind),
            (Str::new_static("requestResource"), resource.clone()),
            (Str::new_static("resource"), resource),
            (Str::new_static("uid"), Value::from(uid)),
            (Str::new_static("userInfo"), self.user.info()),
        ]);
        for (key, text) in [
            ("name", &self.name),
            ("namespace", &self.namespace),
            ("subResource", &self.subresource),
            ("requestSubResource", &self.subresource),
        ] {
            if !text.is_empty() {
                request.insert(key, text.clone());
            }
        }
        Value::object(request)
    }
}

/// The result of [`Admission::mutate`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mutated {
    /// The changed object, if it was changed.
    pub object: Option<Value>,
    /// For the client.
    pub warnings: Vec<String>,
}

/// Admission plugins: called before objects are written. No lock is held during the call, so they may use the cluster.
pub trait Admission: Send + Sync {
    /// May change the object, or refuse the write.
    fn mutate(&self, attributes: &Attributes) -> Result<Mutated, ClusterError>;

    /// May refuse the write; gives warnings for the client.
    fn validate(&self, attributes: &Attributes) -> Result<Vec<String>, ClusterError>;
}
