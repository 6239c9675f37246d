//! The kinds whose labelled objects can be deleted: those that are served and that the account may list, watch and
//! delete.

use std::collections::BTreeMap;

use ephor_cluster::discovery::priority;
use ephor_cluster::resource::Origin;
use ephor_cluster::{Cluster, ClusterError, Discovery, Resource, WriteOptions};
use ephor_expr::Value;
use ephor_runtime::kinds::GroupKind;

/// What the role does with objects; the rarest permission is asked for first.
const VERBS: [&str; 3] = ["delete", "watch", "list"];

/// The kinds that can be followed now, each in its best version.
pub fn permitted(cluster: &dyn Cluster, discovery: &Discovery) -> Result<BTreeMap<GroupKind, Resource>, ClusterError> {
    let stored = discovery.iter().filter(|resource| resource.stored && resource.origin != Origin::Aggregated);
    // The one kind that an API server lists and does not watch.
    let stored = stored.filter(|resource| !(resource.group.is_empty() && resource.kind == "ComponentStatus"));
    let mut permitted = BTreeMap::new();
    for (kind, resource) in best(stored) {
        if may(cluster, &resource)? {
            permitted.insert(kind, resource);
        }
    }
    Ok(permitted)
}

/// Each kind of these resources, in its best version.
pub(crate) fn best<'r>(resources: impl Iterator<Item = &'r Resource>) -> BTreeMap<GroupKind, Resource> {
    let mut kinds: BTreeMap<GroupKind, Resource> = BTreeMap::new();
    for resource in resources {
        let kind = GroupKind { group: resource.group.clone(), kind: resource.kind.clone() };
        let best = kinds.entry(kind).or_insert_with(|| resource.clone());
        if priority(&resource.version) > priority(&best.version) {
            *best = resource.clone();
        }
    }
    kinds
}

fn may(cluster: &dyn Cluster, resource: &Resource) -> Result<bool, ClusterError> {
    let reviews = cluster.resolve("authorization.k8s.io/v1", "SelfSubjectAccessReview")?;
    for verb in VERBS {
        let attributes = [
            ("group", Value::from(resource.group.clone())),
            ("resource", Value::from(resource.plural.clone())),
            ("verb", Value::from(verb)),
        ];
        let review = Value::from([
            ("apiVersion", Value::from("authorization.k8s.io/v1")),
            ("kind", Value::from("SelfSubjectAccessReview")),
            ("spec", Value::from([("resourceAttributes", Value::from(attributes))])),
        ]);
        let answer = cluster.create(&reviews, review, &WriteOptions::default())?;
        if answer.at(&["status", "allowed"]).and_then(Value::as_bool) != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}
