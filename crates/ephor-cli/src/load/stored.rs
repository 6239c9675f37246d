//! Policies that a cluster has stored.
//!
//! Each is printed as YAML, so that messages about it quote lines as those about a file do. The file is called after
//! the object: `ClusterPolicy/require-labels`, `Policy/shop/limits`.

use std::sync::Arc;

use ephor_cluster::query::Filter;
use ephor_cluster::{Cluster, ClusterError, Discovery, ListQuery, Resource, object};
use ephor_engine::policy::is_own_group;
use ephor_expr::Value;
use ephor_expr::yaml::to_yaml;

use super::policies::{LoadedPolicies, is_policy_kind, load_file};
use crate::locate::SourceFile;

/// How many policies are read at once: they are long.
const PAGE: usize = 100;

/// Loads what a cluster has stored: policies, exceptions and global context entries; of a namespace only those that
/// concern it. What is wrong with one is a finding.
pub fn load_stored(cluster: &dyn Cluster, namespace: Option<&str>) -> Result<LoadedPolicies, ClusterError> {
    let served = cluster.discovery()?;
    let mut loaded = LoadedPolicies::for_served(Arc::clone(&served));
    for resource in policy_kinds(&served) {
        let namespace = namespace.filter(|_| resource.namespaced).map(Into::into);
        let mut query = ListQuery { filter: Filter { namespace, ..Filter::default() }, ..ListQuery::all().limit(PAGE) };
        loop {
            let page = cluster.list(&resource, &query)?;
            for document in page.items {
                load_file(&Arc::new(source(document)), &mut loaded);
            }
            match page.continue_token {
                Some(token) => query.continue_token = Some(token),
                None => break,
            }
        }
    }
    Ok(loaded)
}

/// The kinds of policies that the cluster serves, each in its preferred version, in the order of their names.
fn policy_kinds(served: &Discovery) -> Vec<Resource> {
    let mut kinds: Vec<Resource> = Vec::new();
    for resource in served.iter().filter(|r| is_own_group(&r.group) && r.stored) {
        let known = |k: &Resource| k.group == resource.group && k.kind == resource.kind;
        if is_policy_kind(&resource.kind) && !kinds.iter().any(known) {
            kinds.push(resource.clone());
        }
    }
    kinds.sort_by(|a, b| (&a.group, &a.kind).cmp(&(&b.group, &b.kind)));
    kinds
}

/// A stored object as its author wrote it, as far as that is known: without what servers and kubectl put there.
fn source(mut document: Value) -> SourceFile {
    let kind = document.str_at(&["kind"]).unwrap_or_default().to_owned();
    let (namespace, name) = (object::namespace(&document).to_owned(), object::name(&document).to_owned());
    for key in ["uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"] {
        object::unset(&mut document, key);
    }
    if let Some(members) = document.as_object_mut() {
        members.remove("status");
        if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut)
            && let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    let parts = [kind.as_str(), &namespace, &name].into_iter().filter(|part| !part.is_empty());
    SourceFile { name: parts.collect::<Vec<_>>().join("/"), text: to_yaml(&document) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_policy_reads_as_it_was_written() {
        let stored = r#"{"apiVersion":"kyverno.io/v1","kind":"Policy","metadata":{"name":"p","namespace":"n","uid":"u",
            "resourceVersion":"7","generation":2,"creationTimestamp":"t","labels":{"a":"b"},
            "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","kept":"yes"}},
            "spec":{"rules":[]},"status":{"ready":true}}"#;
        let source = source(Value::from_json(stored).unwrap());
        assert_eq!(source.name, "Policy/n/p");
        insta::assert_snapshot!(source.text, @r#"
        apiVersion: kyverno.io/v1
        kind: Policy
        metadata:
          annotations:
            kept: "yes"
          labels:
            a: b
          name: p
          namespace: "n"
        spec:
          rules: []
        "#);
    }
}
