//! What a URL path of the Kubernetes API is about.

use ephor_expr::scalar::percent;

/// The parts of a path; percent-encoding is undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApiPath {
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`.
    Resources { group: String, version: String },
    /// A collection, an object, or something below an object.
    Objects(ObjectPath),
}

/// `[namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE]]` below a group and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// Reads a path without its query. `None` for what no API server serves.
pub(crate) fn parse(path: &str) -> Option<ApiPath> {
    let parts: Vec<String> =
        path.trim_matches('/').split('/').map(|part| decode(part, false)).collect::<Option<_>>()?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    if parts.iter().any(|part| part.is_empty()) {
        return None;
    }
    let (group, version, rest) = match parts.as_slice() {
        ["version"] => return Some(ApiPath::Version),
        ["healthz" | "livez" | "readyz"] => return Some(ApiPath::Health),
        ["api"] => return Some(ApiPath::Core),
        ["apis"] => return Some(ApiPath::Groups),
        ["apis", group] => return Some(ApiPath::Group((*group).to_owned())),
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (group, version) = (group.to_owned(), version.to_owned());
    let (namespace, rest) = match rest {
        [] => return Some(ApiPath::Resources { group, version }),
        // `namespaces/x/status` is below the Namespace x; any other third part is a kind within it.
        ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
        _ => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some((*name).to_owned()), None),
        [plural, name, below @ ..] => (plural, Some((*name).to_owned()), Some(below.join("/"))),
        [] => return None,
    };
    Some(ApiPath::Objects(ObjectPath { group, version, namespace, plural: (*plural).to_owned(), name, subresource }))
}

/// Undoes percent-encoding, and in queries `+` for a space. `None` if the result is no text.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    String::from_utf8(percent::decode(text, plus_is_space)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(path: &str) -> String {
        match parse(path) {
            Some(ApiPath::Objects(o)) => {
                let part = |p: Option<String>| p.unwrap_or_else(|| "-".to_owned());
                format!(
                    "{}/{} {} {} {} {}",
                    o.group,
                    o.version,
                    part(o.namespace),
                    o.plural,
                    part(o.name),
                    part(o.subresource)
                )
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn object_paths() {
        for (path, want) in [
            ("/api/v1/pods", "/v1 - pods - -"),
            ("/api/v1/pods/", "/v1 - pods - -"),
            ("api/v1/pods", "/v1 - pods - -"),
            ("/api/v1/namespaces", "/v1 - namespaces - -"),
            ("/api/v1/namespaces/a", "/v1 - namespaces a -"),
            ("/api/v1/namespaces/a/status", "/v1 - namespaces a status"),
            ("/api/v1/namespaces/a/pods", "/v1 a pods - -"),
            ("/api/v1/namespaces/a/pods/b", "/v1 a pods b -"),
            ("/api/v1/namespaces/a/pods/b/log", "/v1 a pods b log"),
            ("/api/v1/nodes/n", "/v1 - nodes n -"),
            ("/api/v1/nodes/n/proxy/x/y", "/v1 - nodes n proxy/x/y"),
            ("/apis/apps/v1/namespaces/a/deployments/b/scale", "apps/v1 a deployments b scale"),
            ("/apis/g.io/v1/things/system%3Aadmin", "g.io/v1 - things system:admin -"),
        ] {
            assert_eq!(objects(path), want, "{path}");
        }
    }

    #[test]
    fn other_paths() {
        let resources = |group: &str| ApiPath::Resources { group: group.to_owned(), version: "v1".to_owned() };
        for (path, want) in [
            ("/version", Some(ApiPath::Version)),
            ("/readyz", Some(ApiPath::Health)),
            ("/api", Some(ApiPath::Core)),
            ("/apis", Some(ApiPath::Groups)),
            ("/apis/apps", Some(ApiPath::Group("apps".to_owned()))),
            ("/api/v1", Some(resources(""))),
            ("/apis/apps/v1", Some(resources("apps"))),
            ("", None),
            ("/", None),
            ("/metrics", None),
            ("/api/v1//pods", None),
            ("/api/v1/namespaces//pods", None),
            ("/api/v1/pods/%zz", None),
            ("/api/v1/pods/%ff", None),
        ] {
            assert_eq!(parse(path), want, "{path}");
        }
    }
}
