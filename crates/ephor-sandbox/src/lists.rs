//! The lists of the live view: policies, and generated objects with their lineage.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ephor_background::plan::claim::{Claim, SOURCE};
use ephor_cluster::query::Filter;
use ephor_cluster::{Cluster as _, LabelSelector, ListQuery, MemoryCluster, Resource, object, raw};
use ephor_engine::redact::Redactor;
use ephor_expr::yaml::to_yaml;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::explain::name_of;
use ephor_runtime::policies::PolicyStore;
use ephor_runtime::threads;

use crate::live::{Live, Topic};

/// How often the lists are looked at while things change.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Keeps the lists shown.
pub(super) fn show(cluster: &MemoryCluster, live: &Live, policies: &PolicyStore, stop: &CancellationToken) {
    let (cluster, live, policies, stop) = (cluster.clone(), live.clone(), policies.clone(), stop.clone());
    threads::spawn("live view", threads::LARGE, &stop.clone(), move || {
        let mut seen = 0;
        while !stop.is_cancelled() {
            let revision = cluster.wait_for_change(seen, POLL_INTERVAL);
            if revision != seen {
                seen = revision;
                live.show(Topic::Policies, &stored(&policies));
                live.show(Topic::Objects, &generated(&cluster));
                stop.wait(POLL_INTERVAL);
            }
        }
    });
}

/// The object at a path of the API, as YAML without values of Secrets.
pub(super) fn text_of(cluster: &MemoryCluster, path: &str) -> Option<String> {
    let target = raw::target(&*cluster.discovery().ok()?, path)?;
    let name = target.name.as_deref()?;
    let mut object = cluster.get(&target.resource, target.namespace.as_deref(), name).ok()?;
    object::unset(&mut object, "managedFields");
    Some(Redactor::of([&object]).text(&to_yaml(&object)).into_owned())
}

/// All policies, with what their rules do.
fn stored(policies: &PolicyStore) -> Value {
    let snapshot = policies.snapshot();
    let path = |document: &Value| {
        let text = |key: &str| document.str_at(&[key]).unwrap_or_default();
        path_of(&Resource::guess(text("apiVersion"), text("kind")), document)
    };
    let shown = snapshot.policies.values().map(|policy| {
        let rules = policy.document.at(&["spec", "rules"]).and_then(Value::as_array).unwrap_or_default();
        let findings: Vec<String> = policy.findings.iter().map(ToString::to_string).collect();
        Value::from([
            ("findings", Value::from(findings)),
            ("kind", Value::from(policy.document.str_at(&["kind"]).unwrap_or_default())),
            ("name", Value::from(policy.key.to_string())),
            ("path", Value::from(path(&policy.document))),
            ("ready", Value::Bool(policy.program.is_some())),
            ("rules", Value::array(rules.iter().map(rule).collect())),
        ])
    });
    Value::array(shown.collect())
}

fn rule(rule: &Value) -> Value {
    let does = ["validate", "mutate", "generate", "verifyImages"].into_iter().find(|key| rule.get(key).is_some());
    Value::from([
        ("does", Value::from(does.unwrap_or_default())),
        ("name", rule.get("name").cloned().unwrap_or_default()),
    ])
}

/// All objects that rules have made, with whom they come from.
fn generated(cluster: &MemoryCluster) -> Value {
    let Ok(discovery) = cluster.discovery() else { return Value::array(Vec::new()) };
    let Ok(selector) = LabelSelector::parse("app.kubernetes.io/managed-by=kyverno") else {
        return Value::array(Vec::new());
    };
    let query = ListQuery::all().labels(selector).metadata_only();
    let mut seen = BTreeSet::new();
    let mut names = Names { cluster, known: BTreeMap::new() };
    let mut shown = Vec::new();
    for resource in discovery.iter().filter(|r| r.stored && seen.insert((r.group.clone(), r.plural.clone()))) {
        let Ok(list) = cluster.list(resource, &query) else { continue };
        for object in &list.items {
            let Some(claim) = Claim::of(object) else { continue };
            let owner = &claim.owner;
            let trigger = Reference {
                api_version: claim.trigger_api_version.clone(),
                kind: claim.trigger_kind.clone(),
                namespace: claim.trigger_namespace.clone(),
                uid: owner.trigger.clone(),
            };
            shown.push(Value::from([
                ("kind", Value::from(resource.kind.clone())),
                ("name", Value::from(object::name(object))),
                ("namespace", Value::from(object::namespace(object))),
                ("path", Value::from(path_of(resource, object))),
                ("policy", Value::from(owner.policy.to_string())),
                ("rule", Value::from(owner.rule.clone())),
                ("source", Value::from(names.of(&Reference::source(object)))),
                ("trigger", Value::from(names.of(&trigger))),
            ]));
        }
    }
    Value::array(shown)
}

