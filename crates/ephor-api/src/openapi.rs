//! The `OpenAPI` documents of the reports API: which paths and types there are, without descriptions of the fields.
//!
//! The API server merges them into its own. Without them it logs an error for each refresh.

use ephor_cluster::{Discovery, Resource};
use ephor_expr::{Map, Value};

/// The document at `/openapi/PATH`; `None` if there is none.
pub fn document(discovery: &Discovery, path: &str) -> Option<Value> {
    match path.split_once('/').unwrap_or((path, "")) {
        ("v2", "") => Some(second(discovery)),
        ("v3", "") => Some(index(discovery)),
        ("v3", place) => third(discovery, place),
        _ => None,
    }
}

/// `/openapi/v3`: where the document of each group and version is.
fn index(discovery: &Discovery) -> Value {
    let place = |resource: &Resource| {
        let url = format!("/openapi/v3/apis/{}", resource.api_version());
        (format!("apis/{}", resource.api_version()).into(), Value::from([("serverRelativeURL", Value::from(url))]))
    };
    Value::from([("paths", Value::object(discovery.iter().map(place).collect()))])
}

fn third(discovery: &Discovery, place: &str) -> Option<Value> {
    let version = place.strip_prefix("apis/")?;
    let resources: Vec<&Resource> = discovery.iter().filter(|r| r.api_version() == version).collect();
    let schemas: Map = resources.iter().map(|r| (name(r).into(), schema(r))).collect();
    (!resources.is_empty()).then(|| {
        Value::from([
            ("components", Value::from([("schemas", Value::object(schemas))])),
            ("info", info()),
            ("openapi", Value::from("3.0.0")),
            ("paths", paths(&resources)),
        ])
    })
}

fn second(discovery: &Discovery) -> Value {
    let resources: Vec<&Resource> = discovery.iter().collect();
    let definitions: Map = resources.iter().map(|r| (name(r).into(), schema(r))).collect();
    Value::from([
        ("definitions", Value::object(definitions)),
        ("info", info()),
        ("paths", paths(&resources)),
        ("swagger", Value::from("2.0")),
    ])
}

fn info() -> Value {
    Value::from([("title", Value::from("Policy reports")), ("version", Value::from("v1"))])
}

/// The group backwards, as in `io.k8s.wgpolicyk8s`.
fn name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

fn group_version_kind(resource: &Resource) -> Value {
    Value::from([
        ("group", Value::from(resource.group.clone())),
        ("kind", Value::from(resource.kind.clone())),
        ("version", Value::from(resource.version.clone())),
    ])
}

fn schema(resource: &Resource) -> Value {
    Value::from([
        ("description", Value::from("What policies say about an object.")),
        ("type", Value::from("object")),
        ("x-kubernetes-group-version-kind", Value::array(vec![group_version_kind(resource)])),
        ("x-kubernetes-preserve-unknown-fields", Value::from(true)),
    ])
}

fn paths(resources: &[&Resource]) -> Value {
    let mut paths = Map::new();
    for resource in resources {
        let mut add = |action: &str, namespace: Option<&str>, object: Option<&str>| {
            let parameter = |name: &str| {
                let required = ("required", Value::from(true));
                // Version 2 reads `type`, version 3 reads `schema`; each ignores the other.
                Value::from([
                    ("in", Value::from("path")),
                    ("name", Value::from(name)),
                    required,
                    ("schema", Value::from([("type", Value::from("string"))])),
                    ("type", Value::from("string")),
                ])
            };
            let given = [namespace.map(|_| "namespace"), object.map(|_| "name")];
            let parameters = given.into_iter().flatten().map(parameter).collect();
            let scope = if namespace.is_none() && resource.namespaced { "ForAllNamespaces" } else { "" };
            let ok = Value::from([("description", Value::from("OK"))]);
            let operation = Value::from([
                ("operationId", Value::from(format!("{action}{}{}{scope}", resource.version, resource.kind))),
                ("parameters", Value::array(parameters)),
                ("responses", Value::from([("200", ok)])),
                ("x-kubernetes-action", Value::from(action)),
                ("x-kubernetes-group-version-kind", group_version_kind(resource)),
            ]);
            paths.insert(resource.path(namespace, object), Value::from([("get", operation)]));
        };
        let namespace = resource.namespaced.then_some("{namespace}");
        add("list", namespace, None);
        if namespace.is_some() {
            add("list", None, None);
        }
        add("get", namespace, Some("{name}"));
    }
    Value::object(paths)
}
