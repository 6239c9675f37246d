//! The one gate between a policy and the outside (lessons 23): what a policy may ask for.
//!
//! A namespaced policy sees its own namespace and nothing else: no other `ConfigMaps`, no cluster-wide API paths, no
//! services. A fetch that has passed is an [`AllowedFetch`], and executors take nothing else.

use crate::fetch::Fetch;

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
    /// The path is not a plain absolute path.
    #[error("`{path}` is not a plain path: it must begin with `/` and hold no `..`, `//`, backslash or encoded slash")]
    OddPath {
        /// The path.
        path: String,
    },
    /// HTTP from a namespaced policy.
    #[error("a namespaced Policy may not call services")]
    Service,
}

/// Whether a policy of `namespace` (`None`: a cluster-wide policy) may make this fetch.
pub fn allow(fetch: Fetch, namespace: Option<&str>) -> Result<AllowedFetch, Refused> {
    if let Fetch::Api { path, .. } = &fetch {
        check_path(path)?;
    }
    if let Some(own) = namespace {
        check_own(&fetch, own)?;
    }
    Ok(AllowedFetch(fetch))
}

fn check_path(path: &str) -> Result<(), Refused> {
    let plain = path.split('?').next().unwrap_or_default();
    let lower = plain.to_ascii_lowercase();
    let odd = !plain.starts_with('/')
        || plain.contains("//")
        || plain.contains('\\')
        || plain.contains('#')
        || plain.chars().any(char::is_control)
        || ["%2f", "%2e", "%5c", "%25"].iter().any(|code| lower.contains(code))
        || plain.split('/').any(|part| part == ".." || part == ".");
    if odd { Err(Refused::OddPath { path: path.to_owned() }) } else { Ok(()) }
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
        Fetch::Service { .. } => Err(Refused::Service),
        Fetch::Api { path, .. } => {
            let plain = path.split('?').next().unwrap_or_default();
            let mut parts = plain.split('/').skip_while(|part| *part != "namespaces").skip(1);
            // A further segment after the namespace is needed: `/api/v1/namespaces/own` itself is cluster-scoped data.
            if parts.next() == Some(own) {
                Ok(())
            } else {
                Err(Refused::ForeignPath { path: path.to_string(), own: own.to_owned() })
            }
        }
        // Namespace labels and host names are facts of the engine's own making; global entries are shared by intent.
        Fetch::Global { .. } | Fetch::Image { .. } | Fetch::Host { .. } | Fetch::NamespaceLabels { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::HttpMethod;

    fn api(path: &str) -> Fetch {
        Fetch::Api { method: HttpMethod::Get, path: path.into(), body: None }
    }

    #[test]
    fn a_namespaced_policy_reads_nothing_foreign() {
        let foreign = [
            Fetch::ConfigMap { namespace: "other".into(), name: "c".into() },
            api("/api/v1/namespaces/other/configmaps/c"),
            api("/api/v1/namespaces"),
            api("/api/v1/nodes"),
            api("/api/v1/nodes/namespaces/"),
            api("/api/v1/namespaces/own/../other/secrets"),
            api("/api/v1/namespaces/own%2f..%2fother/secrets"),
            api("/api/v1/namespaces/owner/secrets?x=/namespaces/own/"),
            Fetch::Service {
                method: HttpMethod::Get,
                url: "http://x/namespaces/own".into(),
                headers: vec![],
                body: None,
                ca_bundle: None,
            },
            Fetch::Object { api_version: "v1".into(), kind: "Secret".into(), namespace: "".into(), name: "s".into() },
            Fetch::Objects { api_version: "v1".into(), kind: "Secret".into(), namespace: "".into() },
        ];
        for fetch in foreign {
            assert!(allow(fetch.clone(), Some("own")).is_err(), "{fetch:?}");
        }
    }

    #[test]
    fn a_namespaced_policy_reads_its_own() {
        for fetch in [
            Fetch::ConfigMap { namespace: "own".into(), name: "c".into() },
            api("/api/v1/namespaces/own/configmaps/c"),
            api("/apis/apps/v1/namespaces/own/deployments?limit=1"),
        ] {
            assert!(allow(fetch.clone(), Some("own")).is_ok(), "{fetch:?}");
        }
    }

    #[test]
    fn odd_paths_are_refused_for_everybody() {
        for path in ["api/v1/nodes", "//api", "/api/../x", "/api/%2e%2e/x", "/a\\b"] {
            assert!(allow(api(path), None).is_err(), "{path}");
        }
        assert!(allow(api("/api/v1/nodes"), None).is_ok());
    }
}
