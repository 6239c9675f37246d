//! What is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use ephor_expr::{Str, Value};

use super::events;
use super::history::{History, Record};
use super::identity::Identities;
use super::kinds;
use super::options::{Options, Strictness};
use crate::discovery::{Discovery, resources_of};
use crate::error::ClusterError;
use crate::object;
use crate::resource::{Resource, join_api_version};

/// Group and plural: the same objects in all versions.
pub(super) type TableId = (Str, Str);

/// Where an object is within its table. The namespace of cluster-scoped objects is empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) namespace: Str,
    pub(super) name: Str,
}

/// The objects of one kind.
pub(super) struct Table {
    /// The kind, in the version in which its objects are kept.
    pub(super) resource: Resource,
    pub(super) objects: BTreeMap<Key, Value>,
}

/// Everything in the cluster.
pub(super) struct State {
    pub(super) options: Options,
    /// The time, where there is no clock.
    pub(super) now: Str,
    /// The resource version of the latest change.
    pub(super) revision: u64,
    pub(super) identities: Identities,
    pub(super) discovery: Arc<Discovery>,
    pub(super) tables: BTreeMap<TableId, Table>,
    pub(super) history: History,
}

pub(super) fn table_id(resource: &Resource) -> TableId {
    if events::is_event(resource) {
        // Both groups show the same events.
        return (Str::default(), resource.plural.clone());
    }
    (resource.group.clone(), resource.plural.clone())
}

impl State {
    pub(super) fn new(options: Options) -> Self {
        let mut state = Self {
            now: options.now.clone(),
            revision: 1,
            identities: Identities::new(options.seed),
            discovery: Discovery::kubernetes(),
            tables: BTreeMap::new(),
            history: History::new(options.history),
            options,
        };
        if state.is_strict() {
            for name in kinds::FIRST_NAMESPACES {
                let namespace = Value::from([("metadata", Value::from([("name", Value::from(name))]))]);
                // INVARIANT: nothing speaks against these objects in an empty cluster.
                let created = state.create_first(&kinds::NAMESPACE, namespace);
                debug_assert!(created.is_ok(), "{created:?}");
            }
        }
        state
    }

    /// The time.
    pub(super) fn now(&self) -> Str {
        self.options.clock.as_ref().map_or_else(|| self.now.clone(), |clock| clock())
    }

    pub(super) fn is_strict(&self) -> bool {
        self.options.strictness == Strictness::Strict
    }

    /// Whether the kind is still served; a caller may hold a resource whose definition is gone.
    pub(super) fn check_served(&self, resource: &Resource) -> Result<(), ClusterError> {
        let served = || self.discovery.find_plural(&resource.group, &resource.version, &resource.plural).is_some();
        if !self.is_strict() || served() { Ok(()) } else { Err(ClusterError::no_such_path()) }
    }

    /// Where an object of that namespace and name would be.
    pub(super) fn key(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Key, ClusterError> {
        self.check_served(resource)?;
        resource.check_place(namespace, name)?;
        Ok(Key { namespace: namespace.unwrap_or_default().into(), name: name.into() })
    }

    /// The object as it is kept.
    pub(super) fn find(&self, resource: &Resource, key: &Key) -> Option<&Value> {
        self.tables.get(&table_id(resource))?.objects.get(key)
    }

    /// The object in the version of `resource`.
    pub(super) fn get(&self, resource: &Resource, key: &Key) -> Result<Value, ClusterError> {
        match self.find(resource, key) {
            Some(object) => Ok(shown(object, resource)),
            None => Err(ClusterError::not_found(resource, &key.name)),
        }
    }

    /// Stores an object in a new resource version, which it gets.
    pub(super) fn put(&mut self, resource: &Resource, key: &Key, mut object: Value) -> Value {
        self.revision += 1;
        object::set(&mut object, "resourceVersion", self.revision.to_string());
        self.record(resource, key, Some(object.clone()));
        object
    }

    /// Removes an object, giving back its last state in the version of the removal.
    pub(super) fn take(&mut self, resource: &Resource, key: &Key) -> Option<Value> {
        let mut last = shown(self.find(resource, key)?, resource);
        self.revision += 1;
        object::set(&mut last, "resourceVersion", self.revision.to_string());
        self.record(resource, key, None);
        Some(last)
    }

    /// Makes `after` the state of an object as of the present revision.
    pub(super) fn record(&mut self, resource: &Resource, key: &Key, after: Option<Value>) {
        let table = self
            .tables
            .entry(table_id(resource))
            .or_insert_with(|| Table { resource: resource.clone(), objects: BTreeMap::new() });
        let after = after.map(|object| shown(&object, &table.resource));
        let before = match &after {
            Some(object) => table.objects.insert(key.clone(), object.clone()),
            None => table.objects.remove(key),
        };
        if kinds::is_definition(resource) {
            let discovery = Arc::make_mut(&mut self.discovery);
            for defined in before.iter().chain(&after).flat_map(resources_of) {
                discovery.remove(&defined.group, &defined.plural);
            }
            for served in after.iter().flat_map(resources_of) {
                discovery.add(served);
            }
        }
        self.history.push(Record {
            revision: self.revision,
            table: table_id(resource),
            key: key.clone(),
            before,
            after,
        });
    }
}

/// An object in the version of `resource`. Like the conversion strategy `None` of definitions, this changes
/// `apiVersion` and nothing else.
pub(super) fn shown(object: &Value, resource: &Resource) -> Value {
    let api_version = object.str_at(&["apiVersion"]).unwrap_or_default();
    let matches = match api_version.split_once('/') {
        Some((group, version)) => group == resource.group && version == resource.version,
        None => resource.group.is_empty() && api_version == resource.version,
    };
    let mut object = object.clone();
    if !matches && events::is_event(resource) {
        events::convert(&mut object, resource);
    }
    if !matches && let Some(members) = object.as_object_mut() {
        members.insert("apiVersion", join_api_version(&resource.group, &resource.version));
    }
    object
}
