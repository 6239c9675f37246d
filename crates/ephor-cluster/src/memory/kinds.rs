//! What an API server does differently from kind to kind.

use std::sync::LazyLock;

use ephor_expr::{Map, Value};

use crate::discovery::{Discovery, resources_of};
use crate::error::{Cause, ClusterError};
use crate::object;
use crate::resource::{Origin, Resource};

/// The namespaces of a new cluster.
pub(super) const FIRST_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The namespaces that cannot be deleted.
pub(super) const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The kind `Namespace`.
pub(super) static NAMESPACE: LazyLock<Resource> = LazyLock::new(|| built_in("v1", "Namespace"));

/// The kind `CustomResourceDefinition`.
pub(super) static DEFINITION: LazyLock<Resource> =
    LazyLock::new(|| built_in("apiextensions.k8s.io/v1", "CustomResourceDefinition"));

fn built_in(api_version: &str, kind: &str) -> Resource {
    let discovery = Discovery::kubernetes();
    let found = discovery.find(api_version, kind).cloned();
    found.unwrap_or_else(|| Resource { namespaced: false, ..Resource::guess(api_version, kind) })
}

pub(super) fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "namespaces"
}

pub(super) fn is_definition(resource: &Resource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.plural == "customresourcedefinitions"
}

/// Whether `metadata.generation` counts the changes of the specification. All custom resources have it; of the
/// built-in kinds those that some controller acts upon.
pub(super) fn has_generation(resource: &Resource) -> bool {
    resource.origin != Origin::BuiltIn
        || matches!(
            (resource.group.as_str(), resource.plural.as_str()),
            ("", "pods" | "replicationcontrollers")
                | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
                | (
                    "batch" | "admissionregistration.k8s.io" | "apiextensions.k8s.io" | "flowcontrol.apiserver.k8s.io",
                    _
                )
                | ("networking.k8s.io", "ingresses" | "ingressclasses" | "networkpolicies")
                | ("policy", "poddisruptionbudgets")
                | ("discovery.k8s.io", "endpointslices")
                | ("scheduling.k8s.io", "priorityclasses")
        )
}

/// Whether an update may leave `metadata.resourceVersion` out.
pub(super) fn allows_unconditional_update(resource: &Resource) -> bool {
    match resource.origin {
        Origin::Custom | Origin::Aggregated => false,
        Origin::Guessed => true,
        Origin::BuiltIn => !matches!(
            resource.group.as_str(),
            "admissionregistration.k8s.io" | "apiextensions.k8s.io" | "apiregistration.k8s.io" | "coordination.k8s.io"
        ),
    }
}

/// Sets what the server sets on new objects beyond their metadata; what the client says about status is dropped.
pub(super) fn prepare(resource: &Resource, object: &mut Value, now: &str) {
    let Some(members) = object.as_object_mut() else { return };
    if resource.has_status() {
        members.remove("status");
    }
    let phase = match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => Some("Active"),
        ("", "Pod" | "PersistentVolume" | "PersistentVolumeClaim") => Some("Pending"),
        _ => None,
    };
    if let Some(phase) = phase {
        members.insert("status", Value::from([("phase", Value::from(phase))]));
    }
    if is_namespace(resource) {
        members.insert("spec", Value::from([("finalizers", Value::from(vec!["kubernetes"]))]));
        label_namespace(object);
    }
    if is_definition(resource) {
        establish(object, now);
    }
}

/// Namespaces have their name as a label that cannot be removed.
pub(super) fn label_namespace(namespace: &mut Value) {
    let name = Value::from(object::name(namespace));
    if let Some(metadata) = object::metadata_mut(namespace) {
        let labels = metadata.entry("labels");
        if labels.as_object().is_none() {
            *labels = Value::object(Map::new());
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name", name);
        }
    }
}

/// Gives a definition the status that makes its kind served; here that takes no time.
fn establish(definition: &mut Value, now: &str) {
    let condition = |kind: &str, reason: &str, message: &str| {
        Value::from([
            ("lastTransitionTime", Value::from(now)),
            ("message", Value::from(message)),
            ("reason", Value::from(reason)),
            ("status", Value::from("True")),
            ("type", Value::from(kind)),
        ])
    };
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let stored: Vec<Value> = versions
        .iter()
        .filter(|v| v.get("storage").and_then(Value::as_bool) == Some(true))
        .filter_map(|v| v.get("name").cloned())
        .collect();
    let status = Value::from([
        ("acceptedNames", definition.at(&["spec", "names"]).cloned().unwrap_or_default()),
        (
            "conditions",
            Value::array(vec![
                condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ]),
        ),
        ("storedVersions", Value::array(stored)),
    ]);
    if let Some(members) = definition.as_object_mut() {
        members.insert("status", status);
    }
}

/// Checks that a definition defines something, and under the right name.
pub(super) fn validate_definition(definition: &Value) -> Result<(), ClusterError> {
    let resource = &*DEFINITION;
    let name = object::name(definition);
    let mut causes = Vec::new();
    for (field, keys) in [
        ("spec.group", ["spec", "group"].as_slice()),
        ("spec.names.kind", &["spec", "names", "kind"]),
        ("spec.names.plural", &["spec", "names", "plural"]),
        ("spec.scope", &["spec", "scope"]),
    ] {
        if definition.str_at(keys).is_none_or(str::is_empty) {
            causes.push(Cause::required(field, ""));
        }
    }
    if causes.is_empty() {
        let part = |keys| definition.str_at(keys).unwrap_or_default();
        let (group, plural) = (part(&["spec", "group"]), part(&["spec", "names", "plural"]));
        if !matches!(part(&["spec", "scope"]), "Cluster" | "Namespaced") {
            let why = "supported values: \"Cluster\", \"Namespaced\"";
            causes.push(Cause::invalid("spec.scope", part(&["spec", "scope"]), why));
        }
        if name != format!("{plural}.{group}") {
            causes.push(Cause::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
        }
        let built_in = |r: &Resource| r.origin == Origin::BuiltIn && r.group == group && r.plural == plural;
        if Discovery::kubernetes().iter().any(built_in) {
            causes.push(Cause::invalid("spec.names.plural", plural, "is a kind of Kubernetes itself"));
        }
        if resources_of(definition).is_empty() {
            causes.push(Cause::required("spec.versions", "at least one version must be served"));
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(ClusterError::invalid(resource, name, &causes)) }
}
