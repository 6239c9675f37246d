//! Shared by the controllers of workloads: reads, writes under an account, and backoff.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ephor_cluster::admission::User;
use ephor_cluster::write::Part;
use ephor_cluster::{
    Cluster as _, ClusterError, DeleteOptions, ListQuery, MemoryCluster, Patch, Resource, WriteOptions, object,
};
use ephor_expr::{Map, Str, Value};
use jiff::Timestamp;

/// The first and the longest pause after a refused creation.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The name of the only node.
pub(super) const NODE: &str = "sandbox";

/// The cluster as one of Kubernetes' controllers sees it.
pub(super) struct Controller {
    cluster: MemoryCluster,
}

impl Controller {
    /// The controller of that service account in `kube-system`.
    pub(super) fn new(cluster: &MemoryCluster, account: &str) -> Self {
        Self { cluster: cluster.acting_as(User::service_account("kube-system", account)) }
    }

    /// The kubelet.
    pub(super) fn node(cluster: &MemoryCluster) -> Self {
        let groups = ["system:nodes", "system:authenticated"];
        Self { cluster: cluster.acting_as(User::new(format!("system:node:{NODE}"), groups)) }
    }

    /// All objects of a kind with their resource. A kind that cannot be listed has none.
    pub(super) fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let listed =
            self.resource(api_version, kind).and_then(|resource| self.cluster.list(&resource, &ListQuery::all()));
        listed.map(|list| list.items).unwrap_or_default()
    }

    /// The objects of a kind that a workload controls and that are not being deleted.
    pub(super) fn controlled(&self, api_version: &str, kind: &str, owner: &Value) -> Vec<Value> {
        let uid = object::text(owner, "uid");
        let found = self.list(api_version, kind).into_iter();
        found.filter(|found| !object::is_deleting(found) && controller_uid(found) == Some(uid)).collect()
    }

    /// Creates an object that names its `apiVersion` and `kind`.
    pub(super) fn create(&self, wanted: Value) -> Result<Value, ClusterError> {
        let (api_version, kind) = kind_of(&wanted);
        let resource = self.resource(&api_version, &kind)?;
        self.cluster.create(&resource, wanted, &WriteOptions::default())
    }

    /// Deletes an object if it is still this one.
    pub(super) fn delete(&self, found: &Value) {
        let (api_version, kind) = kind_of(found);
        let Ok(resource) = self.resource(&api_version, &kind) else { return };
        let options = DeleteOptions { uid: object::text(found, "uid").into(), ..DeleteOptions::default() };
        // Refused or gone: the next pass looks again.
        let _ = self.cluster.delete(&resource, Some(object::namespace(found)), object::name(found), &options);
    }

    /// Merges members into the status, if that changes anything.
    pub(super) fn set_status(&self, found: &Value, status: Value) {
        self.merge(found, "status", status, Part::Status);
    }

    /// Merges members into the specification, if that changes anything.
    pub(super) fn set_spec(&self, found: &Value, spec: Value) {
        self.merge(found, "spec", spec, Part::Object);
    }

    /// Sets an annotation, if that changes anything.
    pub(super) fn annotate(&self, found: &Value, key: &'static str, text: &str) {
        if found.str_at(&["metadata", "annotations", key]) != Some(text) {
            let annotations = Value::from([("annotations", Value::from([(key, Value::from(text))]))]);
            self.merge(found, "metadata", annotations, Part::Object);
        }
    }

    /// Merges members into the object under a key, if that changes anything. The next pass repeats what is refused.
    pub(super) fn merge(&self, found: &Value, key: &'static str, wanted: Value, part: Part) {
        let present = found.get(key).unwrap_or(&Value::Null);
        let unchanged = match wanted.as_object() {
            Some(members) => members.iter().all(|(name, value)| present.get(name).unwrap_or(&Value::Null) == value),
            None => *present == wanted,
        };
        if unchanged {
            return;
        }
        let (api_version, kind) = kind_of(found);
        let Ok(resource) = self.resource(&api_version, &kind) else { return };
        let patch = Patch::merge(Value::from([(key, wanted)]));
        let options = WriteOptions { part, ..WriteOptions::default() };
        if let Err(error) =
            self.cluster.patch(&resource, Some(object::namespace(found)), object::name(found), &patch, &options)
        {
            tracing::debug!(%error, kind = %resource.kind, name = object::name(found), "a workload keeps its state");
        }
    }

    fn resource(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.cluster.resolve(api_version, kind)
    }
}

