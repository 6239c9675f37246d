//! A cluster that counts its requests.

use std::sync::Arc;

use ephor_cluster::raw::RawRequest;
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, Discovery, List, ListQuery, Patch, Resource, Watch, WatchQuery,
    WriteOptions,
};
use ephor_expr::Value;

use super::Metrics;

/// The cluster inside, with `kyverno_client_queries` counting what it is asked.
pub struct CountedCluster {
    inner: Arc<dyn Cluster>,
    metrics: Metrics,
}

impl std::fmt::Debug for CountedCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CountedCluster")
    }
}

impl CountedCluster {
    /// Counts what `inner` is asked.
    pub fn new(inner: Arc<dyn Cluster>, metrics: Metrics) -> Self {
        Self { inner, metrics }
    }

    fn count(&self, operation: &'static str, resource: &Resource, namespace: Option<&str>) {
        self.metrics.client_query(operation, &resource.kind, namespace.unwrap_or_default());
    }
}

fn place(object: &Value) -> Option<&str> {
    object.str_at(&["metadata", "namespace"])
}

impl Cluster for CountedCluster {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        self.inner.discovery()
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.inner.resolve(api_version, kind)
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        self.count("get", resource, namespace);
        self.inner.get(resource, namespace, name)
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        self.count("list", resource, query.filter.namespace());
        self.inner.list(resource, query)
    }

    fn create(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.count("create", resource, place(&object));
        self.inner.create(resource, object, options)
    }

    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.count("update", resource, place(&object));
        self.inner.update(resource, object, options)
    }

    fn update_status(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        self.count("update_status", resource, place(&object));
        self.inner.update_status(resource, object, options)
    }

    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        self.count("patch", resource, namespace);
        self.inner.patch(resource, namespace, name, patch, options)
    }

    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        self.count("delete", resource, namespace);
        self.inner.delete(resource, namespace, name, options)
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        self.count("watch", resource, query.filter.namespace());
        self.inner.watch(resource, query)
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        self.inner.raw(request)
    }
}
