//! `ReplicaSet`s, `StatefulSet`s and `DaemonSet`s: the Pods that they want exist, surplus Pods go, the status counts
//! them.

use ephor_cluster::object;
use ephor_expr::{Map, Str, Value};

use super::deployments::hash_of;
use super::pods::is_ready;
use super::write::{Backoff, Controller, NODE, condition, count, number, owned_by};

/// The label that tells Pods of an old template from those of the present one.
const TEMPLATE: &str = "controller-revision-hash";

/// Brings all `ReplicaSet`s in step.
pub(super) fn replica_sets(controller: &Controller, backoff: &mut Backoff) {
    for set in living(controller, "ReplicaSet") {
        let wanted = usize::try_from(number(&set, &["spec", "replicas"], 1)).unwrap_or_default();
        let pods = controller.controlled("v1", "Pod", &set);
        for surplus in pods.iter().skip(wanted) {
            controller.delete(surplus);
        }
        let template = set.at(&["spec", "template"]).cloned().unwrap_or_default();
        let missing = (pods.len()..wanted).map(|_| {
            let generated = ("generateName", Value::from(format!("{}-", object::name(&set))));
            pod(&set, &template, generated, None)
        });
        let failure = create(controller, backoff, &set, missing);
        let kept = pods.get(..wanted.min(pods.len())).unwrap_or_default();
        let ready = count(kept.iter().filter(|pod| is_ready(pod)).count());
        let conditions = failure.map(|why| condition(&set, "ReplicaFailure", "FailedCreate", &why));
        controller.set_status(
            &set,
            Value::from([
                ("availableReplicas", ready.clone()),
                ("conditions", conditions.map_or(Value::Null, |condition| Value::array(vec![condition]))),
                ("fullyLabeledReplicas", count(kept.len())),
                ("observedGeneration", Value::Int(number(&set, &["metadata", "generation"], 1))),
                ("readyReplicas", ready),
                ("replicas", count(kept.len())),
            ]),
        );
    }
}

/// Brings all `StatefulSet`s in step, with the claims of their Pods.
pub(super) fn stateful_sets(controller: &Controller, backoff: &mut Backoff) {
    for set in living(controller, "StatefulSet") {
        let wanted = usize::try_from(number(&set, &["spec", "replicas"], 1)).unwrap_or_default();
        let template = set.at(&["spec", "template"]).cloned().unwrap_or_default();
        let revision = format!("{}-{}", object::name(&set), hash_of(&template));
        let names: Vec<String> = (0..wanted).map(|ordinal| format!("{}-{ordinal}", object::name(&set))).collect();
        let (kept, others): (Vec<Value>, Vec<Value>) = controller
            .controlled("v1", "Pod", &set)
            .into_iter()
            .partition(|pod| names.iter().any(|name| name == object::name(pod)) && is_of(pod, &revision));
        for other in &others {
            controller.delete(other);
        }
        let missing: Vec<&String> =
            names.iter().filter(|name| !kept.iter().chain(&others).any(|pod| object::name(pod) == *name)).collect();
        let claims: Vec<Value> =
            set.at(&["spec", "volumeClaimTemplates"]).and_then(Value::as_array).unwrap_or_default().to_vec();
        for (name, claim) in missing.iter().flat_map(|name| claims.iter().map(move |claim| (name, claim))) {
            // It exists already if the Pod existed before.
            let _ = controller.create(claim_for(&set, claim, name));
        }
        let made = missing.iter().map(|name| {
            let pod = pod(&set, &template, ("name", Value::from(name.as_str())), Some(&revision));
            with_claims(pod, &claims, name)
        });
        create(controller, backoff, &set, made);
        let ready = count(kept.iter().filter(|pod| is_ready(pod)).count());
        controller.set_status(
            &set,
            Value::from([
                ("availableReplicas", ready.clone()),
                ("currentReplicas", count(kept.len())),
                ("currentRevision", Value::from(revision.as_str())),
                ("observedGeneration", Value::Int(number(&set, &["metadata", "generation"], 1))),
                ("readyReplicas", ready),
                ("replicas", count(kept.len())),
                ("updateRevision", Value::from(revision.as_str())),
                ("updatedReplicas", count(kept.len())),
            ]),
        );
    }
}

