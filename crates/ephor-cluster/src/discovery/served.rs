//! The table of a real cluster, from the discovery documents of its server.
//!
//! A server answers everything at once (`APIGroupDiscoveryList`, "aggregated" discovery, since Kubernetes 1.27), or
//! one group and version at a time (`APIResourceList`).

use std::sync::Arc;

use ephor_expr::{Str, Value};

use super::Discovery;
use crate::resource::{Origin, Resource, Subresource, join_api_version, split_api_version};

impl Discovery {
    /// Adds the kinds of an `APIGroupDiscoveryList`. Versions whose kinds the server did not get to know itself (of
    /// an extension server that is down) are left out.
    pub fn add_groups(&mut self, list: &Value) {
        for group in items(list, "items") {
            let name = group.str_at(&["metadata", "name"]).unwrap_or_default();
            for version in items(group, "versions") {
                let number = version.str_at(&["version"]).unwrap_or_default();
                for resource in items(version, "resources").iter().filter_map(|r| aggregated(name, number, r)) {
                    self.add(resource);
                }
            }
        }
    }

    /// Adds the kinds of an `APIResourceList`.
    pub fn add_group_version(&mut self, list: &Value) {
        let (group, version) = split_api_version(list.str_at(&["groupVersion"]).unwrap_or_default());
        let listed = items(list, "resources");
        for described in listed {
            if let Some(resource) = single(group, version, described, listed) {
                self.add(resource);
            }
        }
    }
}

fn aggregated(group: &str, version: &str, described: &Value) -> Option<Resource> {
    let plural = text(described, "resource")?;
    let kind = Str::new(described.str_at(&["responseKind", "kind"]).filter(|k| !k.is_empty())?);
    let own = join_api_version(group, version);
    let subresources = items(described, "subresources").iter().filter_map(|below| {
        let response = |key| below.str_at(&["responseKind", key]).filter(|t| !t.is_empty());
        Some(Subresource {
            name: text(below, "subresource")?,
            api_version: match response("version") {
                Some(version) => join_api_version(response("group").unwrap_or_default(), version),
                None => own.clone(),
            },
            kind: response("kind").map_or_else(|| kind.clone(), Str::new),
        })
    });
    Some(Resource {
        group: group.into(),
        version: version.into(),
        singular: text(described, "singularResource").unwrap_or_else(|| kind.to_ascii_lowercase().into()),
        plural,
        namespaced: described.str_at(&["scope"]) == Some("Namespaced"),
        subresources: subresources.collect(),
        short_names: texts(described, "shortNames"),
        categories: texts(described, "categories"),
        scale: None,
        origin: origin(group),
        stored: is_stored(described),
        kind,
    })
}

fn single(group: &str, version: &str, described: &Value, listed: &[Value]) -> Option<Resource> {
    let plural = text(described, "name").filter(|name| !name.contains('/'))?;
    let kind = text(described, "kind")?;
    let own = join_api_version(group, version);
    let subresources = listed.iter().filter_map(|below| {
        let name = below.str_at(&["name"])?.strip_prefix(plural.as_str())?.strip_prefix('/')?;
        Some(Subresource {
            name: name.into(),
            api_version: match text(below, "version") {
                Some(version) => join_api_version(below.str_at(&["group"]).unwrap_or_default(), &version),
                None => own.clone(),
            },
            kind: text(below, "kind").unwrap_or_else(|| kind.clone()),
        })
    });
    Some(Resource {
        group: group.into(),
        version: version.into(),
        singular: text(described, "singularName").unwrap_or_else(|| kind.to_ascii_lowercase().into()),
        namespaced: described.get("namespaced").and_then(Value::as_bool).unwrap_or(false),
        subresources: subresources.collect(),
        short_names: texts(described, "shortNames"),
        categories: texts(described, "categories"),
        scale: None,
        origin: origin(group),
        stored: is_stored(described),
        plural,
        kind,
    })
}

/// A server does not say which kinds are its own. Definitions cannot add kinds to its own groups.
fn origin(group: &str) -> Origin {
    let own = |r: &Resource| r.group == group && r.origin == Origin::BuiltIn;
    if Discovery::kubernetes().iter().any(own) { Origin::BuiltIn } else { Origin::Custom }
}

fn is_stored(described: &Value) -> bool {
    items(described, "verbs").iter().any(|verb| matches!(verb.as_str(), Some("get" | "list")))
}

fn items<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    of.get(key).and_then(Value::as_array).unwrap_or_default()
}

fn text(of: &Value, key: &str) -> Option<Str> {
    of.str_at(&[key]).filter(|t| !t.is_empty()).map(Str::new)
}

fn texts(of: &Value, key: &str) -> Arc<[Str]> {
    items(of, key).iter().filter_map(|t| t.as_str().map(Str::new)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::resources;

    #[test]
    fn what_one_table_documents_another_reads() {
        let built_in = Discovery::kubernetes();
        for (group, version) in [("", "v1"), ("apps", "v1"), ("batch", "v1"), ("rbac.authorization.k8s.io", "v1")] {
            let mut read = Discovery::default();
            read.add_group_version(&resources(&built_in, group, version).unwrap());
            let want: Vec<&Resource> = built_in.iter().filter(|r| r.group == group && r.version == version).collect();
            let mut got: Vec<&Resource> = read.iter().collect();
            got.sort_by_key(|r| want.iter().position(|w| w.plural == r.plural));
            assert_eq!(got, want);
        }
    }

    #[test]
    fn aggregated_documents_carry_everything_of_all_groups() {
        let list = r#"{"items":[
            {"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
              {"resource":"deployments","responseKind":{"group":"apps","kind":"Deployment","version":"v1"},
               "scope":"Namespaced","shortNames":["deploy"],"singularResource":"deployment",
               "subresources":[
                 {"subresource":"scale","responseKind":{"group":"autoscaling","kind":"Scale","version":"v1"},"verbs":["get"]},
                 {"subresource":"status","responseKind":{"group":"apps","kind":"Deployment","version":"v1"},"verbs":["get"]}],
               "verbs":["create","get","list"]}]}]},
            {"metadata":{"name":"example.com"},"versions":[
              {"version":"v2","resources":[{"resource":"boxes","responseKind":{"group":"example.com","kind":"Box","version":"v2"},
                "scope":"Cluster","singularResource":"box","verbs":["get"]},
                {"resource":"askings","responseKind":{"group":"example.com","kind":"Asking","version":"v2"},
                "scope":"Cluster","singularResource":"asking","verbs":["create"]},
                {"resource":"unknown","verbs":["get"]}]},
              {"version":"v1","freshness":"Stale","resources":[]}]}]}"#;
        let mut read = Discovery::default();
        read.add_groups(&Value::from_json(list).unwrap());
        let deployment = read.find("apps/v1", "Deployment").unwrap();
        assert_eq!(deployment.subresource("scale").unwrap().api_version, "autoscaling/v1");
        assert!(deployment.has_status() && deployment.namespaced && deployment.stored);
        assert_eq!((&*deployment.short_names, deployment.origin), ([Str::new("deploy")].as_slice(), Origin::BuiltIn));
        let r#box = read.find("example.com/v2", "Box").unwrap();
        assert_eq!((r#box.namespaced, r#box.origin, r#box.stored), (false, Origin::Custom, true));
        assert!(!read.find("example.com/v2", "Asking").unwrap().stored);
        assert_eq!(read.iter().count(), 3);
    }
}
