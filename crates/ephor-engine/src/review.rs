//! The input of one evaluation: an admission request, a scanned object, or a file on the command line.

use std::sync::Arc;

use ephor_expr::{Map, Str, Value};
use rustc_hash::FxHashMap;

use crate::matching::{Gvk, UserInfo};
use crate::policy::Operation;

/// Where the review comes from; it decides which rules take part and what they can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// A request to the API server.
    Admission,
    /// An existing object, checked in the background: no user, operation CREATE.
    Scan,
    /// Files on the command line.
    #[default]
    Offline,
}

/// Whether what a review leads to may change anything outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effects {
    /// It may.
    #[default]
    Real,
    /// It may ask services, and changes nothing in the cluster: what exists is scanned, again and again.
    Scan,
    /// It may not: the request is a dry run.
    DryRun,
}

/// One request to evaluate. Objects are shared values: making a review copies nothing.
#[derive(Debug, Clone)]
pub struct Review {
    /// Group, version and kind of the request's top-level resource (of `pods/exec`: Pod).
    pub gvk: Gvk,
    /// The subresource, for example `exec`; empty for none.
    pub subresource: Str,
    /// The object's name; may be empty on creation with `generateName`.
    pub name: Str,
    /// The object's namespace; empty for cluster-scoped kinds.
    pub namespace: Str,
    /// What is done.
    pub operation: Operation,
    /// The new object; null on DELETE.
    pub object: Value,
    /// The object before; null on CREATE.
    pub old_object: Value,
    /// Who does it, if known.
    pub user: Option<UserInfo>,
    /// Further members of `request` that expressions can read (uid, kind, resource, options and so on).
    pub attributes: Map,
    /// Labels of the object's namespace, if the host has them; otherwise they are fetched when needed.
    pub namespace_labels: Option<Value>,
    /// The time that `time_now()` and its kin give.
    pub now: jiff::Timestamp,
    /// Where `random()` starts: the same seed gives the same text.
    pub seed: u64,
    /// Where this comes from.
    pub mode: Mode,
    /// Whether it may change anything outside.
    pub effects: Effects,
    /// Values given by the user in place of what cannot be fetched.
    pub given: Option<Arc<Given>>,
}

/// Values that a user of the command line gives for a policy's variables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    /// Top-level variables, for rules without their own. Members of `request` are merged over the review's.
    pub values: Map,
    /// All variables of one rule, by the rule's declared name: these count instead of `values`.
    pub rules: FxHashMap<Str, Map>,
    /// Variables inside loops of one rule.
    pub foreach: FxHashMap<Str, Map>,
}

impl Review {
    /// A review of `object` as an offline CREATE: kind, name and namespace are read from it.
    pub fn of_object(object: Value, now: jiff::Timestamp) -> Self {
        let text = |keys: &[&str]| Str::new(object.str_at(keys).unwrap_or_default());
        Self {
            gvk: Gvk::of_object(&object),
            subresource: Str::default(),
            name: text(&["metadata", "name"]),
            namespace: text(&["metadata", "namespace"]),
            operation: Operation::Create,
            object,
            old_object: Value::Null,
            user: None,
            attributes: Map::new(),
            namespace_labels: None,
            now,
            seed: 0,
            mode: Mode::Offline,
            effects: Effects::Real,
            given: None,
        }
    }

    /// The object that the review is about: the old one on DELETE, else the new one.
    pub fn subject(&self) -> &Value {
        if self.operation == Operation::Delete { &self.old_object } else { &self.object }
    }

    /// The same about the object as it is stored, whatever is done to it in this review.
    #[must_use]
    pub fn stored(&self) -> Self {
        Self {
            operation: Operation::Create,
            object: self.subject().clone(),
            old_object: Value::Null,
            attributes: Map::new(),
            ..self.clone()
        }
    }

    /// The `request` variable.
    ///
    /// An admission request always has `object` and `oldObject`, null when absent; elsewhere an absent object is an
    /// absent member, as upstream has it.
    pub(crate) fn request_value(&self) -> Map {
        let mut request = self.attributes.clone();
        for (key, object) in [("object", &self.object), ("oldObject", &self.old_object)] {
            if !object.is_null() || self.mode == Mode::Admission {
                request.insert(key, object.clone());
            }
        }
        request.insert("operation", self.operation.as_str());
        if self.mode != Mode::Admission || !request.contains_key("namespace") {
            // The API server sends a Namespace's own name as its namespace. The review's namespace is empty then,
            // because policies of that namespace do not apply to it.
            let namespace = if self.gvk.is_namespace() { &self.name } else { &self.namespace };
            request.insert("namespace", namespace.clone());
        }
        if self.mode == Mode::Admission {
            request.insert("name", self.name.clone());
        }
        if let Some(user) = &self.user {
            request.insert("userInfo", user_value(user));
            for (key, roles) in [("roles", &user.roles), ("clusterRoles", &user.cluster_roles)] {
                if !roles.is_empty() {
                    request.insert(key, roles.clone());
                }
            }
        }
        request
    }
}

/// `request.userInfo`: what the API server sends, empty parts left out.
pub(crate) fn user_value(user: &UserInfo) -> Map {
    let mut map = Map::new();
    for (key, text) in [("username", &user.username), ("uid", &user.uid)] {
        if !text.is_empty() {
            map.insert(key, text.clone());
        }
    }
    if !user.groups.is_empty() {
        map.insert("groups", user.groups.clone());
    }
    if !user.extra.is_empty() {
        let extra: Map = user.extra.iter().map(|(k, v)| (k.clone(), Value::from(v.clone()))).collect();
        map.insert("extra", extra);
    }
    map
}
