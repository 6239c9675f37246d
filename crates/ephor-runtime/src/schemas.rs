//! Merges configurations of policies by the schemas of kinds: Kubernetes' own, and those that definitions bring.
//!
//! A `MutatingPolicy` gives part of an object, which is merged as server-side apply merges it. That takes the schema of
//! the object's kind. The schemas of Kubernetes' own kinds are known ahead. Definitions are followed in the cluster
//! from the first policy on that mutates so, because they are large and most clusters have no such policy.

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, MemoryCluster, WriteOptions};
use ephor_engine::compile::Body;
use ephor_engine::fetch::Merger;
use ephor_expr::{Str, Value};
use parking_lot::Mutex;

use crate::cancellation::CancellationToken;
use crate::policies::Snapshot;
use crate::watcher::{StoreEvent, WatchTarget, Watcher};

const DEFINITION: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

/// The schemas of kinds. Clones are the same.
#[derive(Clone)]
pub struct Schemas(Arc<Shared>);

struct Shared {
    /// Holds definitions and nothing else; made when the first configuration is merged.
    kinds: LazyLock<MemoryCluster>,
    followed: Option<(Arc<dyn Cluster>, CancellationToken)>,
    watcher: OnceLock<Watcher>,
    /// The definitions that are there, by name: changes come from one thread, but lists replace all.
    names: Mutex<Vec<Str>>,
}

impl fmt::Debug for Schemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schemas({} definitions)", self.0.names.lock().len())
    }
}

impl Schemas {
    /// The schemas of Kubernetes' own kinds.
    pub fn built_in() -> Self {
        Self::new(None)
    }

    /// The same, and those of the definitions of a cluster, which are followed until `stop` once they are needed.
    pub fn of(cluster: &Arc<dyn Cluster>, stop: &CancellationToken) -> Self {
        Self::new(Some((Arc::clone(cluster), stop.clone())))
    }

    fn new(followed: Option<(Arc<dyn Cluster>, CancellationToken)>) -> Self {
        let kinds = LazyLock::new(MemoryCluster::default as fn() -> MemoryCluster);
        Self(Arc::new(Shared { kinds, followed, watcher: OnceLock::new(), names: Mutex::default() }))
    }

    /// Follows definitions if one of these policies needs them.
    pub fn prepare(&self, policies: &Snapshot) {
        let Some((cluster, stop)) = self.0.followed.as_ref().filter(|_| self.0.watcher.get().is_none()) else { return };
        let mut rules = policies.set.programs().iter().flat_map(|program| &program.rules);
        if rules.any(|rule| matches!(rule.body, Body::Policy(_))) {
            self.0.watcher.get_or_init(|| {
                let (schemas, watched) = (self.clone(), WatchTarget::all(DEFINITION.0, DEFINITION.1));
                Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| schemas.apply(change))
            });
        }
    }

    /// Takes in a change of definitions.
    fn apply(&self, change: StoreEvent) {
        let mut names = self.0.names.lock();
        match change {
            StoreEvent::Reset(definitions) => {
                let present: Vec<Str> = definitions.iter().map(name_of).collect();
                for gone in names.iter().filter(|name| !present.contains(name)) {
                    self.0.forget(gone);
                }
                for definition in &definitions {
                    self.0.learn(definition);
                }
                *names = present;
            }
            StoreEvent::Apply(definition) => {
                self.0.learn(&definition);
                let name = name_of(&definition);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            StoreEvent::Delete(definition) => {
                let name = name_of(&definition);
                self.0.forget(&name);
                names.retain(|known| *known != name);
            }
        }
    }
}

impl Shared {
    fn learn(&self, definition: &Value) {
        let name = name_of(definition);
        let spec = definition.get("spec").cloned().unwrap_or_default();
        let document = Value::from([
            ("apiVersion", Value::from(DEFINITION.0)),
            ("kind", DEFINITION.1.into()),
            ("metadata", Value::from([("name", Value::from(name.clone()))])),
            ("spec", spec.clone()),
        ]);
        let store = || -> Result<(), ClusterError> {
            let resource = self.kinds.resolve(DEFINITION.0, DEFINITION.1)?;
            let known = match self.kinds.get(&resource, None, &name) {
                Ok(known) => known,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return self.kinds.create(&resource, document, &WriteOptions::default()).map(drop);
                }
                Err(error) => return Err(error),
            };
            let mut changed = known;
            if let Some(members) = changed.as_object_mut() {
                members.insert("spec", spec);
            }
            self.kinds.update(&resource, changed, &WriteOptions::default()).map(drop)
        };
        if let Err(error) = store() {
            tracing::warn!(definition = %name, %error, "a schema is not known: policies cannot merge into its kind");
        }
    }

    fn forget(&self, name: &str) {
        let gone = self.kinds.resolve(DEFINITION.0, DEFINITION.1);
        let gone = gone.and_then(|resource| self.kinds.delete(&resource, None, name, &DeleteOptions::default()));
        if let Err(error) = gone.map(drop)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(definition = name, %error, "a schema cannot be forgotten");
        }
    }
}

fn name_of(definition: &Value) -> Str {
    Str::new(definition.str_at(&["metadata", "name"]).unwrap_or_default())
}

impl Merger for Schemas {
    fn merge(&self, object: &Value, configuration: &Value) -> Result<Value, String> {
        if self.0.watcher.get().is_some_and(|watcher| !watcher.synced()) {
            return Err("the definitions of kinds are not known yet".to_owned());
        }
        self.0.kinds.merge(object, configuration).map_err(|error| error.to_string())
    }

    fn is_of_api_server(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;

    const WIDGETS: &str = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: \
         widgets.example.com, resourceVersion: '7', uid: u}, spec: {group: example.com, scope: Namespaced, names: {kind: Widget, \
         plural: widgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, \
         properties: {spec: {type: object, properties: {parts: {type: array, x-kubernetes-list-type: map, \
         x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, \
         size: {type: integer}}}}}}}}}}]}}";

    fn merged(schemas: &Schemas) -> Result<Value, String> {
        let object =
            "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {parts: [{name: a}, {name: b}]}}";
        let configuration = "{spec: {parts: [{name: b, size: 3}]}}";
        schemas.merge(&parse_value(object).unwrap(), &parse_value(configuration).unwrap())
    }

    #[test]
    fn definitions_say_how_lists_are_merged_as_long_as_they_are_there() {
        let schemas = Schemas::built_in();
        let definition = parse_value(WIDGETS).unwrap();
        assert!(merged(&schemas).is_err());
        for change in [StoreEvent::Reset(vec![definition.clone()]), StoreEvent::Apply(definition.clone())] {
            schemas.apply(change);
            let after = merged(&schemas).unwrap();
            assert_eq!(after.get("spec").unwrap().to_json(), r#"{"parts":[{"name":"a"},{"name":"b","size":3}]}"#);
        }
        schemas.apply(StoreEvent::Reset(Vec::new()));
        assert!(merged(&schemas).is_err());
    }
}
