//! A cluster that is only looked at.

use std::fmt;
use std::sync::Arc;

use ephor_cluster::query::Filter;
use ephor_cluster::raw::{Method, RawRequest};
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, Discovery, List, ListQuery, Patch, Resource, Watch, WatchQuery,
    WriteOptions,
};
use ephor_engine::gate::ApiPath;
use ephor_expr::Value;

/// Passes reads on to a cluster and refuses everything else, so that a command that only reads needs no trust.
pub struct ReadOnly {
    inner: Arc<dyn Cluster>,
    dry_runs: DryRuns,
}

/// How writes are answered that store nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DryRuns {
    /// They are refused, as all writes are.
    Refused,
    /// They are passed on.
    Passed,
}

impl ReadOnly {
    /// The cluster without its writes.
    pub fn new(cluster: Arc<dyn Cluster>) -> Self {
        Self { inner: cluster, dry_runs: DryRuns::Refused }
    }

    /// The same, with dry runs.
    #[must_use]
    pub fn with_dry_runs(self) -> Self {
        Self { dry_runs: DryRuns::Passed, ..self }
    }

    fn passes(&self, options: &WriteOptions) -> bool {
        options.dry_run && self.dry_runs == DryRuns::Passed
    }
}

impl fmt::Debug for ReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadOnly")
    }
}

fn refused<T>(what: &str) -> Result<T, ClusterError> {
    let message = format!("{what} is refused: `--cluster` only reads");
    Err(ClusterError::from_status(&Value::from([("message", Value::from(message))]), 405))
}

impl Cluster for ReadOnly {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        self.inner.discovery()
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.inner.resolve(api_version, kind)
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        self.inner.get(resource, namespace, name)
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        self.inner.list(resource, query)
    }

    fn create(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        if self.passes(options) { self.inner.create(resource, object, options) } else { refused("creating") }
    }

    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        if self.passes(options) { self.inner.update(resource, object, options) } else { refused("updating") }
    }

    fn update_status(&self, _: &Resource, _: Value, _: &WriteOptions) -> Result<Value, ClusterError> {
        refused("updating")
    }

    fn patch(
        &self,
        _: &Resource,
        _: Option<&str>,
        _: &str,
        _: &Patch,
        _: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        refused("patching")
    }

    fn delete(&self, _: &Resource, _: Option<&str>, _: &str, _: &DeleteOptions) -> Result<Deletion, ClusterError> {
        refused("deleting")
    }

    fn delete_collection(&self, _: &Resource, _: &Filter, _: &DeleteOptions) -> Result<usize, ClusterError> {
        refused("deleting")
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        self.inner.watch(resource, query)
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        match request.method {
            Method::Get => self.inner.raw(request),
            // An API server answers reviews and stores nothing.
            Method::Post if ApiPath::parse(&request.path).is_ok_and(|path| path.is_review()) => self.inner.raw(request),
            _ => refused("a call that is no GET"),
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_cluster::MemoryCluster;

    use super::*;

    #[test]
    fn nothing_is_changed_through_it() {
        let memory = MemoryCluster::default();
        let config_maps = memory.resolve("v1", "ConfigMap").unwrap();
        let object = Value::from_json(r#"{"metadata":{"name":"a","namespace":"default"}}"#).unwrap();
        memory.create(&config_maps, object.clone(), &WriteOptions::default()).unwrap();
        let revision = memory.revision();
        let cluster = ReadOnly::new(Arc::new(memory.clone()));
        let (own, plain, gone) = (Some("default"), WriteOptions::default(), DeleteOptions::default());
        let patch = Patch::merge(Value::from_json(r#"{"data":{}}"#).unwrap());
        let path = "/api/v1/namespaces/default/configmaps";
        let delete = RawRequest { method: Method::Delete, ..RawRequest::get(format!("{path}/a")) };
        for refused in [
            cluster.create(&config_maps, object.clone(), &plain),
            cluster.update(&config_maps, object.clone(), &plain),
            cluster.update_status(&config_maps, object.clone(), &plain),
            cluster.patch(&config_maps, own, "a", &patch, &plain),
            cluster.delete(&config_maps, own, "a", &gone).map(Deletion::into_object),
            cluster.raw(&RawRequest::post(path, object.clone())),
            cluster.raw(&delete),
        ] {
            assert!(refused.unwrap_err().to_string().ends_with("`--cluster` only reads"));
        }
        let dry = WriteOptions::dry_run();
        assert!(cluster.update(&config_maps, object.clone(), &dry).is_err());
        let trying = ReadOnly::new(Arc::new(memory.clone())).with_dry_runs();
        assert!(trying.update(&config_maps, object.clone(), &plain).is_err());
        assert!(trying.update(&config_maps, object.clone(), &dry).is_ok());
        assert_eq!(memory.revision(), revision);
        assert!(cluster.get(&config_maps, own, "a").is_ok());
        assert_eq!(cluster.list(&config_maps, &ListQuery::all()).unwrap().items.len(), 1);
        assert!(cluster.raw(&RawRequest::get(format!("{path}/a"))).is_ok());
        let review = r#"{"spec":{"user":"u","resourceAttributes":{"verb":"get","resource":"pods"}}}"#;
        let review = Value::from_json(review).unwrap();
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        assert!(cluster.raw(&RawRequest::post(reviews, review)).is_ok());
    }
}
