//! Writes the reports about an object so that they match the merged results.

use std::collections::BTreeMap;

use ephor_cluster::{ClusterError, DeleteOptions, ErrorKind, Resource, WriteOptions, object};
use ephor_expr::{Str, Value};
use ephor_reports::merge::{Rule, Stored, merge};
use ephor_reports::report::{content, is_ours, reports, results};
use ephor_reports::{Dialect, Scope};
use ephor_runtime::lease::LostLease;
use jiff::Timestamp;

use crate::controller::Controller;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// This replica does not lead any more.
    #[error(transparent)]
    Lost(#[from] LostLease),
    /// The kind of reports is not served.
    #[error("{0}")]
    NoReports(ClusterError),
    /// The cluster refuses, or cannot be reached.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// The reports about one object as they are stored.
type Present = BTreeMap<Str, Value>;

impl Controller {
    /// Makes the reports about `scope` hold `fresh` results, and of stored ones what `fate` leaves. Writes nothing if
    /// they say so already.
    pub(crate) fn write(
        &self,
        scope: &Scope,
        fresh: &[Value],
        now: Timestamp,
        fate: impl FnMut(Rule<'_>) -> Stored,
    ) -> Result<(), Failure> {
        let dialect = self.env().options.dialect;
        let known = self.lock().stored(&scope.uid);
        let alone = self.wanted(scope, merge(&[], fresh, now, |_| Stored::Gone));
        let digests: Vec<u64> = alone.iter().map(|report| self.lock().digest(&content(report))).collect();
        if known.values().map(|report| report.digest).eq(digests) {
            return Ok(());
        }
        let namespaced = !scope.namespace.is_empty();
        let resource = self.reports_kind(dialect, namespaced)?;
        let mut present = Present::new();
        for name in known.keys() {
            match self.env().cluster.get(&resource, namespaced.then_some(&*scope.namespace), name) {
                Ok(report) if is_ours(&report) => drop(present.insert(name.clone(), report)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => self.lock().record_gone(&scope.uid, name),
                Err(error) => return Err(error.into()),
            }
        }
        let stored: Vec<Value> = present.values().flat_map(results).cloned().collect();
        for report in self.wanted(scope, merge(&stored, fresh, now, fate)) {
            let before = present.remove(object::name(&report));
            self.put(&resource, report, before)?;
        }
        for (name, report) in present {
            self.remove(&resource, &report)?;
            self.lock().record_gone(&scope.uid, &name);
        }
        self.env().new_results.tell(scope, fresh, &stored);
        Ok(())
    }

    fn wanted(&self, scope: &Scope, mut results: Vec<Value>) -> Vec<Value> {
        let options = &self.env().options;
        if let Some(allowed) = &options.allowed {
            results.retain(|result| allowed.iter().any(|word| result.str_at(&["result"]) == Some(word.as_str())));
        }
        reports(options.dialect, scope, results, options.max_bytes)
    }

    /// The kind of reports.
    pub(crate) fn reports_kind(&self, dialect: Dialect, namespaced: bool) -> Result<Resource, Failure> {
        let resolved = self.env().cluster.resolve(dialect.api_version(), dialect.kind(namespaced));
        resolved.map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::NoReports(error),
            _ => Failure::Cluster(error),
        })
    }

    /// Creates or replaces a report, unless it says the same.
    fn put(&self, resource: &Resource, mut report: Value, before: Option<Value>) -> Result<(), Failure> {
        let cluster = &self.env().cluster;
        let written = match before {
            Some(before) if content(&before) == content(&report) => before,
            Some(before) => {
                object::copy(&mut report, &before, "resourceVersion");
                object::copy(&mut report, &before, "uid");
                (self.env().fence)()?;
                cluster.update(resource, report, &WriteOptions::default())?
            }
            None => {
                (self.env().fence)()?;
                match cluster.create(resource, report.clone(), &WriteOptions::default()) {
                    Ok(written) => written,
                    // One that no watcher has delivered yet, or one of another engine.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        let namespace = Some(object::namespace(&report)).filter(|namespace| !namespace.is_empty());
                        let other = cluster.get(resource, namespace, object::name(&report))?;
                        if !is_ours(&other) {
                            tracing::warn!(report = object::name(&report), "a report of another engine is not changed");
                            return Ok(());
                        }
                        let mut state = self.lock();
                        let digest = state.digest(&content(&other));
                        state.record(&other, digest);
                        return Err(error.into());
                    }
                    Err(error) if is_terminating(&error) => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let mut state = self.lock();
        let digest = state.digest(&content(&written));
        state.record(&written, digest);
        Ok(())
    }

    /// Deletes a report as it was read.
    pub(crate) fn remove(&self, resource: &Resource, report: &Value) -> Result<(), Failure> {
        let options = DeleteOptions {
            uid: Str::new(object::text(report, "uid")),
            resource_version: Str::new(object::text(report, "resourceVersion")),
            ..DeleteOptions::default()
        };
        let namespace = Some(object::namespace(report)).filter(|namespace| !namespace.is_empty());
        (self.env().fence)()?;
        match self.env().cluster.delete(resource, namespace, object::name(report), &options) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether something was refused because its namespace is about to go.
fn is_terminating(error: &ClusterError) -> bool {
    let status = error.status();
    let causes = status.at(&["details", "causes"]).and_then(Value::as_array).unwrap_or_default();
    causes.iter().any(|cause| cause.str_at(&["reason"]) == Some("NamespaceTerminating"))
}
