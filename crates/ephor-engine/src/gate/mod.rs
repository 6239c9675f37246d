//! The one gate between a policy and the outside: what a policy may ask for.
//!
//! A namespaced policy reads objects of its own namespace and nothing else: no `ConfigMaps` of others, no
//! cluster-scoped objects, no services. Its own Namespace is cluster-scoped too: only CEL reads it, as
//! `namespaceObject`, in the fields that Kubernetes declares. A fetch that has passed is an [`AllowedFetch`], and
//! executors take nothing else.

mod path;
#[cfg(test)]
mod tests;
mod url;

use crate::fetch::Fetch;
use crate::policy::HttpMethod;
use crate::review::Effects;

pub use path::{ApiPath, InvalidPath, ObjectsPath, Route};
pub use url::{Piece, assemble};

/// A fetch that its policy may make. Only [`allow`] makes one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AllowedFetch(Fetch);

impl AllowedFetch {
    /// The question.
    pub fn fetch(&self) -> &Fetch {
        &self.0
    }

    /// The question, taken out.
    pub fn into_fetch(self) -> Fetch {
        self.0
    }
}

/// Why a policy may not ask.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The thing is in another namespace.
    #[error("a Policy of namespace `{own}` may not read {what} in namespace `{other}`")]
    ForeignNamespace {
        /// The kind of thing.
        what: &'static str,
        /// The policy's namespace.
        own: String,
        /// The other namespace.
        other: String,
    },
    /// The API path leaves the namespace.
    #[error("path `{path}` is not under `/namespaces/{own}`, which is all that a Policy of that namespace may read")]
    ForeignPath {
        /// The path.
        path: String,
        /// The policy's namespace.
        own: String,
    },
    /// A part of an object would act with Ephor's rights on what the object stands for.
    #[error("a namespaced Policy may not call `{path}`, which passes the call on to a Pod, Service or Node")]
    Proxy {
        /// The path.
        path: String,
    },
    /// A namespaced policy would write with Ephor's rights.
    #[error("a namespaced Policy may not POST to `{path}`: it may only ask for a LocalSubjectAccessReview")]
    Post {
        /// The path.
        path: String,
    },
    /// A namespace or name is more than one segment of a path.
    #[error("`{name}` is no name of an object: a name has no `/` or `%` and is not `.` or `..`")]
    OddName {
        /// The name.
        name: String,
    },
    /// A look-up of a name from a namespaced policy: the servers that answer it would learn what the name says.
    #[error("a namespaced Policy may not look up names (`{name}`)")]
    LookUp {
        /// The name.
        name: String,
    },
    /// What is asked for below an object is a call to what runs there, and its answer is not an object.
    #[error("`{kind}` cannot be read: it connects to what the object stands for")]
    Connection {
        /// The kind with its subresource.
        kind: String,
    },
    /// Something may change by the call.
    #[error("`{address}` is not called in a dry run: a POST may change something")]
    DryRun {
        /// The path or URL.
        address: String,
    },
    /// Something may change by the call, each time that what exists is scanned.
    #[error("`{address}` is not called by scans: a POST may change something")]
    Scan {
        /// The path.
        address: String,
    },
    /// HTTP from a namespaced policy.
    #[error("a namespaced Policy may not call services")]
    Service,
}

/// Who asks, and for what. The default is a cluster-wide policy and a request that is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asker<'a> {
    /// The namespace of the policy; `None`: a cluster-wide policy.
    pub namespace: Option<&'a str>,
    /// Whether what is asked may change anything.
    pub effects: Effects,
}

/// Whether this fetch may be made.
pub fn allow(fetch: Fetch, asker: Asker<'_>) -> Result<AllowedFetch, Refused> {
    check_names(&fetch)?;
    if let Some(own) = asker.namespace {
        check_own(&fetch, own)?;
    }
    check_effects(&fetch, asker.effects)?;
    Ok(AllowedFetch(fetch))
}

