//! `OpenAPI` documents, as far as kubectl reads them: the types for `explain`, and which requests take which
//! parameters.

use std::collections::BTreeSet;
use std::sync::Arc;

use ephor_cluster::resource::{Origin, Resource};
use ephor_cluster::schema::kubernetes;
use ephor_cluster::{Cluster as _, Discovery, MemoryCluster};
use ephor_expr::{Map, Str, Value};
use parking_lot::Mutex;

/// The types of Kubernetes with descriptions, cached while they are requested.
static DOCUMENTED: Mutex<Option<Arc<Value>>> = Mutex::new(None);

fn documented() -> Arc<Value> {
    let mut kept = DOCUMENTED.lock();
    kept.get_or_insert_with(|| Arc::new(kubernetes::documented_definitions())).clone()
}

/// The document at `/openapi/PATH`; `None` if there is none.
pub(super) fn document(cluster: &MemoryCluster, path: &str) -> Option<Value> {
    let discovery = cluster.discovery().ok()?;
    match path.split_once('/').unwrap_or((path, "")) {
        ("v2", "") => Some(second(cluster, &discovery)),
        ("v3", "") => Some(index(&discovery)),
        ("v3", place) => third(cluster, &discovery, place),
        _ => None,
    }
}

fn index(discovery: &Discovery) -> Value {
    let mut paths = Map::new();
    for resource in discovery.iter() {
        let place = place_of(resource);
        let url = format!("/openapi/v3/{place}");
        paths.insert(place, Value::from([("serverRelativeURL", Value::from(url))]));
    }
    Value::from([("paths", Value::object(paths))])
}

fn place_of(resource: &Resource) -> String {
    let root = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{root}/{}", resource.api_version())
}

/// The document of one group and version.
fn third(cluster: &MemoryCluster, discovery: &Discovery, place: &str) -> Option<Value> {
    let resources: Vec<&Resource> = discovery.iter().filter(|r| place_of(r) == place).collect();
    if resources.is_empty() {
        return None;
    }
    let mut paths = Map::new();
    let mut schemas = Map::new();
    let known = documented();
    for resource in &resources {
        add_paths(resource, &mut paths);
        add_schema(cluster, resource, &known, &mut schemas);
    }
    Some(Value::from([
        ("components", Value::from([("schemas", Value::object(schemas))])),
        ("info", info()),
        ("openapi", Value::from("3.0.0")),
        ("paths", Value::object(paths)),
    ]))
}

fn info() -> Value {
    Value::from([("title", Value::from("Kubernetes")), ("version", Value::from("v1.34.0"))])
}

/// All types in one document. Custom kinds are in it without their paths.
fn second(cluster: &MemoryCluster, discovery: &Discovery) -> Value {
    let mut definitions = documented().as_object().cloned().unwrap_or_default();
    for resource in discovery.iter().filter(|r| r.origin != Origin::BuiltIn) {
        definitions.insert(custom_name(resource), custom_schema(cluster, resource));
    }
    Value::from([
        ("definitions", Value::object(definitions)),
        ("info", info()),
        ("paths", Value::object(Map::new())),
        ("swagger", Value::from("2.0")),
    ])
}

fn group_version_kind(resource: &Resource) -> Value {
    Value::from([
        ("group", Value::from(resource.group.clone())),
        ("kind", Value::from(resource.kind.clone())),
        ("version", Value::from(resource.version.clone())),
    ])
}

fn add_paths(resource: &Resource, paths: &mut Map) {
    let namespace = resource.namespaced.then_some("{namespace}");
    let operation = |action: &str| {
        let parameter = |name: &str| Value::from([("in", Value::from("query")), ("name", Value::from(name))]);
        let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"].into_iter().map(parameter).collect();
        Value::from([
            ("parameters", Value::array(parameters)),
            ("responses", Value::object(Map::new())),
            ("x-kubernetes-action", Value::from(action)),
            ("x-kubernetes-group-version-kind", group_version_kind(resource)),
        ])
    };
    let collection = Value::from([("get", operation("list")), ("post", operation("post"))]);
    paths.insert(resource.path(namespace, None), collection.clone());
    if resource.namespaced {
        paths.insert(resource.path(None, None), Value::from([("get", operation("list"))]));
    }
    if resource.stored {
        let object = ["get", "put", "patch", "delete"].map(|verb| (verb, operation(verb)));
        paths.insert(resource.path(namespace, Some("{name}")), Value::from(object));
    }
}

fn add_schema(cluster: &MemoryCluster, resource: &Resource, known: &Value, schemas: &mut Map) {
    match kubernetes::definition_name(&resource.api_version(), &resource.kind) {
        Some(name) if resource.origin == Origin::BuiltIn => add_definition(name, known, schemas),
        _ => {
            let schema = third_form(&custom_schema(cluster, resource));
            for reference in references(&schema) {
                add_definition(&reference, known, schemas);
            }
            schemas.insert(custom_name(resource), schema);
        }
    }
}

/// Adds a definition and all that it refers to.
fn add_definition(name: &str, known: &Value, schemas: &mut Map) {
    let mut wanted = vec![Str::new(name)];
    while let Some(name) = wanted.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(definition) = known.get(&name) else { continue };
        let definition = third_form(definition);
        wanted.extend(references(&definition));
        schemas.insert(name, definition);
    }
}

const SECOND: &str = "#/definitions/";
const THIRD: &str = "#/components/schemas/";

/// A schema with references as version 3 writes them. What stands beside a reference is lost there, so that the
/// reference goes into an `allOf`.
fn third_form(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => Value::array(items.iter().map(third_form).collect()),
        Value::Object(members) => {
            let mut new: Map =
                members.iter().filter(|(key, _)| *key != "$ref").map(|(k, v)| (k.clone(), third_form(v))).collect();
            if let Some(name) = members.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(SECOND)) {
                let reference = Value::from([("$ref", Value::from(format!("{THIRD}{name}")))]);
                if new.is_empty() {
                    return reference;
                }
                new.insert("allOf", Value::array(vec![reference]));
            }
            Value::object(new)
        }
        scalar => scalar.clone(),
    }
}

fn references(schema: &Value) -> BTreeSet<Str> {
    let mut found = BTreeSet::new();
    let mut rest = vec![schema];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items.iter()),
            Value::Object(members) => {
                if let Some(name) = members.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(THIRD)) {
                    found.insert(name.into());
                }
                rest.extend(members.values());
            }
            _ => {}
        }
    }
    found
}

/// `io.kyverno.v1.ClusterPolicy`: the group backwards.
fn custom_name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

fn custom_schema(cluster: &MemoryCluster, resource: &Resource) -> Value {
    let schema = cluster.schema_document(resource).unwrap_or_else(|| {
        Value::from([("type", Value::from("object")), ("x-kubernetes-preserve-unknown-fields", Value::from(true))])
    });
    let mut members = schema.as_object().cloned().unwrap_or_default();
    let mut properties = members.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let text =
        |description: &str| Value::from([("description", Value::from(description)), ("type", Value::from("string"))]);
    properties.insert("apiVersion", text("The version of the schema of this object."));
    properties.insert("kind", text("What kind of object this is."));
    let metadata = format!("{SECOND}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    properties.insert(
        "metadata",
        Value::from([("$ref", Value::from(metadata)), ("description", Value::from("Standard object metadata."))]),
    );
    members.insert("properties", properties);
    members.insert("x-kubernetes-group-version-kind", Value::array(vec![group_version_kind(resource)]));
    Value::object(members)
}
