//! Kubernetes' own admission policies, as an API server enforces them.
//!
//! In go requests, out come the changed object, warnings, or the refusal that the client gets, with Kubernetes' texts,
//! reasons and codes. The engine judges; these modules read the stored policies and bindings, and act on what the
//! engine decides. Policies are compiled again only after one of them or of their bindings has changed.

mod mutating;
mod validating;

use std::sync::Arc;

use ephor_cluster::admission::Attributes;
use ephor_cluster::{Cause, Cluster as _, ClusterError, ListQuery, MemoryCluster, object};
use ephor_engine::compile::{ADMISSION_GROUP, AdmissionBinding, Program, compile_admission_policy};
use ephor_engine::diagnostic::Diagnostic;
use ephor_engine::matching::Gvk;
use ephor_engine::review::Review;
use ephor_expr::{Str, Value};
use ephor_runtime::decision::AdmissionRequest;
use parking_lot::Mutex;

pub(super) use self::mutating::{BySchema, MutatingPolicies};
pub(super) use self::validating::ValidatingPolicies;

/// Resources that no such policy is about: who may change the policies must always be able to.
const EXEMPT: [(&str, &[&str]); 3] = [
    (
        ADMISSION_GROUP,
        &[
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ],
    ),
    ("authentication.k8s.io", &["tokenreviews", "selfsubjectreviews"]),
    (
        "authorization.k8s.io",
        &["localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
    ),
];

fn is_exempt(attributes: &Attributes) -> bool {
    let resource = &attributes.resource;
    EXEMPT.iter().any(|(group, plurals)| resource.group == *group && plurals.contains(&resource.plural.as_str()))
}

/// What is made of the stored policies of one kind. It is kept until a policy or a binding changes.
struct Stored<T> {
    cluster: MemoryCluster,
    api_version: String,
    kind: &'static str,
    made: Mutex<(Vec<Str>, Arc<T>)>,
}

impl<T: Default> Stored<T> {
    /// For the policies of a kind in one version, whose bindings are of the kind with `Binding` behind it.
    fn of(cluster: &MemoryCluster, version: &str, kind: &'static str) -> Self {
        let api_version = format!("{ADMISSION_GROUP}/{version}");
        Self { cluster: cluster.clone(), api_version, kind, made: Mutex::default() }
    }

    /// What `make` makes of the policies that some binding puts to work, in the order of their names.
    fn get(&self, make: impl FnOnce(Vec<(Value, Arc<Program>)>) -> T) -> Result<Arc<T>, ClusterError> {
        let (policies, bindings) = (self.list(self.kind)?, self.list(&format!("{}Binding", self.kind))?);
        let version = |document: &Value| {
            let uid = document.str_at(&["metadata", "uid"]).unwrap_or_default();
            Str::from(format!("{uid}/{}", document.str_at(&["metadata", "resourceVersion"]).unwrap_or_default()))
        };
        let versions: Vec<Str> = policies.iter().chain(&bindings).map(version).collect();
        let mut made = self.made.lock();
        if made.0 != versions {
            *made = (versions, Arc::new(make(self.compiled(policies, &bindings))));
        }
        Ok(Arc::clone(&made.1))
    }

    fn compiled(&self, policies: Vec<Value>, bindings: &[Value]) -> Vec<(Value, Arc<Program>)> {
        let bindings: Vec<AdmissionBinding> =
            bindings.iter().filter_map(|document| AdmissionBinding::of_document(document).0).collect();
        let is_bound = |document: &Value| bindings.iter().any(|binding| binding.policy == object::name(document));
        let compile = |document: Value| {
            let program = compile_admission_policy(&document, &bindings).program;
            if program.is_none() {
                tracing::warn!(kind = self.kind, policy = object::name(&document), "a stored policy does not compile");
            }
            program.map(|program| (document, Arc::new(program)))
        };
        policies.into_iter().filter(is_bound).filter_map(compile).collect()
    }

    fn list(&self, kind: &str) -> Result<Vec<Value>, ClusterError> {
        let resource = self.cluster.resolve(&self.api_version, kind)?;
        let mut documents = self.cluster.list(&resource, &ListQuery::all())?.items;
        documents.sort_by(|a, b| object::name(a).cmp(object::name(b)));
        Ok(documents)
    }
}

/// The review of a request that a policy judges.
fn review(attributes: &Attributes, request: &AdmissionRequest) -> Review {
    let resource = &attributes.resource;
    let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
    request.review(gvk, request.user.clone(), jiff::Timestamp::now(), attributes.serial)
}

/// Refuses a policy or binding that an API server would not store.
pub(super) fn check_policy(attributes: &Attributes) -> Result<(), ClusterError> {
    let resource = &attributes.resource;
    if resource.group != ADMISSION_GROUP || attributes.object.is_null() || !attributes.subresource.is_empty() {
        return Ok(());
    }
    let findings: Vec<Diagnostic> = match resource.kind.as_str() {
        validating::POLICY | mutating::POLICY => compile_admission_policy(&attributes.object, &[]).findings,
        validating::BINDING | mutating::BINDING => AdmissionBinding::of_document(&attributes.object).1,
        _ => return Ok(()),
    };
    if findings.is_empty() {
        return Ok(());
    }
    let cause = |finding: &Diagnostic| {
        let value = finding.path.lookup(&attributes.object).and_then(Value::as_str).unwrap_or_default();
        Cause::invalid(finding.path.to_string(), value, &finding.message)
    };
    let causes: Vec<Cause> = findings.iter().map(cause).collect();
    Err(ClusterError::invalid(resource, &attributes.name, &causes))
}
