//! Paths of the Kubernetes API, answered from objects at hand.

use ephor_engine::fetch::Fact;
use ephor_expr::Value;

/// What a GET asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApiPath<'p> {
    /// `v1`, `apps/v1`.
    api_version: &'p str,
    /// Only in this namespace.
    namespace: Option<&'p str>,
    /// Plural name of the kind, lower case.
    resource: &'p str,
    /// One object; otherwise a list.
    name: Option<&'p str>,
}

impl<'p> ApiPath<'p> {
    /// Reads `/api/v1/[namespaces/NS/]RESOURCE[/NAME]` or `/apis/GROUP/VERSION/…`. Queries and subresources are not
    /// understood.
    pub(super) fn parse(path: &'p str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.splitn(2, '/');
        let (root, rest) = (parts.next()?, parts.next()?);
        let version_parts = match root {
            "api" => 1,
            "apis" => 2,
            _ => return None,
        };
        let mut end = rest.match_indices('/').map(|(i, _)| i);
        let end = end.nth(version_parts - 1)?;
        let (api_version, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
        let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
        if path.contains('?') || parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        let (namespace, resource, name) = match *parts.as_slice() {
            ["namespaces", name] => (None, "namespaces", Some(name)),
            [resource] => (None, resource, None),
            [resource, name] if resource != "namespaces" => (None, resource, Some(name)),
            ["namespaces", namespace, resource] => (Some(namespace), resource, None),
            ["namespaces", namespace, resource, name] => (Some(namespace), resource, Some(name)),
            _ => return None,
        };
        Some(Self { api_version, namespace, resource, name })
    }

    /// All objects of a resource.
    pub(super) fn of(api_version: &'p str, resource: &'p str, namespace: Option<&'p str>) -> Self {
        Self { api_version, namespace, resource, name: None }
    }

    /// The objects that are meant.
    pub(super) fn select<'o>(&'o self, objects: &'o [Value]) -> impl Iterator<Item = &'o Value> {
        objects.iter().filter(|object| {
            let text = |keys: &[&str]| object.str_at(keys).unwrap_or_default();
            text(&["apiVersion"]) == self.api_version
                && plural(text(&["kind"])) == self.resource
                && self.namespace.is_none_or(|namespace| text(&["metadata", "namespace"]) == namespace)
                && self.name.is_none_or(|name| text(&["metadata", "name"]) == name)
        })
    }

    /// The answer of an API server that has `objects`.
    pub(super) fn answer(&self, objects: &[Value]) -> Fact {
        let mut found = self.select(objects);
        if let Some(name) = self.name {
            let missing = || Fact::Failed(format!("{} \"{name}\" not found", self.resource));
            return found.next().map_or_else(missing, |object| Fact::Found(object.clone()));
        }
        let items: Vec<Value> = found.cloned().collect();
        let kind = items.first().and_then(|item| item.str_at(&["kind"])).unwrap_or_default();
        Fact::Found(Value::from([
            ("apiVersion", self.api_version.into()),
            ("kind", format!("{kind}List").into()),
            ("metadata", Value::from([("resourceVersion", "".into())])),
            ("items", Value::array(items)),
        ]))
    }
}

/// The name of a kind in paths, by the rule that all kinds of Kubernetes follow.
fn plural(kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    if kind == "endpoints" {
        return kind;
    }
    if let Some(stem) = kind.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        return format!("{stem}ies");
    }
    if ["s", "x", "ch", "sh", "z"].iter().any(|end| kind.ends_with(end)) { kind + "es" } else { kind + "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_kinds_namespaces_and_objects() {
        let parsed = |path| ApiPath::parse(path).map(|p| (p.api_version, p.namespace, p.resource, p.name));
        assert_eq!(parsed("/api/v1/pods"), Some(("v1", None, "pods", None)));
        assert_eq!(parsed("/api/v1/namespaces"), Some(("v1", None, "namespaces", None)));
        assert_eq!(parsed("/api/v1/namespaces/a"), Some(("v1", None, "namespaces", Some("a"))));
        assert_eq!(parsed("/api/v1/namespaces/a/pods/p"), Some(("v1", Some("a"), "pods", Some("p"))));
        let ingresses = Some(("networking.k8s.io/v1", Some("a"), "ingresses", None));
        assert_eq!(parsed("/apis/networking.k8s.io/v1/namespaces/a/ingresses"), ingresses);
        for odd in ["/version", "/api/v1", "/api/v1/pods?limit=1", "/api/v1/namespaces/a/pods/p/log", "api/v1/pods"] {
            assert_eq!(parsed(odd), None, "{odd}");
        }
    }

    #[test]
    fn kinds_have_the_plurals_of_kubernetes() {
        for (kind, name) in [
            ("Pod", "pods"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("Gateway", "gateways"),
            ("Endpoints", "endpoints"),
            ("PodDisruptionBudget", "poddisruptionbudgets"),
            ("StorageClass", "storageclasses"),
        ] {
            assert_eq!(plural(kind), name);
        }
    }
}
