//! Deployments: one `ReplicaSet` for each template, the present one at full size.

use std::hash::{Hash as _, Hasher as _};

use ephor_cluster::object;
use ephor_expr::{Map, Value};
use rustc_hash::FxHasher;

use super::write::{Controller, condition, number, owned_by};

/// The label that tells the Pods of one template from those of another.
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Brings all Deployments in step.
pub(super) fn reconcile(controller: &Controller) {
    for deployment in controller.list("apps/v1", "Deployment") {
        if !object::is_deleting(&deployment) {
            one(controller, &deployment);
        }
    }
}

fn one(controller: &Controller, deployment: &Value) {
    let template = deployment.at(&["spec", "template"]).cloned().unwrap_or_default();
    let hash = hash_of(&template);
    let name = format!("{}-{hash}", object::name(deployment));
    let wanted = number(deployment, &["spec", "replicas"], 1);
    let sets = controller.controlled("apps/v1", "ReplicaSet", deployment);
    let present = sets.iter().find(|set| object::name(set) == name);
    // A template that comes back is the newest revision again, as `kubectl rollout undo` expects.
    let newest = sets.iter().filter(|set| object::name(set) != name).map(revision).max().unwrap_or_default() + 1;
    let revision = present.map_or(0, revision).max(newest).to_string();
    match present {
        None => {
            let set = replica_set(deployment, &template, &name, &hash, &revision);
            if let Err(error) = controller.create(set) {
                tracing::debug!(%error, name, "a Deployment stays without its ReplicaSet");
            }
        }
        Some(set) => {
            controller.set_spec(set, Value::from([("replicas", Value::Int(wanted))]));
            controller.annotate(set, REVISION, &revision);
        }
    }
    controller.annotate(deployment, REVISION, &revision);
    for old in sets.iter().filter(|set| object::name(set) != name) {
        controller.set_spec(old, Value::from([("replicas", Value::Int(0))]));
    }
    let all: i64 = sets.iter().map(|set| number(set, &["status", "replicas"], 0)).sum();
    let of_present = |key: &str| present.map_or(0, |set| number(set, &["status", key], 0));
    let ready = of_present("readyReplicas");
    let mut conditions = Vec::new();
    if ready >= wanted {
        conditions.push(condition(
            deployment,
            "Available",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ));
    }
    let (reason, message) = match present {
        Some(_) if ready >= wanted => {
            ("NewReplicaSetAvailable", format!("ReplicaSet \"{name}\" has successfully progressed."))
        }
        _ => ("ReplicaSetUpdated", format!("ReplicaSet \"{name}\" is progressing.")),
    };
    conditions.push(condition(deployment, "Progressing", reason, &message));
    let failures = present.and_then(|set| set.at(&["status", "conditions"])).and_then(Value::as_array);
    conditions
        .extend(failures.unwrap_or_default().iter().filter(|c| c.str_at(&["type"]) == Some("ReplicaFailure")).cloned());
    controller.set_status(
        deployment,
        Value::from([
            ("availableReplicas", Value::Int(ready)),
            ("conditions", Value::array(conditions)),
            ("observedGeneration", Value::Int(number(deployment, &["metadata", "generation"], 1))),
            ("readyReplicas", Value::Int(ready)),
            ("replicas", Value::Int(all)),
            ("updatedReplicas", Value::Int(of_present("replicas"))),
        ]),
    );
}

/// Which of a Deployment's templates a `ReplicaSet` has.
fn revision(set: &Value) -> u64 {
    set.str_at(&["metadata", "annotations", REVISION]).and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// A short name for a template, of the letters that Kubernetes uses.
pub(super) fn hash_of(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hasher = FxHasher::default();
    template.to_json().hash(&mut hasher);
    let mut rest = hasher.finish();
    let mut letter = || {
        let index = usize::try_from(rest % LETTERS.len() as u64).unwrap_or_default();
        rest /= LETTERS.len() as u64;
        char::from(LETTERS.get(index).copied().unwrap_or(b'b'))
    };
    (0..10).map(|_| letter()).collect()
}

/// The value with a label in the map at the path.
fn labelled(mut value: Value, path: &[&str], hash: &str) -> Value {
    let Some(map) = value.as_object_mut() else { return value };
    match path {
        [] => {
            map.insert(HASH, hash);
        }
        [key, rest @ ..] => {
            let inner = map.get(key).cloned().unwrap_or_else(|| Value::object(Map::new()));
            map.insert(*key, labelled(inner, rest, hash));
        }
    }
    value
}

fn replica_set(deployment: &Value, template: &Value, name: &str, hash: &str, revision: &str) -> Value {
    let selector = deployment.at(&["spec", "selector"]).cloned().unwrap_or_default();
    let labels = template.at(&["metadata", "labels"]).cloned().unwrap_or_else(|| Value::object(Map::new()));
    let metadata = Value::from([
        ("annotations", Value::from([(REVISION, Value::from(revision))])),
        ("labels", labelled(labels, &[], hash)),
        ("name", Value::from(name)),
        ("namespace", Value::from(object::namespace(deployment))),
        ("ownerReferences", owned_by(deployment)),
    ]);
    let spec = Value::from([
        ("replicas", Value::Int(number(deployment, &["spec", "replicas"], 1))),
        ("selector", labelled(selector, &["matchLabels"], hash)),
        ("template", labelled(template.clone(), &["metadata", "labels"], hash)),
    ]);
    Value::from([
        ("apiVersion", Value::from("apps/v1")),
        ("kind", Value::from("ReplicaSet")),
        ("metadata", metadata),
        ("spec", spec),
    ])
}