/// Brings all `DaemonSet`s in step: one Pod, for the one node.
pub(super) fn daemon_sets(controller: &Controller, backoff: &mut Backoff) {
    for set in living(controller, "DaemonSet") {
        let template = set.at(&["spec", "template"]).cloned().unwrap_or_default();
        let revision = hash_of(&template);
        let (kept, old): (Vec<Value>, Vec<Value>) =
            controller.controlled("v1", "Pod", &set).into_iter().partition(|pod| is_of(pod, &revision));
        for pod in &old {
            controller.delete(pod);
        }
        let missing = kept.is_empty().then(|| {
            let generated = ("generateName", Value::from(format!("{}-", object::name(&set))));
            let mut made = pod(&set, &template, generated, Some(&revision));
            if let Some(spec) = made.as_object_mut().and_then(|pod| pod.get_mut("spec")).and_then(Value::as_object_mut)
            {
                spec.insert("nodeName", NODE);
            }
            made
        });
        create(controller, backoff, &set, missing.into_iter());
        let ready = count(kept.iter().filter(|pod| is_ready(pod)).count());
        controller.set_status(
            &set,
            Value::from([
                ("currentNumberScheduled", count(kept.len())),
                ("desiredNumberScheduled", Value::Int(1)),
                ("numberAvailable", ready.clone()),
                ("numberMisscheduled", Value::Int(0)),
                ("numberReady", ready),
                ("observedGeneration", Value::Int(number(&set, &["metadata", "generation"], 1))),
                ("updatedNumberScheduled", count(kept.len())),
            ]),
        );
    }
}

fn living(controller: &Controller, kind: &str) -> Vec<Value> {
    let mut found = controller.list("apps/v1", kind);
    found.retain(|set| !object::is_deleting(set));
    found
}

/// Creates Pods, until one is refused. The error of the last try.
pub(super) fn create(
    controller: &Controller,
    backoff: &mut Backoff,
    owner: &Value,
    pods: impl Iterator<Item = Value>,
) -> Option<String> {
    let mut pods = pods.peekable();
    if pods.peek().is_none() {
        backoff.tried(owner, true);
        return None;
    }
    let before = || {
        let conditions = owner.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        let failure = conditions.iter().find(|condition| condition.str_at(&["type"]) == Some("ReplicaFailure"));
        failure.and_then(|condition| condition.str_at(&["message"])).map(str::to_owned)
    };
    if !backoff.may_try(owner) {
        return before();
    }
    let refused = pods.find_map(|pod| controller.create(pod).err());
    backoff.tried(owner, refused.is_none());
    refused.map(|error| error.to_string())
}

/// A Pod of a template.
pub(super) fn pod(owner: &Value, template: &Value, name: (&'static str, Value), revision: Option<&str>) -> Value {
    let mut metadata = template.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    metadata.insert(name.0, name.1);
    metadata.insert("namespace", object::namespace(owner));
    metadata.insert("ownerReferences", owned_by(owner));
    if let Some(revision) = revision {
        let mut labels = metadata.get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
        labels.insert(TEMPLATE, revision);
        metadata.insert("labels", Value::object(labels));
    }
    Value::from([
        ("apiVersion", Value::from("v1")),
        ("kind", Value::from("Pod")),
        ("metadata", Value::object(metadata)),
        ("spec", template.get("spec").cloned().unwrap_or_default()),
    ])
}

/// Whether a Pod is of that template.
fn is_of(pod: &Value, revision: &str) -> bool {
    pod.str_at(&["metadata", "labels", TEMPLATE]) == Some(revision)
}

fn claim_name(claim: &Value, pod: &str) -> String {
    format!("{}-{pod}", object::name(claim))
}

fn claim_for(set: &Value, claim: &Value, pod: &str) -> Value {
    let mut claim = claim.clone();
    let name = claim_name(&claim, pod);
    object::set(&mut claim, "name", name);
    object::set(&mut claim, "namespace", object::namespace(set));
    if let Some(members) = claim.as_object_mut() {
        members.insert("apiVersion", "v1");
        members.insert("kind", "PersistentVolumeClaim");
    }
    claim
}

/// The Pod with a volume for each claim.
fn with_claims(mut pod: Value, claims: &[Value], name: &str) -> Value {
    let Some(spec) = pod.as_object_mut().and_then(|pod| pod.get_mut("spec")).and_then(Value::as_object_mut) else {
        return pod;
    };
    let mut volumes = spec.get("volumes").and_then(Value::as_array).unwrap_or_default().to_vec();
    volumes.extend(claims.iter().map(|claim| {
        let source = Map::from_iter([(Str::new_static("claimName"), Value::from(claim_name(claim, name)))]);
        Value::from([("name", Value::from(object::name(claim))), ("persistentVolumeClaim", Value::object(source))])
    }));
    spec.insert("volumes", volumes);
    pod
}
