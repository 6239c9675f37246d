//! A cluster whose reports are in memory: everything else is what the cluster inside has.
//!
//! The controller keeps reports in it as in any cluster, with UIDs and versions, and readers get them from the same
//! [`ServedReports`]. So serving reports instead of storing them needs no second controller.

use std::fmt;
use std::sync::Arc;

use ephor_cluster::raw::RawRequest;
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, Discovery, ErrorKind, List, ListQuery, Patch, Resource, Watch,
    WatchQuery, WriteOptions, object,
};
use ephor_expr::Value;
use ephor_reports::Scope;
use ephor_reports::report::results;
use ephor_reports::served::ServedReports;
use jiff::Timestamp;
use parking_lot::Mutex;

/// The cluster inside, with reports in memory.
pub struct InMemoryReports {
    inner: Arc<dyn Cluster>,
    reports: ServedReports,
    /// Held from the check of a version to the write.
    writing: Mutex<()>,
}

impl fmt::Debug for InMemoryReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InMemoryReports")
    }
}

impl InMemoryReports {
    /// Keeps reports in `reports`, and everything else in `inner`.
    pub fn new(inner: Arc<dyn Cluster>, reports: ServedReports) -> Self {
        Self { inner, reports, writing: Mutex::new(()) }
    }

    /// The cluster that has objects of that kind.
    fn holder(&self, resource: &Resource) -> &dyn Cluster {
        if self.is_report(resource) { &self.reports } else { &*self.inner }
    }

    fn is_report(&self, resource: &Resource) -> bool {
        self.reports.resolve(&resource.api_version(), &resource.kind).is_ok()
    }

    fn present(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Option<Value>, ClusterError> {
        match self.reports.get(resource, namespace, name) {
            Ok(report) => Ok(Some(report)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores a report and gives it back as readers see it.
    fn store(&self, resource: &Resource, report: &Value) -> Result<Value, ClusterError> {
        let scope = Scope::of_report(report);
        let namespace = object::namespace(report);
        if scope.uid.is_empty() || object::name(report) != scope.uid.as_str() || namespace != scope.namespace.as_str() {
            return Err(ClusterError::bad_request("a report in memory has the UID and the namespace of its object"));
        }
        self.reports.set(&scope, results(report).to_vec(), Timestamp::now());
        let within = Some(namespace).filter(|namespace| !namespace.is_empty());
        // A report without results does not exist.
        Ok(self.present(resource, within, &scope.uid)?.unwrap_or_else(|| report.clone()))
    }
}

/// Fails unless `report` is the object of that UID in that version; empty ones stand for any.
fn check(resource: &Resource, report: &Value, uid: &str, version: &str) -> Result<(), ClusterError> {
    let differs = |wanted: &str, key: &str| !wanted.is_empty() && wanted != object::text(report, key);
    if differs(uid, "uid") || differs(version, "resourceVersion") {
        return Err(ClusterError::modified(resource, object::name(report)));
    }
    Ok(())
}

impl Cluster for InMemoryReports {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        self.inner.discovery()
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.reports.resolve(api_version, kind).or_else(|_| self.inner.resolve(api_version, kind))
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        self.holder(resource).get(resource, namespace, name)
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        self.holder(resource).list(resource, query)
    }

    fn create(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        if !self.is_report(resource) {
            return self.inner.create(resource, object, options);
        }
        let _writing = self.writing.lock();
        let namespace = Some(object::namespace(&object)).filter(|namespace| !namespace.is_empty());
        match self.present(resource, namespace, object::name(&object))? {
            Some(_) => Err(ClusterError::already_exists(resource, object::name(&object))),
            None => self.store(resource, &object),
        }
    }

    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        if !self.is_report(resource) {
            return self.inner.update(resource, object, options);
        }
        let _writing = self.writing.lock();
        let namespace = Some(object::namespace(&object)).filter(|namespace| !namespace.is_empty());
        let present = self.reports.get(resource, namespace, object::name(&object))?;
        check(resource, &present, object::text(&object, "uid"), object::text(&object, "resourceVersion"))?;
        self.store(resource, &object)
    }

    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        // Reports in memory refuse patches.
        self.holder(resource).patch(resource, namespace, name, patch, options)
    }

    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        if !self.is_report(resource) {
            return self.inner.delete(resource, namespace, name, options);
        }
        let _writing = self.writing.lock();
        let present = self.reports.get(resource, namespace, name)?;
        check(resource, &present, &options.uid, &options.resource_version)?;
        self.reports.set(&Scope::of_report(&present), Vec::new(), Timestamp::now());
        Ok(Deletion::Done(present))
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        self.holder(resource).watch(resource, query)
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        self.inner.raw(request)
    }
}

