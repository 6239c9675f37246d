//! Versions of kinds: whether they are served, and which are deprecated.

use ephor_cluster::resource::{Origin, Resource};
use ephor_cluster::{Cluster as _, MemoryCluster};
use ephor_expr::Value;

/// Versions of built-in kinds that an API server warns of.
const DEPRECATED: [(&str, &str); 2] = [
    ("ComponentStatus", "v1 ComponentStatus is deprecated in v1.19+"),
    ("Endpoints", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
];

/// The definition of a custom kind.
fn definition(cluster: &MemoryCluster, resource: &Resource) -> Option<Value> {
    let kind = cluster.resolve("apiextensions.k8s.io/v1", "CustomResourceDefinition").ok()?;
    cluster.get(&kind, None, &format!("{}.{}", resource.plural, resource.group)).ok()
}

fn of(definition: &Value) -> &[Value] {
    definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default()
}

/// What the definition of a custom kind says of the version that is meant.
pub(super) fn own(cluster: &MemoryCluster, resource: &Resource) -> Option<Value> {
    let definition = definition(cluster, resource)?;
    of(&definition).iter().find(|version| version.str_at(&["name"]) == Some(&resource.version)).cloned()
}

/// What to warn those of who use the kind in this version.
pub(super) fn deprecation(cluster: &MemoryCluster, resource: &Resource) -> Option<String> {
    if resource.origin == Origin::BuiltIn {
        let warned = DEPRECATED.iter().find(|(kind, _)| resource.group.is_empty() && resource.kind == *kind)?;
        return Some(warned.1.to_owned());
    }
    let is_deprecated = |version: &Value| version.get("deprecated").and_then(Value::as_bool) == Some(true);
    let own = own(cluster, resource).filter(is_deprecated)?;
    if let Some(said) = own.str_at(&["deprecationWarning"]) {
        return Some(said.to_owned());
    }
    let discovery = cluster.discovery().ok()?;
    let definition = definition(cluster, resource)?;
    let good =
        |version: &str| of(&definition).iter().any(|v| v.str_at(&["name"]) == Some(version) && !is_deprecated(v));
    // They are in order, the preferred one first.
    let same = |other: &&Resource| other.group == resource.group && other.kind == resource.kind;
    let newer = discovery.iter().filter(same).take_while(|other| other.version != resource.version);
    let better = newer.into_iter().find(|other| good(&other.version));
    let use_that = better.map(|other| format!("; use {} {}", other.api_version(), other.kind)).unwrap_or_default();
    Some(format!("{} {} is deprecated{use_that}", resource.api_version(), resource.kind))
}
