//! The table of kinds.

use std::sync::{Arc, LazyLock};

use ephor_expr::Str;
use ephor_expr::scalar::wildcard::matches;
use rustc_hash::FxHashMap;

use super::{kubernetes, policy};
use crate::resource::{Resource, split_api_version};

/// The kinds that a cluster serves, each in all its versions.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    resources: Vec<Resource>,
    /// Positions of a kind, in all groups and versions, in order of arrival.
    by_kind: FxHashMap<Str, Vec<usize>>,
    /// Positions of a URL name.
    by_plural: FxHashMap<Str, Vec<usize>>,
}

static KUBERNETES: LazyLock<Arc<Discovery>> = LazyLock::new(|| {
    let mut discovery = Discovery::default();
    for group in kubernetes::GROUPS.iter().chain(policy::GROUPS) {
        for resource in group.resources() {
            discovery.add(resource);
        }
    }
    Arc::new(discovery)
});

impl Discovery {
    /// The kinds of Kubernetes 1.34 and those of policies and policy reports. One table for all callers.
    pub fn kubernetes() -> Arc<Self> {
        KUBERNETES.clone()
    }

    /// Adds a kind in one version, or replaces what is known about it.
    pub fn add(&mut self, resource: Resource) {
        let same = |r: &Resource| r.group == resource.group && r.version == resource.version;
        let found = |index: &FxHashMap<Str, Vec<usize>>, key: &Str| {
            index.get(key)?.iter().copied().find(|i| same(&self.resources[*i]))
        };
        let known = found(&self.by_kind, &resource.kind).or_else(|| found(&self.by_plural, &resource.plural));
        if let Some(position) = known {
            let old = &self.resources[position];
            let renamed = old.kind != resource.kind || old.plural != resource.plural;
            self.resources[position] = resource;
            if renamed {
                self.index();
            }
        } else {
            let position = self.resources.len();
            self.by_kind.entry(resource.kind.clone()).or_default().push(position);
            self.by_plural.entry(resource.plural.clone()).or_default().push(position);
            self.resources.push(resource);
        }
    }

    /// Forgets a kind in all its versions.
    pub fn remove(&mut self, group: &str, plural: &str) {
        self.resources.retain(|r| r.group != group || r.plural != plural);
        self.index();
    }

    fn index(&mut self) {
        self.by_kind.clear();
        self.by_plural.clear();
        for (position, resource) in self.resources.iter().enumerate() {
            self.by_kind.entry(resource.kind.clone()).or_default().push(position);
            self.by_plural.entry(resource.plural.clone()).or_default().push(position);
        }
    }

    fn at<'d>(&'d self, index: &'d FxHashMap<Str, Vec<usize>>, key: &str) -> impl Iterator<Item = &'d Resource> {
        index.get(key).into_iter().flatten().map(|i| &self.resources[*i])
    }

    /// The resource behind `apiVersion` and `kind` of an object.
    pub fn find(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        let (group, version) = split_api_version(api_version);
        self.with_kind(kind).find(|r| r.group == group && r.version == version)
    }

    /// The resource behind a URL path.
    pub fn find_plural(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.at(&self.by_plural, plural).find(|r| r.group == group && r.version == version)
    }

    /// All resources of that kind in any group and version: Kubernetes' own first, of a group's versions the
    /// preferred one first.
    pub fn with_kind(&self, kind: &str) -> impl Iterator<Item = &Resource> {
        self.at(&self.by_kind, kind)
    }

    /// The resources of that kind that a pattern of an `apiVersion` (`*`, `apps/*`; empty: any) means: of each group
    /// the preferred version among them.
    pub fn matching(&self, api_version: &str, kind: &str) -> impl Iterator<Item = &Resource> {
        let mut groups = Vec::new();
        self.with_kind(kind).filter(move |resource| {
            let means = api_version.is_empty() || matches(api_version, &resource.api_version());
            means && !groups.contains(&resource.group) && {
                groups.push(resource.group.clone());
                true
            }
        })
    }

    /// All resources, group by group as they became known.
    pub fn iter(&self) -> impl Iterator<Item = &Resource> {
        self.resources.iter()
    }

    /// The same kind in an unknown version of a known group, or else [`Resource::guess`].
    pub fn guess(&self, api_version: &str, kind: &str) -> Resource {
        let (group, version) = split_api_version(api_version);
        match self.with_kind(kind).find(|r| r.group == group) {
            Some(known) => Resource { version: version.into(), ..known.clone() },
            None => Resource::guess(api_version, kind),
        }
    }
}
