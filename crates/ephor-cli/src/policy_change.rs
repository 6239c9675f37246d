//! A change of policies, for `ephor plan`: the policies that it concerns as they are and as they would be.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Context;
use ephor_background::preview::Namespaces;
use ephor_cluster::query::Filter;
use ephor_cluster::{Cluster, ErrorKind};
use ephor_engine::matching::ResourceFilters;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::facts::ClusterFacts;
use ephor_runtime::globalcontext::GlobalContext;
use ephor_runtime::policies::{PolicyId, StoredKind};
use ephor_runtime::watcher::{StoreEvent, list};
use ephor_scan::existing::Documents;
use ephor_scan::verdicts::{Comparison, Verdicts};

/// The documents before and after.
#[derive(Debug)]
pub(crate) struct PolicyChange {
    before: Documents,
    after: Documents,
}

impl PolicyChange {
    /// What `applied` and `deleted` change of what is stored. Policies that stay as they are, with the exceptions that
    /// they have, are left out.
    pub(crate) fn new(stored: &Documents, applied: &Documents, deleted: &[Value]) -> Self {
        let is_exception = |document: &&Value| document.str_at(&["kind"]) == Some("PolicyException");
        let exceptions = applied.exceptions.iter().chain(deleted.iter().filter(is_exception));
        let mut concerned: BTreeSet<PolicyId> = exceptions.flat_map(excepted).collect();
        concerned.extend(
            applied.policies.iter().chain(deleted.iter().filter(|document| is_policy(document))).map(PolicyId::of),
        );
        let concerns = |document: &&Value| concerned.contains(&PolicyId::of(document));
        let before: Vec<Value> = stored.policies.iter().filter(concerns).cloned().collect();
        let gone: BTreeSet<PolicyId> = applied
            .policies
            .iter()
            .chain(deleted.iter().filter(|document| is_policy(document)))
            .map(PolicyId::of)
            .collect();
        let rest = before.iter().filter(|document| !gone.contains(&PolicyId::of(document)));
        let policies = rest.chain(&applied.policies).cloned().collect();
        let replaced: BTreeSet<(Str, Str)> =
            applied.exceptions.iter().chain(deleted.iter().filter(is_exception)).map(name_of).collect();
        let rest = stored.exceptions.iter().filter(|document| !replaced.contains(&name_of(document)));
        let after = Documents { policies, exceptions: rest.chain(&applied.exceptions).cloned().collect() };
        Self { before: Documents { policies: before, exceptions: stored.exceptions.clone() }, after }
    }

    /// The verdicts that change, about the objects of a cluster.
    pub(crate) fn verdicts(
        &self,
        cluster: &Arc<dyn Cluster>,
        namespaces: Namespaces,
        only: Option<&str>,
        filters: &ResourceFilters,
        now: jiff::Timestamp,
    ) -> anyhow::Result<Verdicts> {
        if self.before.policies.is_empty() && self.after.policies.is_empty() {
            return Ok(Verdicts::default());
        }
        let answers = answers(cluster)?;
        let none = Value::object(Map::new());
        let comparison = Comparison {
            before: &self.before,
            after: &self.after,
            namespace: only,
            assumed_labels: (namespaces == Namespaces::Assumed).then_some(&none),
            filters,
        };
        comparison.run(&**cluster, &answers, now).context("existing objects cannot be judged")
    }
}

/// What rules may ask of a cluster, with its global context entries.
pub(crate) fn answers(cluster: &Arc<dyn Cluster>) -> anyhow::Result<ClusterFacts> {
    let global = GlobalContext::on_demand(cluster);
    let entries = documents(&**cluster, "kyverno.io/v2", "GlobalContextEntry")?;
    global.apply(StoreEvent::Reset(entries));
    Ok(ClusterFacts::new(Arc::clone(cluster)).with(Arc::new(global)))
}

/// The policies and exceptions of a cluster.
pub(crate) fn stored(cluster: &dyn Cluster) -> anyhow::Result<Documents> {
    let mut stored = Documents::default();
    for (version, kind) in StoredKind::all() {
        let of_kind = if kind.is_exception() { &mut stored.exceptions } else { &mut stored.policies };
        of_kind.extend(documents(cluster, version, kind.as_str())?);
    }
    Ok(stored)
}

/// The objects of a kind; none if the cluster does not serve it.
fn documents(cluster: &dyn Cluster, api_version: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
    let listed = cluster.resolve(api_version, kind).and_then(|resource| list(cluster, &resource, &Filter::default()));
    match listed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        listed => Ok(listed.with_context(|| format!("cannot list {kind}"))?.0),
    }
}

/// Whether a document is a policy of `kyverno.io`.
pub(crate) fn is_policy(document: &Value) -> bool {
    document.str_at(&["apiVersion"]).is_some_and(|version| version.starts_with("kyverno.io/"))
        && matches!(document.str_at(&["kind"]), Some("ClusterPolicy" | "Policy"))
}

/// The policies that an exception names.
fn excepted(exception: &Value) -> Vec<PolicyId> {
    let rules = exception.at(&["spec", "exceptions"]).and_then(Value::as_array).unwrap_or_default();
    let names = rules.iter().filter_map(|rules| rules.str_at(&["policyName"]));
    names.map(PolicyId::parse).collect()
}

fn name_of(document: &Value) -> (Str, Str) {
    let text = |key| Str::new(document.str_at(&["metadata", key]).unwrap_or_default());
    (text("namespace"), text("name"))
}
