//! A cluster behind HTTP.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, LabelSelector, ListQuery, Patch, WriteOptions};
use ephor_expr::{Map, Value};
use ephor_kube::{Access, ConnectOptions, KubeCluster};
use ephor_runtime::update_request::LABEL_GENERATE_POLICY;

/// How long anything may take that Ephor brings about; the machine may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);
/// Between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A client.
#[derive(Clone)]
pub(crate) struct Remote {
    cluster: Arc<dyn Cluster>,
}

fn namespace(object: &Value) -> Option<&str> {
    object.str_at(&["metadata", "namespace"])
}

fn name(object: &Value) -> &str {
    object.str_at(&["metadata", "name"]).expect("a name")
}

impl Remote {
    pub(crate) fn connect(kubeconfig: &Path) -> Self {
        let access = Access::Kubeconfig { path: kubeconfig.to_owned(), context: None };
        let options = ConnectOptions { access, ..ConnectOptions::default() };
        Self { cluster: Arc::new(KubeCluster::connect(&options).unwrap()) }
    }

    fn resource(&self, object: &Value) -> ephor_cluster::Resource {
        let text = |key| object.str_at(&[key]).expect("a kind");
        self.cluster.resolve(text("apiVersion"), text("kind")).unwrap()
    }

    /// Creates an object or replaces it. What it was read as does not count.
    pub(crate) fn apply(&self, object: &Value) -> Result<Value, ClusterError> {
        let resource = self.resource(object);
        let mut object = object.clone();
        set_version(&mut object, None);
        match self.cluster.create(&resource, object.clone(), &WriteOptions::default()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created,
        }
        loop {
            let live = self.cluster.get(&resource, namespace(&object), name(&object))?;
            set_version(&mut object, live.at(&["metadata", "resourceVersion"]).cloned());
            match self.cluster.update(&resource, object.clone(), &WriteOptions::default()) {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                updated => return updated,
            }
        }
    }

    /// Merges into an object that exists.
    pub(crate) fn merge(&self, object: &Value) -> Result<Value, ClusterError> {
        let patch = Patch::merge(object.clone());
        let resource = self.resource(object);
        self.cluster.patch(&resource, namespace(object), name(object), &patch, &WriteOptions::default())
    }

    pub(crate) fn delete(&self, object: &Value) -> Result<(), ClusterError> {
        let resource = self.resource(object);
        self.cluster.delete(&resource, namespace(object), name(object), &DeleteOptions::default()).map(drop)
    }

    /// The object as it is, if it is there and not about to go.
    pub(crate) fn read(&self, object: &Value) -> Option<Value> {
        match self.cluster.get(&self.resource(object), namespace(object), name(object)) {
            Ok(live) => Some(live).filter(|live| live.str_at(&["metadata", "deletionTimestamp"]).is_none()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Whether a policy is enforced.
    pub(crate) fn is_ready(&self, policy: &Value) -> bool {
        let live = self.read(policy);
        let conditions = live.as_ref().and_then(|live| live.at(&["status", "conditions"])).and_then(Value::as_array);
        let is = |condition: &Value, key, text| condition.str_at(&[key]) == Some(text);
        conditions.is_some_and(|all| all.iter().any(|c| is(c, "type", "Ready") && is(c, "status", "True")))
    }

    /// The states of `UpdateRequest`s that are not done, by the policy they are about (`namespace/name`): all, or those
    /// that carry the name of one policy. A list of all is long, and everything here asks often.
    pub(crate) fn open_requests(&self, policy: Option<&str>) -> BTreeMap<String, String> {
        let requests = self.cluster.resolve("kyverno.io/v2", "UpdateRequest").unwrap();
        let mut query = ListQuery::in_namespace("kyverno");
        if let Some(name) = policy.and_then(|key| key.rsplit('/').next()) {
            query = query.labels(LabelSelector::parse(&format!("{LABEL_GENERATE_POLICY}={name}")).unwrap());
        }
        let all = self.cluster.list(&requests, &query).unwrap().items;
        let open = all.iter().filter_map(|request| {
            let state = request.str_at(&["status", "state"]).unwrap_or("Pending");
            let policy = request.str_at(&["spec", "policy"]).unwrap_or_default();
            (!matches!(state, "Completed" | "Skip")).then(|| (policy.to_owned(), state.to_owned()))
        });
        open.collect()
    }
}

fn set_version(object: &mut Value, version: Option<Value>) {
    let metadata = object.as_object_mut().and_then(|members| members.get_mut("metadata"));
    let metadata: &mut Map = metadata.and_then(Value::as_object_mut).expect("metadata");
    if let Some(version) = version {
        metadata.insert("resourceVersion", version);
    } else {
        metadata.remove("resourceVersion");
        metadata.remove("uid");
    }
}

/// Waits until it holds; whether it did in time.
pub(crate) fn within(timeout: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > timeout {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    true
}
