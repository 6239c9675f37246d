//! Answers from a list of objects at hand.

use std::sync::Arc;

use ephor_engine::fetch::{Fact, Fetch};
use ephor_expr::{Str, Value};

use super::Source;

/// Objects at hand: they answer for single objects, lists of a kind, `ConfigMap`s and labels of namespaces. What is not
/// among them does not exist.
#[derive(Debug, Clone, Default)]
pub struct ObjectsAtHand {
    objects: Arc<Vec<Value>>,
}

impl ObjectsAtHand {
    /// These objects.
    pub fn new(objects: Vec<Value>) -> Self {
        Self { objects: Arc::new(objects) }
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
            _ => None,
        }
    }
}
