//! Answers from objects at hand, through a cluster in memory.
//!
//! Single objects, lists, calls of the Kubernetes API and global context entries that watch resources are answered as a
//! server with these objects would. A real cluster is another implementation of the same trait.

use std::sync::{Arc, OnceLock};

use ephor_cluster::memory::Options;
use ephor_cluster::raw::RawRequest;
use ephor_cluster::{Cluster, ClusterError, ErrorKind, ListQuery, MemoryCluster, Resource};
use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::policy::{GlobalContextEntry, HttpMethod, WatchedResource};
use ephor_expr::jmespath::{Expression, FixedRuntime};
use ephor_expr::value::decode;
use ephor_expr::{Str, Value};

use super::Source;

/// Objects at hand. What is not among them does not exist.
#[derive(Clone, Default)]
pub struct ObjectsAtHand {
    objects: Arc<Vec<Value>>,
    /// Made when the first question comes: most runs ask none.
    cluster: Arc<OnceLock<MemoryCluster>>,
    /// Whether they answer for the API itself.
    api: bool,
}

impl std::fmt::Debug for ObjectsAtHand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ObjectsAtHand({} objects)", self.objects.len())
    }
}

impl ObjectsAtHand {
    /// These objects; of two with one name the first counts.
    pub fn new(objects: Vec<Value>) -> Self {
        Self { objects: Arc::new(objects), ..Self::default() }
    }

    /// The same objects, which also answer calls of the API and global context entries.
    #[must_use]
    pub fn with_api(mut self) -> Self {
        self.api = true;
        self
    }

    fn cluster(&self) -> &MemoryCluster {
        self.cluster.get_or_init(|| {
            let cluster = MemoryCluster::new(Options::offline());
            // The cluster keeps the last of one name. What it refuses has no name and cannot be asked for.
            let _ = cluster.load(self.objects.iter().rev().cloned());
            cluster
        })
    }

    fn get(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<Value, ClusterError> {
        let resource = self.resolve(api_version, kind)?;
        self.cluster().get(&resource, resource.namespaced.then_some(namespace), name)
    }

    /// A kind without a version is the first that has the name.
    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        if api_version.is_empty()
            && let Some(resource) = self.cluster().discovery()?.with_kind(kind).next()
        {
            return Ok(resource.clone());
        }
        self.cluster().resolve(api_version, kind)
    }

    fn list(&self, resource: &Resource, namespace: &str) -> Result<Value, ClusterError> {
        let query = if namespace.is_empty() { ListQuery::all() } else { ListQuery::in_namespace(Str::new(namespace)) };
        Ok(Value::array(self.cluster().list(resource, &query)?.items))
    }

    /// The data of the global context entry `name`, or of one of its projections (`entry.projection`).
    fn global(&self, name: &str) -> Option<Fact> {
        let (entry, projection) = self.objects.iter().find_map(|object| {
            let entry = object.str_at(&["kind"]).filter(|kind| *kind == "GlobalContextEntry").and(Some(object))?;
            match name.strip_prefix(entry.str_at(&["metadata", "name"])?)? {
                "" => Some((entry, None)),
                rest => Some((entry, Some(rest.strip_prefix('.')?))),
            }
        })?;
        let entry: GlobalContextEntry = decode(entry).ok()?;
        let Some(watched) = entry.spec.kubernetes_resource else {
            let reason = format!("global context entry `{name}` calls an API, which is not done offline");
            return Some(Fact::Unavailable(reason));
        };
        let data = match self.watched(&watched) {
            Ok(data) => data,
            Err(error) => return Some(Fact::Failed(error.to_string())),
        };
        let Some(projection) = projection else { return Some(Fact::Found(data)) };
        let mut projections = entry.spec.projections.into_iter().flatten();
        let Some(found) = projections.find(|p| p.name == projection) else { return Some(Fact::Missing) };
        Some(match query(&found.jmes_path, &data) {
            Ok(value) => Fact::Found(value),
            Err(reason) => Fact::Failed(format!("projection `{name}`: {reason}")),
        })
    }

    fn watched(&self, watched: &WatchedResource) -> Result<Value, ClusterError> {
        let discovery = self.cluster().discovery()?;
        match discovery.find_plural(&watched.group, &watched.version, &watched.resource) {
            Some(resource) => self.list(resource, watched.namespace.as_deref().unwrap_or_default()),
            // Nothing of a kind that nobody knows is at hand.
            None => Ok(Value::array(Vec::new())),
        }
    }
}

fn query(text: &str, data: &Value) -> Result<Value, String> {
    let expression = Expression::compile(text).map_err(|error| error.to_string())?;
    let runtime = FixedRuntime::new(jiff::Timestamp::UNIX_EPOCH, 0);
    expression.evaluate(data, &runtime).map_err(|error| error.to_string())
}

fn fact(answer: Result<Value, ClusterError>) -> Fact {
    match answer {
        Ok(value) => Fact::Found(value),
        Err(error) if error.kind() == ErrorKind::NotFound => Fact::Missing,
        Err(error) => Fact::Failed(error.to_string()),
    }
}

impl Source for ObjectsAtHand {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        match fetch {
            Fetch::Object { api_version, kind, namespace, name } => {
                Some(fact(self.get(api_version, kind, namespace, name)))
            }
            Fetch::Objects { api_version, kind, namespace } => {
                Some(fact(self.resolve(api_version, kind).and_then(|resource| self.list(&resource, namespace))))
            }
            Fetch::ConfigMap { namespace, name } => self.get("v1", "ConfigMap", namespace, name).ok().map(Fact::Found),
            Fetch::NamespaceLabels { name } => {
                let namespace = self.get("v1", "Namespace", "", name).ok()?;
                let labels = namespace.at(&["metadata", "labels"]).and_then(Value::as_object);
                let mut labels = labels.cloned().unwrap_or_default();
                if !labels.contains_key("kubernetes.io/metadata.name") {
                    labels.insert(Str::new_static("kubernetes.io/metadata.name"), name.clone());
                }
                Some(Fact::Found(Value::object(labels)))
            }
            Fetch::Api { method, path, body } if self.api => {
                let request = match method {
                    HttpMethod::Get => RawRequest::get(path.as_str()),
                    HttpMethod::Post => {
                        let body = body.as_deref().and_then(|body| Value::from_json(body).ok()).unwrap_or_default();
                        RawRequest::post(path.as_str(), body)
                    }
                };
                // Evaluations must not influence each other.
                let answer = self.cluster().raw(&RawRequest { dry_run: true, ..request });
                Some(answer.map_or_else(|error| Fact::Failed(error.to_string()), Fact::Found))
            }
            Fetch::Global { name } if self.api => self.global(name),
            _ => None,
        }
    }
}
