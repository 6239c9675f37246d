//! Requests that no policy sees, and objects that only Ephor may change.

use ephor_engine::matching::{Gvk, UserInfo};
use ephor_engine::policy::Operation;
use ephor_expr::Value;
use ephor_runtime::config::Config;
use ephor_runtime::decision::request::AdmissionRequest;

/// Why `protectManagedResources` denies a request.
pub(super) const PROTECTED: &str = "A kyverno managed resource can only be modified by kyverno";

/// Whether the request touches an object that Ephor made, by somebody else than Ephor. The controller that empties
/// namespaces may delete.
pub(super) fn is_protected(request: &AdmissionRequest, namespace: &str) -> bool {
    let own = request.user.username.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    if own.is_some_and(|(account, _)| account == namespace) {
        return false;
    }
    let emptying = request.operation == Operation::Delete
        && request.user.username == "system:serviceaccount:kube-system:namespace-controller";
    let managed =
        |object: &Value| object.str_at(&["metadata", "labels", "app.kubernetes.io/managed-by"]) == Some("kyverno");
    !emptying && (managed(&request.object) || managed(&request.old_object))
}

/// Kinds of the engine's own making that no policy ever sees.
const OWN_KINDS: [&str; 7] = [
    "AdmissionReport",
    "BackgroundScanReport",
    "ClusterAdmissionReport",
    "ClusterBackgroundScanReport",
    "ClusterEphemeralReport",
    "EphemeralReport",
    "UpdateRequest",
];

/// Whether no policy sees the request.
pub(super) fn is_hidden(request: &AdmissionRequest, gvk: &Gvk, user: &UserInfo, config: &Config) -> bool {
    let own = matches!(gvk.group.as_str(), "kyverno.io" | "reports.kyverno.io") && OWN_KINDS.contains(&&*gvk.kind);
    let namespace = request.object_namespace();
    own || config.excluded_users.excludes(user)
        || config.resource_filters.drops(gvk, &request.sub_resource, namespace, request.object_name())
}
