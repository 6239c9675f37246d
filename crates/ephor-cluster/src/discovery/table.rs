//! How the built-in kinds are written down.

use ephor_expr::Str;

use crate::resource::{Origin, Resource, Subresource, join_api_version};

/// The kinds of one group in one version.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) origin: Origin,
    pub(super) kinds: &'static [Kind],
}

/// One kind; see [`namespaced`], [`cluster`] and the methods for what deviates.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    name: &'static str,
    plural: &'static str,
    namespaced: bool,
    short_names: &'static [&'static str],
    subresources: &'static [&'static str],
    stored: bool,
}

/// A kind whose objects live in namespaces.
pub(super) const fn namespaced(name: &'static str, plural: &'static str) -> Kind {
    Kind { name, plural, namespaced: true, short_names: &[], subresources: &[], stored: true }
}

/// A kind whose objects live outside namespaces.
pub(super) const fn cluster(name: &'static str, plural: &'static str) -> Kind {
    Kind { namespaced: false, ..namespaced(name, plural) }
}

impl Kind {
    pub(super) const fn short(self, short_names: &'static [&'static str]) -> Self {
        Self { short_names, ..self }
    }

    pub(super) const fn with(self, subresources: &'static [&'static str]) -> Self {
        Self { subresources, ..self }
    }

    pub(super) const fn status(self) -> Self {
        self.with(&["status"])
    }

    /// Posted and answered, never kept.
    pub(super) const fn posted(self) -> Self {
        Self { stored: false, ..self }
    }
}

impl Group {
    pub(super) fn resources(&self) -> impl Iterator<Item = Resource> {
        self.kinds.iter().map(|kind| {
            let own = join_api_version(self.name, self.version);
            Resource {
                group: Str::new_static(self.name),
                version: Str::new_static(self.version),
                kind: Str::new_static(kind.name),
                plural: Str::new_static(kind.plural),
                singular: kind.name.to_ascii_lowercase().into(),
                namespaced: kind.namespaced,
                subresources: kind.subresources.iter().map(|name| subresource(name, &own, kind.name)).collect(),
                short_names: kind.short_names.iter().copied().map(Str::new_static).collect(),
                categories: categories(self.name, kind.plural).iter().copied().map(Str::new_static).collect(),
                scale: None,
                origin: self.origin,
                stored: kind.stored,
            }
        })
    }
}

/// What `kubectl get all` lists, and `kubectl get kyverno`.
fn categories(group: &str, plural: &str) -> &'static [&'static str] {
    match (group, plural) {
        ("", "pods" | "services" | "replicationcontrollers")
        | ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("batch", "jobs" | "cronjobs")
        | ("autoscaling", "horizontalpodautoscalers") => &["all"],
        ("kyverno.io" | "policies.kyverno.io", _) => &["kyverno"],
        _ => &[],
    }
}

/// What is sent to a subresource: most take the object itself.
pub(super) fn subresource(name: &str, api_version: &Str, kind: &str) -> Subresource {
    let (api_version, kind) = match (kind, name) {
        (_, "scale") => (Str::new_static("autoscaling/v1"), "Scale"),
        (_, "eviction") => (Str::new_static("policy/v1"), "Eviction"),
        (_, "token") => (Str::new_static("authentication.k8s.io/v1"), "TokenRequest"),
        (_, "binding") => (Str::new_static("v1"), "Binding"),
        ("Pod", "attach") => (api_version.clone(), "PodAttachOptions"),
        ("Pod", "exec") => (api_version.clone(), "PodExecOptions"),
        ("Pod", "portforward") => (api_version.clone(), "PodPortForwardOptions"),
        ("Pod", "proxy") => (api_version.clone(), "PodProxyOptions"),
        ("Node", "proxy") => (api_version.clone(), "NodeProxyOptions"),
        ("Service", "proxy") => (api_version.clone(), "ServiceProxyOptions"),
        _ => (api_version.clone(), kind),
    };
    Subresource { name: name.into(), api_version, kind: kind.into() }
}
