//! What the API calls a resource: a kind with its group, version, URL name and scope.

use std::sync::Arc;

use ephor_expr::Str;

use crate::error::ClusterError;

/// A kind that a cluster serves, in one version. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: Str,
    /// The version, for example `v1`.
    pub version: Str,
    /// The kind, for example `Deployment`.
    pub kind: Str,
    /// The name in URLs, for example `deployments`.
    pub plural: Str,
    /// The singular name, for example `deployment`.
    pub singular: Str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// What can be addressed below an object.
    pub subresources: Arc<[Subresource]>,
    /// The names for lazy fingers, for example `deploy`.
    pub short_names: Arc<[Str]>,
    /// The names under which `kubectl get` shows several kinds, for example `all`.
    pub categories: Arc<[Str]>,
    /// Where a custom kind with a scale keeps its replicas.
    pub scale: Option<Arc<ScalePaths>>,
    /// Where the kind comes from.
    pub origin: Origin,
    /// Whether objects are kept. Reviews and bindings are not: they are posted and answered.
    pub stored: bool,
}

/// Where a kind comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Part of Kubernetes.
    BuiltIn,
    /// Defined by a `CustomResourceDefinition`.
    Custom,
    /// Computed by an extension API server, which only lets it be read.
    Aggregated,
    /// Not known; plural and scope are a guess from the kind.
    Guessed,
}

/// The fields of a custom object that its scale shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// How many replicas there should be.
    pub wanted: Vec<Str>,
    /// How many there are.
    pub present: Vec<Str>,
    /// The selector of the replicas, as text.
    pub selector: Option<Vec<Str>>,
}

/// Something addressed below an object, for example `pods/x/eviction`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// The last element of the URL, for example `eviction`.
    pub name: Str,
    /// The API version of what is sent there, for example `policy/v1`.
    pub api_version: Str,
    /// The kind of what is sent there, for example `Eviction`.
    pub kind: Str,
}

impl Resource {
    /// The `apiVersion` of its objects: `v1`, `apps/v1`.
    pub fn api_version(&self) -> Str {
        join_api_version(&self.group, &self.version)
    }

    /// The `kind` of its lists.
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    /// The plural with its group, as errors name it: `pods`, `deployments.apps`.
    pub fn qualified_plural(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// The kind with its group, as errors name it: `Pod`, `Deployment.apps`.
    pub fn qualified_kind(&self) -> String {
        qualified(&self.kind, &self.group)
    }

    /// The subresource `name`.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// Whether `status` is written apart from the rest.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// The URL path of the collection, or of one object of it: `/apis/apps/v1/namespaces/prod/deployments/web`.
    /// Without namespace, a namespaced kind's collection is that of all namespaces.
    pub fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        path.push('/');
        path.push_str(&self.version);
        if let Some(namespace) = namespace.filter(|n| self.namespaced && !n.is_empty()) {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(&self.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        path
    }

    /// Whether one object can be meant by this namespace and name: refused as an API server refuses it.
    pub fn check_place(&self, namespace: Option<&str>, name: &str) -> Result<(), ClusterError> {
        if !self.stored {
            return Err(ClusterError::method_not_allowed());
        }
        if name.is_empty() {
            return Err(ClusterError::bad_request("resource name may not be empty"));
        }
        match (self.namespaced, namespace.unwrap_or_default().is_empty()) {
            (true, true) => {
                Err(ClusterError::bad_request("an empty namespace may not be set when a resource name is provided"))
            }
            (false, false) => Err(ClusterError::no_such_path()),
            _ => Ok(()),
        }
    }

    /// The most likely resource of an unknown kind: namespaced, with the English plural of its name.
    pub fn guess(api_version: &str, kind: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: guess_plural(kind).into(),
            singular: kind.to_ascii_lowercase().into(),
            namespaced: true,
            subresources: Arc::new([]),
            short_names: Arc::new([]),
            categories: Arc::new([]),
            scale: None,
            origin: Origin::Guessed,
            stored: true,
        }
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// Splits an `apiVersion` into group and version; the core group is empty.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Joins group and version into an `apiVersion`.
pub fn join_api_version(group: &str, version: &str) -> Str {
    if group.is_empty() { Str::new(version) } else { [group, "/", version].into_iter().collect() }
}

/// The URL name that a kind most likely has: its name in lower case, in the English plural. In Kubernetes the
/// definition of a kind sets its plural, so this is for kinds without a definition only.
pub fn guess_plural(kind: &str) -> String {
    let singular = kind.to_ascii_lowercase();
    let ends = |suffixes: &[&str]| suffixes.iter().any(|s| singular.ends_with(s));
    if ends(&["endpoints"]) {
        return singular;
    }
    if ends(&["s", "x", "ch", "sh"]) {
        return singular + "es";
    }
    match singular.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => singular + "s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_guessed_as_english_forms_them() {
        for (kind, plural) in [
            ("Widget", "widgets"),
            ("ServiceEntry", "serviceentries"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Prometheus", "prometheuses"),
            ("Sandbox", "sandboxes"),
            ("Patch", "patches"),
            ("Endpoints", "endpoints"),
            ("", "s"),
        ] {
            assert_eq!(guess_plural(kind), plural);
        }
    }

    #[test]
    fn paths_follow_group_and_scope() {
        let widget = Resource::guess("example.com/v1", "Widget");
        assert_eq!(widget.path(None, None), "/apis/example.com/v1/widgets");
        assert_eq!(widget.path(Some("a"), Some("w")), "/apis/example.com/v1/namespaces/a/widgets/w");
        let node = Resource { namespaced: false, ..Resource::guess("v1", "Node") };
        assert_eq!(node.path(Some("ignored"), Some("n")), "/api/v1/nodes/n");
    }
}
