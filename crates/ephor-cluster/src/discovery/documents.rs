//! What an API server answers when a client asks what there is: `/api`, `/apis` and below.

use ephor_expr::{Map, Value};

use super::Discovery;
use super::version::priority;
use crate::resource::{Origin, Resource, Subresource, join_api_version, split_api_version};

/// `/api`: the versions of the core group.
pub fn versions() -> Value {
    Value::from([("kind", Value::from("APIVersions")), ("versions", Value::from(vec!["v1"]))])
}

/// `/apis`: the groups with their versions.
pub fn groups(discovery: &Discovery) -> Value {
    let mut names: Vec<&str> = Vec::new();
    for resource in discovery.iter() {
        if !resource.group.is_empty() && !names.contains(&resource.group.as_str()) {
            names.push(&resource.group);
        }
    }
    let groups: Vec<Value> =
        names.into_iter().filter_map(|name| group_members(discovery, name)).map(Value::object).collect();
    Value::from([
        ("apiVersion", Value::from("v1")),
        ("groups", Value::array(groups)),
        ("kind", Value::from("APIGroupList")),
    ])
}

/// `/apis/GROUP`: one group with its versions. `None` if there is no such group.
pub fn group(discovery: &Discovery, name: &str) -> Option<Value> {
    let mut members = group_members(discovery, name)?;
    members.insert("apiVersion", "v1");
    members.insert("kind", "APIGroup");
    Some(Value::object(members))
}

fn group_members(discovery: &Discovery, name: &str) -> Option<Map> {
    let mut versions: Vec<&str> = Vec::new();
    for resource in discovery.iter().filter(|r| r.group == name) {
        if !versions.contains(&resource.version.as_str()) {
            versions.push(&resource.version);
        }
    }
    // Also where no kind has all of them.
    versions.sort_by(|a, b| priority(b).cmp(&priority(a)));
    let describe = |version: &str| {
        Value::from([("groupVersion", Value::from(join_api_version(name, version))), ("version", Value::from(version))])
    };
    let preferred = describe(versions.first()?);
    Some(Map::from_iter([
        ("name".into(), Value::from(name)),
        ("preferredVersion".into(), preferred),
        ("versions".into(), Value::array(versions.into_iter().map(describe).collect())),
    ]))
}

/// `/api/VERSION` and `/apis/GROUP/VERSION`: the resources of one group in one version. `None` if there are none.
pub fn resources(discovery: &Discovery, group: &str, version: &str) -> Option<Value> {
    let mut listed: Vec<Value> = Vec::new();
    for resource in discovery.iter().filter(|r| r.group == group && r.version == version) {
        listed.push(describe(resource));
        listed.extend(resource.subresources.iter().map(|s| describe_subresource(resource, s)));
    }
    if listed.is_empty() {
        return None;
    }
    Some(Value::from([
        ("apiVersion", Value::from("v1")),
        ("groupVersion", Value::from(join_api_version(group, version))),
        ("kind", Value::from("APIResourceList")),
        ("resources", Value::array(listed)),
    ]))
}

/// What can be done with kinds that are kept.
const STORED_VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn verbs(resource: &Resource) -> &'static [&'static str] {
    match (resource.origin, resource.stored) {
        (Origin::Aggregated, _) => &["get", "list", "watch"],
        (_, true) => &STORED_VERBS,
        (_, false) => &["create"],
    }
}

fn subresource_verbs(subresource: &Subresource) -> &'static [&'static str] {
    match subresource.name.as_str() {
        "status" | "scale" | "ephemeralcontainers" | "resize" | "approval" => &["get", "patch", "update"],
        "log" => &["get"],
        "finalize" => &["update"],
        "binding" | "eviction" | "token" => &["create"],
        _ => &["create", "get"],
    }
}

/// The versions of a group, each with its resources.
type Versions<'d> = Vec<(&'d str, Vec<Value>)>;

