//! The env that a case stands on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, ErrorKind, LabelSelector, ListQuery, Patch, Resource, WriteOptions,
    object,
};
use ephor_expr::{Str, Value};

/// How long something that a cluster does in its own time may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A cluster with a namespace that is a case's own.
pub struct TestEnv {
    /// The cluster.
    pub(super) cluster: Arc<dyn Cluster>,
    /// The namespace.
    pub(super) namespace: String,
    /// Lets time pass, for a cluster that does nothing in the background.
    pass: Arc<dyn Fn()>,
}

impl TestEnv {
    /// Makes the namespace of a case.
    pub(super) fn new(cluster: Arc<dyn Cluster>, namespace: String, pass: Arc<dyn Fn()>) -> Self {
        let env = Self { cluster, namespace, pass };
        let namespace = Value::from([("metadata", Value::from([("name", Value::from(env.namespace.as_str()))]))]);
        let made = env.cluster.create(&env.resource("v1", "Namespace"), namespace, &WriteOptions::default());
        assert!(made.is_ok(), "{made:?}");
        env
    }

    /// A kind that there must be.
    pub(super) fn resource(&self, api_version: &str, kind: &str) -> Resource {
        self.cluster.resolve(api_version, kind).unwrap_or_else(|e| panic!("{api_version} {kind}: {e}"))
    }

    /// Reads JSON in which `NS` stands for the namespace.
    pub(super) fn json(&self, text: &str) -> Value {
        Value::from_json(&text.replace("NS", &self.namespace)).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn resource_of(&self, object: &Value) -> Resource {
        let text = |key| object.str_at(&[key]).unwrap_or_default();
        self.resource(text("apiVersion"), text("kind"))
    }

    /// Creates an object.
    pub(super) fn try_create(&self, text: &str) -> Result<Value, ClusterError> {
        let object = self.json(text);
        self.cluster.create(&self.resource_of(&object), object, &WriteOptions::default())
    }

    /// Creates an object; it must work.
    pub(super) fn create(&self, text: &str) -> Value {
        self.try_create(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// A ConfigMap with the label `contract`.
    pub(super) fn config_map(&self, name: &str) -> Value {
        self.create(&config_map(name))
    }

    /// Replaces an object.
    pub(super) fn update(&self, object: Value) -> Result<Value, ClusterError> {
        self.cluster.update(&self.resource_of(&object), object, &WriteOptions::default())
    }

    /// Patches an object.
    pub(super) fn patch(&self, object: &Value, patch: &Patch) -> Result<Value, ClusterError> {
        self.patch_with(object, patch, &WriteOptions::default())
    }

    /// Patches an object.
    pub(super) fn patch_with(
        &self,
        object: &Value,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        self.cluster.patch(&self.resource_of(object), namespace(object), object::name(object), patch, options)
    }

    /// Merges into an object.
    pub(super) fn merge(&self, object: &Value, text: &str) -> Result<Value, ClusterError> {
        self.patch(object, &Patch::merge(self.json(text)))
    }

    /// Deletes an object.
    pub(super) fn delete(&self, object: &Value, options: &DeleteOptions) -> Result<Deletion, ClusterError> {
        self.cluster.delete(&self.resource_of(object), namespace(object), object::name(object), options)
    }

    /// The object as it is now.
    pub(super) fn present(&self, object: &Value) -> Option<Value> {
        match self.cluster.get(&self.resource_of(object), namespace(object), object::name(object)) {
            Ok(object) => Some(object),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                None
            }
        }
    }

    /// A query for the config maps of a case: those that controllers put there do not have the label.
    pub(super) fn own(&self) -> ListQuery {
        ListQuery::in_namespace(self.namespace.as_str()).labels(labels("contract"))
    }

    /// Waits until something is the case that a cluster brings about in its own time.
    pub(super) fn eventually<T>(&self, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = probe() {
                return found;
            }
            assert!(start.elapsed() < TIMEOUT, "in vain: {what}");
            (self.pass)();
        }
    }
}

/// A ConfigMap with the label `contract`.
pub(super) fn config_map(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","namespace":"NS","labels":{{"contract":""}}}},"data":{{"k":"v"}}}}"#
    )
}

/// A Deployment.
pub(super) fn deployment(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","namespace":"NS"}},"spec":{{"replicas":0,"selector":{{"matchLabels":{{"app":"a"}}}},"template":{{"metadata":{{"labels":{{"app":"a"}}}},"spec":{{"containers":[{{"name":"c","image":"i"}}]}}}}}}}}"#
    )
}

/// A selector.
pub(super) fn labels(text: &str) -> LabelSelector {
    LabelSelector::parse(text).expect("a selector of this test")
}

/// The namespace of an object, if it has one.
pub(super) fn namespace(object: &Value) -> Option<&str> {
    Some(object::namespace(object)).filter(|namespace| !namespace.is_empty())
}

/// The resource version.
pub(super) fn version(object: &Value) -> Str {
    Str::new(object::text(object, "resourceVersion"))
}

/// The names of objects.
pub(super) fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(object::name).collect()
}

/// Asserts that something was refused in these words, in which `NS` stands for the namespace.
#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(
    env: &TestEnv,
    result: Result<T, ClusterError>,
    kind: ErrorKind,
    code: u16,
    words: &str,
) {
    let error = result.expect_err(words);
    let words = words.replace("NS", &env.namespace);
    assert_eq!((error.kind(), error.code(), error.to_string()), (kind, code, words));
}
