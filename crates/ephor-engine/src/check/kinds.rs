//! What is known of Kubernetes' own kinds without a cluster.

use ephor_expr::Str;
use ephor_expr::scalar::wildcard::has_wildcard;
use ephor_expr::value::Path;

use crate::diagnostic::Diagnostic;

/// Kinds without a namespace.
const CLUSTER: [&str; 21] = [
    "APIService",
    "CSIDriver",
    "CSINode",
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "FlowSchema",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "PriorityLevelConfiguration",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "VolumeAttachment",
];

/// Kinds with one.
const NAMESPACED: [&str; 26] = [
    "ConfigMap",
    "ControllerRevision",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "EndpointSlice",
    "Endpoints",
    "HorizontalPodAutoscaler",
    "Ingress",
    "Job",
    "Lease",
    "LimitRange",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PodTemplate",
    "ReplicaSet",
    "ReplicationController",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
];

/// Kinds that only subresources have: `deployments/scale` has a body of kind Scale, and no object is one.
const OF_SUBRESOURCES: [&str; 8] = [
    "Eviction",
    "NodeProxyOptions",
    "PodAttachOptions",
    "PodExecOptions",
    "PodPortForwardOptions",
    "PodProxyOptions",
    "Scale",
    "ServiceProxyOptions",
];

/// Whether objects of a kind have a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// They have none.
    Cluster,
    /// They have one.
    Namespace,
}

/// Whether a group may be one of Kubernetes' own: `""`, `apps`, `networking.k8s.io`, a pattern. Others are custom.
pub(super) fn is_native_group(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// The group in an `apiVersion`; empty for the core group.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// Where objects of a kind live, if it is one of Kubernetes' own; for `apiVersion` see [`is_native_group`].
pub(super) fn place(api_version: &str, kind: &str) -> Option<Place> {
    let group = group_of(api_version);
    if !is_native_group(group) {
        None
    } else if CLUSTER.contains(&kind) {
        Some(Place::Cluster)
    } else {
        NAMESPACED.contains(&kind).then_some(Place::Namespace)
    }
}

/// The kind of Kubernetes that `kind` differs from in case alone, such as `Deployment` for `deployment`.
fn in_other_case(group: &str, kind: &str) -> Option<&'static str> {
    let same = |known: &&'static str| known.eq_ignore_ascii_case(kind) && *known != kind;
    CLUSTER.iter().chain(&NAMESPACED).copied().find(|known| is_native_group(group) && same(known))
}

/// Reports a kind in the wrong case, which no object has.
pub(super) fn check_case(group: &str, kind: &str, path: &Path, found: &mut Vec<Diagnostic>) {
    if let Some(known) = in_other_case(group, kind) {
        let finding = Diagnostic::error("kind-case", path.clone(), format!("no kind is called `{kind}`"));
        found.push(finding.with_help(format!("did you mean `{known}`?")));
    }
}

/// Whether only subresources have this kind.
pub(super) fn is_of_subresource(kind: &str) -> bool {
    OF_SUBRESOURCES.contains(&kind)
}

/// Reports a kind or `apiVersion` of a target that a namespaced policy does not write out. Whether objects of a kind
/// lie in a namespace decides whether the policy may touch them, so the kind must be known before a request renders it.
pub(super) fn check_written_out(text: Option<&Str>, path: &Path, found: &mut Vec<Diagnostic>) {
    let Some(text) = text else { return };
    let what = if text.contains("{{") {
        "variables"
    } else if has_wildcard(text) {
        "wildcards"
    } else {
        return;
    };
    let message = format!("the targets of a Policy name their kind without {what}: `{text}`");
    let finding = Diagnostic::error("open-target-kind", path.clone(), message);
    found.push(finding.with_help("write out apiVersion and kind, or make this a ClusterPolicy"));
}