#[cfg(test)]
mod tests {
    use ephor_cluster::MemoryCluster;
    use ephor_reports::Dialect;
    use ephor_reports::served::Limits;

    use super::*;

    fn cluster() -> (InMemoryReports, Arc<MemoryCluster>) {
        let inner = Arc::new(MemoryCluster::default());
        let reports = ServedReports::new(&[Dialect::WgPolicy], Limits::default(), Timestamp::UNIX_EPOCH);
        (InMemoryReports::new(Arc::clone(&inner) as Arc<dyn Cluster>, reports), inner)
    }

    fn report(uid: &str, result: &'static str) -> Value {
        let scope = Scope {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: "a".into(),
            name: "m".into(),
            uid: uid.into(),
        };
        let results = vec![Value::from([("policy", Value::from("p")), ("result", Value::from(result))])];
        ephor_reports::report::reports(Dialect::WgPolicy, &scope, results, usize::MAX).remove(0)
    }

    #[test]
    fn reports_are_written_in_memory_and_nowhere_else() {
        let (cluster, inner) = cluster();
        let kind = cluster.resolve("wgpolicyk8s.io/v1alpha2", "PolicyReport").unwrap();
        let options = WriteOptions::default();
        let first = cluster.create(&kind, report("u", "fail"), &options).unwrap();
        assert!(!object::text(&first, "resourceVersion").is_empty());
        let again = cluster.create(&kind, report("u", "pass"), &options).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        assert!(inner.list(&kind, &ListQuery::all()).unwrap().items.is_empty());
        assert_eq!(cluster.list(&kind, &ListQuery::all()).unwrap().items, [first]);
    }

    #[test]
    fn a_write_of_a_stale_version_is_refused() {
        let (cluster, _) = cluster();
        let kind = cluster.resolve("wgpolicyk8s.io/v1alpha2", "PolicyReport").unwrap();
        let options = WriteOptions::default();
        let first = cluster.create(&kind, report("u", "fail"), &options).unwrap();
        let mut second = report("u", "pass");
        object::copy(&mut second, &first, "resourceVersion");
        let second_written = cluster.update(&kind, second.clone(), &options).unwrap();
        assert_eq!(cluster.update(&kind, second, &options).unwrap_err().kind(), ErrorKind::Conflict);
        let stale = |report: &Value| DeleteOptions {
            resource_version: object::text(report, "resourceVersion").into(),
            ..DeleteOptions::default()
        };
        let refused = cluster.delete(&kind, Some("a"), "u", &stale(&first)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        cluster.delete(&kind, Some("a"), "u", &stale(&second_written)).unwrap();
        assert_eq!(cluster.get(&kind, Some("a"), "u").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_report_that_is_not_named_after_its_object_is_refused() {
        let (cluster, _) = cluster();
        let kind = cluster.resolve("wgpolicyk8s.io/v1alpha2", "PolicyReport").unwrap();
        let mut other = report("u", "fail");
        object::set(&mut other, "name", "v");
        assert_eq!(cluster.create(&kind, other, &WriteOptions::default()).unwrap_err().code(), 400);
    }
}
