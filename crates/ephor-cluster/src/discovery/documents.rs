//! What an API server answers when a client asks what there is: `/api`, `/apis` and below.

use ephor_expr::{Map, Value};

use super::Discovery;
use crate::resource::{Resource, Subresource, join_api_version, split_api_version};

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

fn describe(resource: &Resource) -> Value {
    let verbs: &[&str] =
        if resource.stored { &["create", "delete", "get", "list", "patch", "update", "watch"] } else { &["create"] };
    let mut members = Map::from_iter([
        ("kind".into(), Value::from(resource.kind.clone())),
        ("name".into(), Value::from(resource.plural.clone())),
        ("namespaced".into(), Value::from(resource.namespaced)),
        ("singularName".into(), Value::from(resource.singular.clone())),
        ("verbs".into(), Value::from(verbs.to_vec())),
    ]);
    if !resource.short_names.is_empty() {
        members.insert("shortNames", resource.short_names.to_vec());
    }
    Value::object(members)
}

fn describe_subresource(resource: &Resource, subresource: &Subresource) -> Value {
    let verbs: &[&str] = match subresource.name.as_str() {
        "status" | "scale" | "ephemeralcontainers" | "resize" | "approval" => &["get", "patch", "update"],
        "log" => &["get"],
        "finalize" => &["update"],
        "binding" | "eviction" | "token" => &["create"],
        _ => &["create", "get"],
    };
    let mut members = Map::from_iter([
        ("kind".into(), Value::from(subresource.kind.clone())),
        ("name".into(), Value::from(format!("{}/{}", resource.plural, subresource.name))),
        ("namespaced".into(), Value::from(resource.namespaced)),
        ("singularName".into(), Value::from("")),
        ("verbs".into(), Value::from(verbs.to_vec())),
    ]);
    if subresource.api_version != resource.api_version() {
        let (group, version) = split_api_version(&subresource.api_version);
        members.insert("group", group);
        members.insert("version", version);
    }
    Value::object(members)
}
