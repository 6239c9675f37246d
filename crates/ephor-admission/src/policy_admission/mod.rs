//! Admission of Ephor's own kinds: policies, exceptions, global context entries, cleanup policies, TTL labels
//!.
//!
//! The engine's checks tell what is wrong with a document on its own ([`ephor_engine::check`]). Here comes what takes a
//! cluster: kinds that exist and where their objects live, and whether the accounts of Ephor's roles may do what a
//! policy asks of them. What is refused is refused with its place in the document; a request about a subresource, and a
//! change that leaves the rules as they are, goes through unseen.

mod accounts;
mod cleanup;
mod definitions;
mod exceptions;
mod global_context;
mod kinds;
mod match_conditions;
mod needs;
mod policies;
mod text;
mod ttl;

use std::sync::Arc;

use ephor_cluster::Cluster;
use ephor_engine::compile::POLICIES_GROUP;
use ephor_engine::policy::Operation;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::decision::{AdmissionRequest, Answer};
use ephor_runtime::policies::ExceptionScope;

/// The service accounts of Ephor's roles, as the API server calls them (`system:serviceaccount:<ns>:<name>`). What an
/// account that is not known may do is not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Of the admission role.
    pub admission: Option<Str>,
    /// Of the background role.
    pub background: Option<Str>,
    /// Of the reports role.
    pub reports: Option<Str>,
    /// Of the cleanup role.
    pub cleanup: Option<Str>,
}

/// The handlers. They know nothing of HTTP.
#[derive(Clone)]
pub struct PolicyAdmission {
    cluster: Arc<dyn Cluster>,
    accounts: Accounts,
    exceptions: ExceptionScope,
    waiting: definitions::Waiting,
}

impl std::fmt::Debug for PolicyAdmission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolicyAdmission").field("accounts", &self.accounts).finish_non_exhaustive()
    }
}

impl PolicyAdmission {
    /// Handlers that look into `cluster`. `exceptions` says which exceptions count, for the warnings about others.
    pub fn new(cluster: Arc<dyn Cluster>, accounts: Accounts, exceptions: ExceptionScope) -> Self {
        Self { cluster, accounts, exceptions, waiting: definitions::Waiting::default() }
    }

    /// `/policyvalidate`: `ClusterPolicy`, `Policy` and the policies of `policies.kyverno.io`.
    pub fn policy(&self, request: &AdmissionRequest) -> Answer {
        match looked_at(request) {
            Some(document) => policies::check(self, request, &document),
            None => Answer::allow(),
        }
    }

    /// `/policymutate`: policies are stored as they were written.
    pub fn policy_mutation(&self, _: &AdmissionRequest) -> Answer {
        Answer::allow()
    }

    /// `/exceptionvalidate`: `PolicyException` of both groups.
    pub fn exception(&self, request: &AdmissionRequest) -> Answer {
        match looked_at(request) {
            Some(document) => exceptions::check(&*self.cluster, &document, &request.namespace, &self.exceptions),
            None => Answer::allow(),
        }
    }

    /// `/globalcontextvalidate`: `GlobalContextEntry`.
    pub fn global_context(&self, request: &AdmissionRequest) -> Answer {
        match looked_at(request) {
            Some(document) => global_context::check(&*self.cluster, &document),
            None => Answer::allow(),
        }
    }

    /// `/validate` of the cleanup role: `CleanupPolicy` and `ClusterCleanupPolicy`.
    pub fn cleanup_policy(&self, request: &AdmissionRequest) -> Answer {
        match looked_at(request) {
            Some(document) => cleanup::check(self, &document),
            None => Answer::allow(),
        }
    }

    /// `/verifyttl`: objects with the label `cleanup.kyverno.io/ttl`. Only warns.
    pub fn ttl(&self, request: &AdmissionRequest) -> Answer {
        if request.sub_resource.is_empty() { ttl::check(&request.object) } else { Answer::allow() }
    }

    /// `/verifymutate`: the heartbeat. That it arrives is all.
    pub fn heartbeat(&self, _: &AdmissionRequest) -> Answer {
        Answer::allow()
    }
}

/// The document to check, if the request can make anything worse: not when something is deleted or about to be, nor
/// when neither spec nor annotations change. A document that will be named by the API server gets a name meanwhile.
fn looked_at(request: &AdmissionRequest) -> Option<Value> {
    let same = |keys: &[&str]| request.object.at(keys) == request.old_object.at(keys);
    let written = matches!(request.operation, Operation::Create | Operation::Update);
    let going = request.object.at(&["metadata", "deletionTimestamp"]).is_some();
    let unchanged = request.operation == Operation::Update && same(&["spec"]) && same(&["metadata", "annotations"]);
    if !request.sub_resource.is_empty() || !written || going || unchanged || request.object.is_null() {
        return None;
    }
    let mut document = request.object.clone();
    let prefix = document.str_at(&["metadata", "generateName"]).map(str::to_owned);
    if let (Some(prefix), None) = (prefix, document.str_at(&["metadata", "name"]))
        && let Some(metadata) = document.as_object_mut().map(|members| members.entry("metadata"))
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.insert("name", format!("{prefix}00000"));
    }
    Some(with_place(document, request))
}

/// Whether a document is of `policies.kyverno.io`.
fn is_of_cel(document: &Value) -> bool {
    let group = document.str_at(&["apiVersion"]).and_then(|version| version.split_once('/'));
    group.is_some_and(|(group, _)| group == POLICIES_GROUP)
}

/// The API server leaves the namespace of an object that is created out of the document in some cases.
fn with_place(mut document: Value, request: &AdmissionRequest) -> Value {
    if !request.namespace.is_empty()
        && document.str_at(&["metadata", "namespace"]).is_none()
        && let Some(members) = document.as_object_mut()
    {
        let metadata = members.entry("metadata");
        if metadata.as_object().is_none() {
            *metadata = Value::object(Map::new());
        }
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("namespace", request.namespace.clone());
        }
    }
    document
}

#[cfg(test)]
mod tests;