/// All groups with all that is in them, in one document (`apidiscovery.k8s.io/v2`): the core group alone, or all
/// others.
pub fn aggregated(discovery: &Discovery, core: bool) -> Value {
    let mut groups: Vec<(&str, Versions<'_>)> = Vec::new();
    for resource in discovery.iter().filter(|r| r.group.is_empty() == core) {
        let place = groups.iter().position(|(group, _)| *group == resource.group).unwrap_or_else(|| {
            groups.push((&resource.group, Vec::new()));
            groups.len() - 1
        });
        let Some((_, versions)) = groups.get_mut(place) else { continue };
        let place = versions.iter().position(|(version, _)| *version == resource.version).unwrap_or_else(|| {
            versions.push((&resource.version, Vec::new()));
            versions.len() - 1
        });
        if let Some((_, resources)) = versions.get_mut(place) {
            resources.push(aggregated_resource(resource));
        }
    }
    let groups = groups.into_iter().map(|(group, mut versions)| {
        versions.sort_by(|(a, _), (b, _)| priority(b).cmp(&priority(a)));
        let versions = versions.into_iter().map(|(version, resources)| {
            Value::from([
                ("freshness", Value::from("Current")),
                ("resources", Value::array(resources)),
                ("version", Value::from(version)),
            ])
        });
        Value::from([
            ("metadata", Value::from([("name", Value::from(group))])),
            ("versions", Value::array(versions.collect())),
        ])
    });
    Value::from([
        ("apiVersion", Value::from("apidiscovery.k8s.io/v2")),
        ("items", Value::array(groups.collect())),
        ("kind", Value::from("APIGroupDiscoveryList")),
        ("metadata", Value::object(Map::new())),
    ])
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = |api_version: &str, kind: &str| {
        let (group, version) = split_api_version(api_version);
        Value::from([("group", Value::from(group)), ("kind", Value::from(kind)), ("version", Value::from(version))])
    };
    let below = resource.subresources.iter().map(|s| {
        Value::from([
            ("responseKind", kind(&s.api_version, &s.kind)),
            ("subresource", Value::from(s.name.clone())),
            ("verbs", Value::from(subresource_verbs(s).to_vec())),
        ])
    });
    let mut members = Map::from_iter([
        ("resource".into(), Value::from(resource.plural.clone())),
        ("responseKind".into(), kind(&resource.api_version(), &resource.kind)),
        ("scope".into(), Value::from(if resource.namespaced { "Namespaced" } else { "Cluster" })),
        ("singularResource".into(), Value::from(resource.singular.clone())),
        ("verbs".into(), Value::from(verbs(resource).to_vec())),
    ]);
    if !resource.short_names.is_empty() {
        members.insert("shortNames", resource.short_names.to_vec());
    }
    if !resource.categories.is_empty() {
        members.insert("categories", resource.categories.to_vec());
    }
    if !resource.subresources.is_empty() {
        members.insert("subresources", Value::array(below.collect()));
    }
    Value::object(members)
}

fn describe(resource: &Resource) -> Value {
    let mut members = Map::from_iter([
        ("kind".into(), Value::from(resource.kind.clone())),
        ("name".into(), Value::from(resource.plural.clone())),
        ("namespaced".into(), Value::from(resource.namespaced)),
        ("singularName".into(), Value::from(resource.singular.clone())),
        ("verbs".into(), Value::from(verbs(resource).to_vec())),
    ]);
    if !resource.categories.is_empty() {
        members.insert("categories", resource.categories.to_vec());
    }
    if !resource.short_names.is_empty() {
        members.insert("shortNames", resource.short_names.to_vec());
    }
    Value::object(members)
}

fn describe_subresource(resource: &Resource, subresource: &Subresource) -> Value {
    let mut members = Map::from_iter([
        ("kind".into(), Value::from(subresource.kind.clone())),
        ("name".into(), Value::from(format!("{}/{}", resource.plural, subresource.name))),
        ("namespaced".into(), Value::from(resource.namespaced)),
        ("singularName".into(), Value::from("")),
        ("verbs".into(), Value::from(subresource_verbs(subresource).to_vec())),
    ]);
    if subresource.api_version != resource.api_version() {
        let (group, version) = split_api_version(&subresource.api_version);
        members.insert("group", group);
        members.insert("version", version);
    }
    Value::object(members)
}