/// The path of an object in the API.
fn path_of(resource: &Resource, object: &Value) -> String {
    let namespace = Some(object::namespace(object)).filter(|_| resource.namespaced);
    resource.path(namespace, Some(object::name(object)))
}

/// An object that labels speak of.
struct Reference {
    api_version: Str,
    kind: Str,
    namespace: Str,
    uid: Str,
}

impl Reference {
    /// What an object was copied from; of one that is no copy, nothing.
    fn source(object: &Value) -> Self {
        let labels = object.at(&["metadata", "labels"]);
        let label = |part: &str| {
            let key = format!("{SOURCE}{part}");
            Str::new(labels.and_then(|labels| labels.get(&key)).and_then(Value::as_str).unwrap_or_default())
        };
        Self {
            api_version: ephor_cluster::resource::join_api_version(&label("group"), &label("version")),
            kind: label("kind"),
            namespace: label("namespace"),
            uid: label("uid"),
        }
    }
}

/// Finds the names of objects: labels hold UIDs.
struct Names<'n> {
    cluster: &'n MemoryCluster,
    /// The objects of a kind in a namespace by UID, once looked at.
    known: BTreeMap<(Str, Str, Str), Map>,
}

impl Names<'_> {
    /// The object as people name it; empty for none.
    fn of(&mut self, reference: &Reference) -> String {
        let Reference { api_version, kind, namespace, uid } = reference;
        if kind.is_empty() {
            return String::new();
        }
        let key = (api_version.clone(), kind.clone(), namespace.clone());
        let known = self.known.entry(key).or_insert_with(|| by_uid(self.cluster, reference));
        known.get(uid).and_then(Value::as_str).map_or_else(|| format!("{kind} {namespace} (gone)"), str::to_owned)
    }
}

fn by_uid(cluster: &MemoryCluster, reference: &Reference) -> Map {
    let Ok(resource) = cluster.resolve(&reference.api_version, &reference.kind) else { return Map::new() };
    let namespace = Some(reference.namespace.clone()).filter(|name| resource.namespaced && !name.is_empty());
    let query = ListQuery { filter: Filter { namespace, ..Filter::default() }, ..ListQuery::all() };
    let found = cluster.list(&resource, &query.metadata_only()).map(|list| list.items).unwrap_or_default();
    found.iter().map(|object| (Str::new(object::text(object, "uid")), Value::from(name_of(object)))).collect()
}

#[cfg(test)]
mod tests {
    use ephor_cluster::WriteOptions;
    use ephor_cluster::memory::Options;

    use super::*;

    #[test]
    fn generated_objects_are_shown_with_whom_they_come_from() {
        let cluster = MemoryCluster::new(Options::server());
        let create = |kind: &str, namespace: &str, labels: Value| {
            let metadata =
                Value::from([("labels", labels), ("name", Value::from("a")), ("namespace", Value::from(namespace))]);
            let resource = cluster.resolve("v1", kind).unwrap();
            cluster.create(&resource, Value::from([("metadata", metadata)]), &WriteOptions::default()).unwrap()
        };
        let trigger = create("ConfigMap", "default", Value::object(Map::new()));
        let labels: Map = [
            ("app.kubernetes.io/managed-by", "kyverno"),
            ("generate.kyverno.io/policy-name", "copy"),
            ("generate.kyverno.io/rule-name", "r"),
            ("generate.kyverno.io/source-kind", "ConfigMap"),
            ("generate.kyverno.io/source-namespace", "default"),
            ("generate.kyverno.io/source-uid", "nobody"),
            ("generate.kyverno.io/source-version", "v1"),
            ("generate.kyverno.io/trigger-kind", "ConfigMap"),
            ("generate.kyverno.io/trigger-namespace", "default"),
            ("generate.kyverno.io/trigger-uid", object::text(&trigger, "uid")),
            ("generate.kyverno.io/trigger-version", "v1"),
        ]
        .into_iter()
        .map(|(key, value)| (Str::new(key), Value::from(value)))
        .collect();
        create("Secret", "kube-public", Value::object(labels));
        assert_eq!(
            generated(&cluster).to_json(),
            r#"[{"kind":"Secret","name":"a","namespace":"kube-public","path":"/api/v1/namespaces/kube-public/secrets/a","policy":"copy","rule":"r","source":"ConfigMap default (gone)","trigger":"ConfigMap default/a"}]"#
        );
    }
}
