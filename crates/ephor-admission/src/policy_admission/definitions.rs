//! Kinds that a policy names and that were defined a moment ago. An API server serves a kind some time after its
//! definition is stored, so that a policy applied together with it seems to name a kind that does not exist. The check
//! of the policy waits for such kinds, once for all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ephor_cluster::resource::join_api_version;
use ephor_cluster::{Cluster, ClusterError, Discovery, ListQuery};
use ephor_engine::matching::Gvk;
use ephor_engine::policy::Policy;
use ephor_expr::{Str, Value};
use jiff::Timestamp;

use super::kinds;

/// How long a policy waits for its kinds, and how often it asks meanwhile.
const WAIT_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How old a definition is, in seconds, that the API server serves by now, or never will.
const SETTLED: i64 = 10;
/// How many policies wait at a time, so that other reviews keep their threads.
const MAX_WAITING: usize = 4;

/// The policies that wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting(Arc<AtomicUsize>);

/// A place among those that wait.
struct Place<'w>(&'w AtomicUsize);

impl Waiting {
    fn take(&self) -> Option<Place<'_>> {
        if self.0.fetch_add(1, Ordering::Relaxed) < MAX_WAITING {
            return Some(Place(&self.0));
        }
        self.0.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is served, once that includes the kinds that `policy` names and that were defined a moment ago.
pub(super) fn discovery(
    cluster: &dyn Cluster,
    waiting: &Waiting,
    policy: &Policy,
) -> Result<Arc<Discovery>, ClusterError> {
    let known = cluster.discovery()?;
    let unknown = kinds::unknown(policy, &known);
    if unknown.is_empty() {
        return Ok(known);
    }
    let Some(_place) = waiting.take() else { return Ok(known) };
    let begun = Instant::now();
    let lately = defined_lately(cluster).unwrap_or_else(|error| {
        tracing::debug!(%error, "definitions cannot be read: nothing is waited for");
        Vec::new()
    });
    let named = |gvk: &Gvk| unknown.iter().any(|selector| selector.matches_kind(gvk));
    let mut due: Vec<Gvk> = lately.into_iter().filter(named).collect();
    if due.is_empty() {
        return Ok(known);
    }
    loop {
        due.retain(|gvk| cluster.resolve(&join_api_version(&gvk.group, &gvk.version), &gvk.kind).is_err());
        if due.is_empty() || begun.elapsed() >= WAIT_TIMEOUT {
            return cluster.discovery();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The kinds of definitions that are a few seconds old.
fn defined_lately(cluster: &dyn Cluster) -> Result<Vec<Gvk>, ClusterError> {
    let definitions = cluster.resolve("apiextensions.k8s.io/v1", "CustomResourceDefinition")?;
    let now = Timestamp::now().as_second();
    let is_new = |object: &Value| {
        let created = object.str_at(&["metadata", "creationTimestamp"]).and_then(|time| time.parse::<Timestamp>().ok());
        created.is_some_and(|created| now - created.as_second() <= SETTLED)
    };
    let mut found = Vec::new();
    for object in cluster.list(&definitions, &ListQuery::all().metadata_only())?.items.iter().filter(|o| is_new(o)) {
        let name = object.str_at(&["metadata", "name"]).unwrap_or_default();
        // One that is gone again defines nothing.
        let Ok(definition) = cluster.get(&definitions, None, name) else { continue };
        let text = |keys: &[&str]| Str::new(definition.str_at(keys).unwrap_or_default());
        let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
        let served = versions.iter().filter(|version| version.get("served") == Some(&Value::Bool(true)));
        found.extend(served.map(|version| Gvk {
            group: text(&["spec", "group"]),
            version: Str::new(version.str_at(&["name"]).unwrap_or_default()),
            kind: text(&["spec", "names", "kind"]),
        }));
    }
    Ok(found)
}
