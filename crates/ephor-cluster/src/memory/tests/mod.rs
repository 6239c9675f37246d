//! What the cluster in memory does, subject by subject.

mod containers;
mod create;
mod delete;
mod garbage;
mod lists;
mod load;
mod properties;
mod server;
mod update;
mod watches;

use ephor_expr::Value;

use super::{MemoryCluster, Options};
use crate::cluster::{Cluster, Watch, WatchEvent};
use crate::error::ClusterError;
use crate::object;
use crate::query::{List, ListQuery, WatchQuery};
use crate::resource::Resource;
use crate::write::{DeleteOptions, Deletion, Patch, WriteOptions};

fn json(text: &str) -> Value {
    Value::from_json(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn strict() -> MemoryCluster {
    MemoryCluster::default()
}

fn offline() -> MemoryCluster {
    MemoryCluster::new(Options::offline())
}

fn resource(cluster: &MemoryCluster, api_version: &str, kind: &str) -> Resource {
    cluster.resolve(api_version, kind).unwrap()
}

fn resource_of(cluster: &MemoryCluster, object: &Value) -> Resource {
    resource(cluster, object.str_at(&["apiVersion"]).unwrap(), object.str_at(&["kind"]).unwrap())
}

fn create(cluster: &MemoryCluster, text: &str) -> Result<Value, ClusterError> {
    let object = json(text);
    cluster.create(&resource_of(cluster, &object), object, &WriteOptions::default())
}

fn update(cluster: &MemoryCluster, object: Value) -> Result<Value, ClusterError> {
    cluster.update(&resource_of(cluster, &object), object, &WriteOptions::default())
}

/// Applies a merge patch to the object that `object` was read as.
fn patch(cluster: &MemoryCluster, object: &Value, document: &str) -> Result<Value, ClusterError> {
    let patch = Patch::merge(json(document));
    let resource = resource_of(cluster, object);
    cluster.patch(&resource, namespace_of(object), object::name(object), &patch, &WriteOptions::default())
}

fn delete(cluster: &MemoryCluster, object: &Value) -> Result<Deletion, ClusterError> {
    delete_with(cluster, object, &DeleteOptions::default())
}

fn delete_with(cluster: &MemoryCluster, object: &Value, options: &DeleteOptions) -> Result<Deletion, ClusterError> {
    cluster.delete(&resource_of(cluster, object), namespace_of(object), object::name(object), options)
}

/// The present state of the object that `object` was read as.
fn present(cluster: &MemoryCluster, object: &Value) -> Option<Value> {
    cluster.get(&resource_of(cluster, object), namespace_of(object), object::name(object)).ok()
}

fn namespace_of(object: &Value) -> Option<&str> {
    Some(object::namespace(object)).filter(|n| !n.is_empty())
}

fn list(cluster: &MemoryCluster, api_version: &str, kind: &str, query: &ListQuery) -> Result<List, ClusterError> {
    cluster.list(&resource(cluster, api_version, kind), query)
}

fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(object::name).collect()
}

fn config_map(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"default"}}}}"#)
}

fn deployment(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","namespace":"default"}},"spec":{{"replicas":1}},"status":{{"replicas":9}}}}"#
    )
}

fn namespace(name: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#)
}

fn definition() -> &'static str {
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boxes.example.com"},
        "spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Box","plural":"boxes","singular":"box"},
        "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}}},{"name":"v1beta1","served":true,"storage":false}]}}"#
}

fn box_named(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Box","metadata":{{"name":"{name}","namespace":"default"}},"spec":{{"size":1}}}}"#
    )
}

fn watch(cluster: &MemoryCluster, api_version: &str, kind: &str, from: &str) -> Box<dyn Watch> {
    let query = WatchQuery { resource_version: from.into(), ..WatchQuery::default() };
    cluster.watch(&resource(cluster, api_version, kind), &query).unwrap()
}

/// All events that are there already.
fn events(watch: &mut dyn Watch) -> Vec<WatchEvent> {
    let next = || watch.next(std::time::Duration::ZERO).unwrap();
    std::iter::from_fn(next).take(10_000).collect()
}

/// Events as `+a ~a -a`.
fn sketch(events: &[WatchEvent]) -> String {
    let sketched: Vec<String> = events
        .iter()
        .map(|event| match event {
            WatchEvent::Added(o) => format!("+{}", object::name(o)),
            WatchEvent::Modified(o) => format!("~{}", object::name(o)),
            WatchEvent::Deleted(o) => format!("-{}", object::name(o)),
            WatchEvent::Bookmark(version) => format!("@{version}"),
        })
        .collect();
    sketched.join(" ")
}
