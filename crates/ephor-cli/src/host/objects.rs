//! Answers from a list of objects at hand.
//!
//! Calls of the Kubernetes API are answered as a server with these objects would, and so are global context entries
//! that are among them and watch resources.

use std::sync::Arc;

use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::policy::{GlobalContextEntry, HttpMethod, WatchedResource};
use ephor_expr::jmespath::{Expression, FixedRuntime};
use ephor_expr::value::decode;
use ephor_expr::{Str, Value};

use super::Source;
use super::api_path::ApiPath;

/// Objects at hand: they answer for single objects, lists of a kind, `ConfigMap`s and labels of namespaces. What is not
/// among them does not exist.
#[derive(Debug, Clone, Default)]
pub struct ObjectsAtHand {
    objects: Arc<Vec<Value>>,
    /// Whether they answer for the API itself.
    api: bool,
}

impl ObjectsAtHand {
    /// These objects.
    pub fn new(objects: Vec<Value>) -> Self {
        Self { objects: Arc::new(objects), api: false }
    }

    /// The same objects, which also answer calls of the API and global context entries.
    #[must_use]
    pub fn with_api(mut self) -> Self {
        self.api = true;
        self
    }

    fn find(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        self.of_kind(api_version, kind)
            .find(|o| o.str_at(&["metadata", "name"]) == Some(name) && namespace_of(o) == namespace)
            .cloned()
    }

    fn of_kind(&self, api_version: &str, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |o| {
            o.str_at(&["kind"]) == Some(kind)
                && (api_version.is_empty() || o.str_at(&["apiVersion"]) == Some(api_version))
        })
    }
}

fn namespace_of(object: &Value) -> &str {
    object.str_at(&["metadata", "namespace"]).unwrap_or_default()
}

impl ObjectsAtHand {
    /// The data of the global context entry `name`, or of one of its projections (`entry.projection`).
    fn global(&self, name: &str) -> Option<Fact> {
        let entries = self.objects.iter().filter(|o| o.str_at(&["kind"]) == Some("GlobalContextEntry"));
        for entry in entries {
            let entry_name = entry.str_at(&["metadata", "name"]).unwrap_or_default();
            let projection = match name.strip_prefix(entry_name) {
                Some("") => None,
                Some(rest) => match rest.strip_prefix('.') {
                    Some(projection) => Some(projection),
                    None => continue,
                },
                None => continue,
            };
            let entry: GlobalContextEntry = decode(entry).ok()?;
            let Some(watched) = entry.spec.kubernetes_resource else {
                return Some(Fact::Unavailable(format!(
                    "global context entry `{name}` calls an API, which is not done offline"
                )));
            };
            let data = self.watched(&watched);
            let Some(projection) = projection else { return Some(Fact::Found(data)) };
            let projections = entry.spec.projections.unwrap_or_default();
            let Some(found) = projections.into_iter().find(|p| p.name == projection) else {
                return Some(Fact::Missing);
            };
            return Some(match query(&found.jmes_path, &data) {
                Ok(value) => Fact::Found(value),
                Err(reason) => Fact::Failed(format!("projection `{name}`: {reason}")),
            });
        }
        None
    }

    fn watched(&self, watched: &WatchedResource) -> Value {
        let api_version = match watched.group.as_str() {
            "" => watched.version.to_string(),
            group => format!("{group}/{}", watched.version),
        };
        let namespace = watched.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let path = ApiPath::of(&api_version, &watched.resource, namespace);
        Value::array(path.select(&self.objects).cloned().collect())
    }
}

fn query(text: &str, data: &Value) -> Result<Value, String> {
    let expression = Expression::compile(text).map_err(|error| error.to_string())?;
    let runtime = FixedRuntime::new(jiff::Timestamp::UNIX_EPOCH, 0);
    expression.evaluate(data, &runtime).map_err(|error| error.to_string())
}

impl Source for ObjectsAtHand {
    fn answer(&self, fetch: &Fetch) -> Option<Fact> {
        match fetch {
            Fetch::Object { api_version, kind, namespace, name } => {
                Some(self.find(api_version, kind, namespace, name).map_or(Fact::Missing, Fact::Found))
            }
            Fetch::Objects { api_version, kind, namespace } => {
                let all = self.of_kind(api_version, kind);
                let all = all.filter(|o| namespace.is_empty() || namespace_of(o) == namespace.as_str());
                Some(Fact::Found(Value::array(all.cloned().collect())))
            }
            Fetch::ConfigMap { namespace, name } => self.find("v1", "ConfigMap", namespace, name).map(Fact::Found),
            Fetch::NamespaceLabels { name } => {
                let namespace = self.find("v1", "Namespace", "", name)?;
                let mut labels =
                    namespace.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
                if !labels.contains_key("kubernetes.io/metadata.name") {
                    labels.insert(Str::new_static("kubernetes.io/metadata.name"), name.clone());
                }
                Some(Fact::Found(Value::object(labels)))
            }
            Fetch::Api { method: HttpMethod::Get, path, .. } if self.api => {
                Some(ApiPath::parse(path)?.answer(&self.objects))
            }
            Fetch::Global { name } if self.api => self.global(name),
            _ => None,
        }
    }
}