/// Pauses after refused creations, by the UID of the workload.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    pauses: BTreeMap<Str, (Instant, Duration)>,
}

impl Backoff {
    /// Whether the workload may try now.
    pub(super) fn may_try(&self, owner: &Value) -> bool {
        self.pauses.get(object::text(owner, "uid")).is_none_or(|(until, _)| *until <= Instant::now())
    }

    /// Whether a pause is over.
    pub(super) fn is_due(&self) -> bool {
        self.pauses.values().any(|(until, _)| *until <= Instant::now())
    }

    /// Notes how a creation went.
    pub(super) fn tried(&mut self, owner: &Value, succeeded: bool) {
        let uid = Str::new(object::text(owner, "uid"));
        if succeeded {
            self.pauses.remove(&uid);
            return;
        }
        let pause = self.pauses.get(&uid).map_or(FIRST_PAUSE, |(_, pause)| (*pause * 2).min(LONGEST_PAUSE));
        // The pause of a workload that is gone ends once and is forgotten.
        self.pauses.retain(|_, (until, _)| *until + LONGEST_PAUSE > Instant::now());
        self.pauses.insert(uid, (Instant::now() + pause, pause));
    }
}

/// `apiVersion` and `kind`.
fn kind_of(object: &Value) -> (String, String) {
    let text = |key: &str| object.str_at(&[key]).unwrap_or_default().to_owned();
    (text("apiVersion"), text("kind"))
}

/// The UID of the owner that controls an object.
fn controller_uid(found: &Value) -> Option<&str> {
    let owners = found.at(&["metadata", "ownerReferences"]).and_then(Value::as_array)?;
    let controls = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    owners.iter().find(controls)?.str_at(&["uid"])
}

/// The reference that makes `owner` the controller of an object.
pub(super) fn owned_by(owner: &Value) -> Value {
    let (api_version, kind) = kind_of(owner);
    Value::array(vec![Value::from([
        ("apiVersion", Value::from(api_version)),
        ("blockOwnerDeletion", Value::Bool(true)),
        ("controller", Value::Bool(true)),
        ("kind", Value::from(kind)),
        ("name", Value::from(object::name(owner))),
        ("uid", Value::from(object::text(owner, "uid"))),
    ])])
}

/// A number in the object, or what it is without one.
pub(super) fn number(object: &Value, path: &[&str], default: i64) -> i64 {
    object.at(path).and_then(Value::as_i64).unwrap_or(default)
}

/// A count of things.
pub(super) fn count(length: usize) -> Value {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

/// The time now, as objects carry it.
pub(super) fn now() -> Value {
    Value::from(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A condition that is `True`; the one that the object has already keeps its times.
pub(super) fn condition(found: &Value, name: &str, reason: &str, message: &str) -> Value {
    let present = found.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let same = present.iter().find(|present| {
        let is = |key: &str, text: &str| present.str_at(&[key]).unwrap_or_default() == text;
        is("type", name) && is("status", "True") && is("reason", reason) && is("message", message)
    });
    same.cloned().unwrap_or_else(|| {
        let texts = [("message", message), ("reason", reason)].into_iter().filter(|(_, text)| !text.is_empty());
        let mut made: Map = texts.map(|(key, text)| (Str::new_static(key), Value::from(text))).collect();
        made.insert("lastTransitionTime", now());
        made.insert("status", "True");
        made.insert("type", name);
        Value::object(made)
    })
}
