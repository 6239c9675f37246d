//! What exists in a cluster, as far as policies can match it.

use std::collections::BTreeSet;
use std::sync::Arc;

use ephor_cluster::query::Filter;
use ephor_cluster::{Cluster, ClusterError, Discovery, ListQuery, Resource};
use ephor_engine::matching::{Gvk, KindSelector, RequestMatcher, RequestResource};
use ephor_expr::{Str, Value};

use super::plan::Plan;
use crate::host::ReadOnly;
use crate::load::{LoadedPolicies, load_stored};
use crate::locate::Located;

/// How many objects are read at once.
const PAGE: usize = 250;

/// A cluster whose objects are judged, and which of them.
#[derive(Debug, Clone)]
pub struct Existing {
    /// The cluster.
    pub cluster: Arc<ReadOnly>,
    /// Which objects.
    pub extent: Extent,
}

/// Which objects of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent {
    /// All.
    Everything,
    /// Those in a namespace.
    Namespace(Str),
    /// Those outside of namespaces.
    ClusterWide,
}

/// The objects of one kind.
#[derive(Debug, Clone)]
pub struct KindOfObjects {
    cluster: Arc<ReadOnly>,
    /// The kind.
    pub resource: Resource,
    namespace: Option<Str>,
}

impl Existing {
    /// The policies that the cluster has stored; that there are none, or that they cannot be read, is a finding.
    pub(super) fn policies(&self) -> LoadedPolicies {
        let namespace = match &self.extent {
            Extent::Namespace(namespace) => Some(namespace.as_str()),
            Extent::Everything | Extent::ClusterWide => None,
        };
        let mut loaded = LoadedPolicies::default();
        match load_stored(&*self.cluster, namespace) {
            Ok(stored) => loaded = stored,
            Err(error) => {
                let message = format!("cannot read the policies of the cluster: {error}");
                loaded.findings.push(Located::plain("cluster", message));
            }
        }
        if loaded.files.is_empty() && loaded.findings.is_empty() {
            loaded.findings.push(Located::plain("no-policies", "the cluster has no policies"));
        }
        loaded
    }

    /// The kinds without namespaces, as group and kind.
    pub(super) fn cluster_scoped(&self) -> Result<BTreeSet<(Str, Str)>, ClusterError> {
        let discovery = self.cluster.discovery()?;
        Ok(discovery.iter().filter(|r| !r.namespaced).map(|r| (r.group.clone(), r.kind.clone())).collect())
    }

    /// The objects that policies of the plan can match, kind by kind.
    pub(super) fn kinds(&self, plan: &Plan) -> Result<Vec<KindOfObjects>, ClusterError> {
        let discovery = self.cluster.discovery()?;
        let wanted = wanted(plan, &discovery).into_iter().filter(|resource| match self.extent {
            Extent::Everything => true,
            Extent::Namespace(_) => resource.namespaced,
            Extent::ClusterWide => !resource.namespaced,
        });
        let namespace = match &self.extent {
            Extent::Namespace(namespace) => Some(namespace.clone()),
            Extent::Everything | Extent::ClusterWide => None,
        };
        let objects = |resource: Resource| KindOfObjects {
            cluster: Arc::clone(&self.cluster),
            resource,
            namespace: namespace.clone(),
        };
        Ok(wanted.map(objects).collect())
    }
}

impl KindOfObjects {
    /// Reads the objects page by page until `take` fails. An error of the cluster ends it too.
    pub(super) fn read<E>(
        &self,
        mut take: impl FnMut(Vec<Value>) -> Result<(), E>,
    ) -> Result<Result<(), E>, ClusterError> {
        let filter = Filter { namespace: self.namespace.clone(), ..Filter::default() };
        let mut query = ListQuery { filter, ..ListQuery::all().limit(PAGE) };
        loop {
            let page = self.cluster.list(&self.resource, &query)?;
            if let Err(stop) = take(page.items) {
                return Ok(Err(stop));
            }
            match page.continue_token {
                Some(token) => query.continue_token = Some(token),
                None => return Ok(Ok(())),
            }
        }
    }
}

/// The kinds that some rule can match, in the order of discovery. Where a rule leaves the version open, the one that
/// the cluster prefers.
fn wanted(plan: &Plan, discovery: &Discovery) -> Vec<Resource> {
    let rules = plan.policies.iter().filter_map(|policy| policy.program.as_ref()).flat_map(|program| &program.rules);
    let mut chosen = BTreeSet::new();
    let mut kinds = Vec::new();
    for rule in rules {
        match rule.body.constraints() {
            Some(constraints) => choose_resources(constraints, discovery, &mut chosen),
            None => kinds.push(rule.matches.kinds()),
        }
    }
    let kinds = kinds.into_iter().chain(plan.cleanups.iter().map(|(_, program)| program.kinds()));
    let any = [KindSelector::parse("*")];
    for kinds in kinds {
        for selector in kinds.unwrap_or_else(|| any.iter().collect()) {
            choose(selector, discovery, &mut chosen);
        }
    }
    discovery.iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, r)| r.clone()).collect()
}

/// The resources that the constraints of a policy name.
fn choose_resources(constraints: &RequestMatcher, discovery: &Discovery, chosen: &mut BTreeSet<usize>) {
    let mut seen = BTreeSet::new();
    for (i, resource) in discovery.iter().enumerate().filter(|(_, resource)| resource.stored) {
        let named = RequestResource {
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            subresource: "",
        };
        if constraints.may_match(&named) && seen.insert((&resource.group, &resource.plural)) {
            chosen.insert(i);
        }
    }
}

fn choose(selector: &KindSelector, discovery: &Discovery, chosen: &mut BTreeSet<usize>) {
    // Of a subresource there are requests, but no objects.
    if !selector.subresource.matches("") {
        return;
    }
    let mut seen = BTreeSet::new();
    for (i, resource) in discovery.iter().enumerate().filter(|(_, r)| r.stored) {
        let gvk = Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
        // Events are served under two groups.
        let twice = resource.group == "events.k8s.io" && !selector.group.is_exact();
        if !twice && selector.matches_kind(&gvk) && seen.insert((&resource.group, &resource.plural)) {
            chosen.insert(i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_chosen_in_the_preferred_version() {
        let mut discovery = (*Discovery::kubernetes()).clone();
        for version in ["v2", "v1"] {
            discovery.add(Resource::guess(&format!("example.com/{version}"), "Box"));
        }
        for (selector, want) in [
            ("Deployment", "apps/v1 Deployment"),
            ("Event", "v1 Event"),
            ("events.k8s.io/v1/Event", "events.k8s.io/v1 Event"),
            ("Box", "example.com/v2 Box"),
            ("example.com/v1/Box", "example.com/v1 Box"),
            ("v1/Box", "example.com/v1 Box"),
            ("Pod/exec", ""),
            ("Daemon*", "apps/v1 DaemonSet"),
            ("SubjectAccessReview", ""),
            ("NoSuchKind", ""),
        ] {
            let mut chosen = BTreeSet::new();
            choose(&KindSelector::parse(selector), &discovery, &mut chosen);
            let named: Vec<String> = discovery
                .iter()
                .enumerate()
                .filter(|(i, _)| chosen.contains(i))
                .map(|(_, r)| format!("{} {}", r.api_version(), r.kind))
                .collect();
            assert_eq!(named.join(","), want, "{selector}");
        }
    }
}