/// Whether a fetch changes no more than it may. Reviews of the API server are posted and answered, and change nothing.
fn check_effects(fetch: &Fetch, effects: Effects) -> Result<(), Refused> {
    match (effects, fetch) {
        (Effects::Real, _) => Ok(()),
        (_, Fetch::Api { method: HttpMethod::Post, path, .. }) if path.is_review() => Ok(()),
        (Effects::Scan, Fetch::Api { method: HttpMethod::Post, path, .. }) => {
            Err(Refused::Scan { address: path.to_string() })
        }
        (Effects::DryRun, Fetch::Api { method: HttpMethod::Post, path, .. }) => {
            Err(Refused::DryRun { address: path.to_string() })
        }
        (Effects::DryRun, Fetch::Service { method: HttpMethod::Post, url, .. }) => {
            Err(Refused::DryRun { address: url.to_string() })
        }
        _ => Ok(()),
    }
}

/// Whether a fetch names objects: an executor puts the names into paths. Those that are empty it refuses itself.
fn check_names(fetch: &Fetch) -> Result<(), Refused> {
    if let Fetch::Object { kind, .. } = fetch
        && let Some((_, subresource)) = kind.split_once('/')
        && path::connects(subresource)
    {
        return Err(Refused::Connection { kind: kind.escape_debug().to_string() });
    }
    let names = match fetch {
        Fetch::ConfigMap { namespace, name } | Fetch::Object { namespace, name, .. } => [namespace.as_str(), name],
        Fetch::Objects { namespace, .. } => [namespace.as_str(), ""],
        Fetch::NamespaceLabels { name } | Fetch::Namespace { name } => [name.as_str(), ""],
        Fetch::Parameters { namespace, name, .. } => {
            [namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default()]
        }
        Fetch::Api { .. } | Fetch::Service { .. } | Fetch::Global { .. } | Fetch::Image { .. } | Fetch::Host { .. } => {
            return Ok(());
        }
    };
    match names.into_iter().find(|name| !name.is_empty() && !url::is_name(name)) {
        Some(name) => Err(Refused::OddName { name: name.escape_debug().to_string() }),
        None => Ok(()),
    }
}

fn check_own(fetch: &Fetch, own: &str) -> Result<(), Refused> {
    let foreign = |what, other: &str| {
        if other == own {
            Ok(())
        } else {
            Err(Refused::ForeignNamespace { what, own: own.to_owned(), other: other.to_owned() })
        }
    };
    match fetch {
        Fetch::ConfigMap { namespace, .. } => foreign("ConfigMaps", namespace),
        Fetch::Object { namespace, .. } | Fetch::Objects { namespace, .. } => foreign("objects", namespace),
        Fetch::Namespace { name } => foreign("Namespaces", name),
        Fetch::Parameters { namespace, home, .. } => foreign("parameters", namespace.as_deref().unwrap_or(home)),
        Fetch::Service { .. } => Err(Refused::Service),
        Fetch::Api { method, path, .. } => check_own_path(*method, path, own),
        Fetch::Host { name } => Err(Refused::LookUp { name: name.escape_debug().to_string() }),
        // The engine itself asks for labels of namespaces; global entries are shared by intent.
        Fetch::Global { .. } | Fetch::Image { .. } | Fetch::NamespaceLabels { .. } => Ok(()),
    }
}

fn check_own_path(method: HttpMethod, path: &ApiPath, own: &str) -> Result<(), Refused> {
    if method == HttpMethod::Get && path.is_discovery() {
        return Ok(());
    }
    let Some(objects) = path.objects().filter(|objects| objects.namespace.as_deref() == Some(own)) else {
        return Err(Refused::ForeignPath { path: path.to_string(), own: own.to_owned() });
    };
    if objects.below.first().is_some_and(|below| below == "proxy") {
        return Err(Refused::Proxy { path: path.to_string() });
    }
    if method == HttpMethod::Post && !path.is_review() {
        return Err(Refused::Post { path: path.to_string() });
    }
    Ok(())
}
