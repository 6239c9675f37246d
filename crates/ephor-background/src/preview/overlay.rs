//! A cluster whose writes stay in memory: reads return the written objects and, for all others, those of the real
//! cluster. `ephor plan` runs the background controller on it.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use ephor_cluster::memory::View;
use ephor_cluster::raw::{Method, RawRequest, Target, answer, target};
use ephor_cluster::write::Part;
use ephor_cluster::{
    Cluster, ClusterError, DeleteOptions, Deletion, Discovery, ErrorKind, List, ListQuery, Patch, PatchKind, Resource,
    Watch, WatchQuery, WriteOptions,
};
use ephor_engine::policy::{ProgramKind, is_own_group};
use ephor_expr::{Str, Value};
use ephor_runtime::content::set_meta;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::poison::PoisonMutex;
use ephor_runtime::watcher::StoreEvent;

use super::Namespaces;
use super::dry_run::{DryRun, Write};
use crate::plan::ObjectId;

/// The annotation in which `kubectl apply` stores the applied manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Resource versions of the overlay begin here, above all versions of an API server.
const FIRST_VERSION: u64 = 1 << 60;

/// An in-memory overlay of a cluster.
pub(super) struct OverlayCluster {
    inner: Arc<dyn Cluster>,
    namespaces: Namespaces,
    now: Str,
    dry_run: DryRun,
    written: PoisonMutex<Written>,
}

#[derive(Default)]
struct Written {
    /// Objects as they were written; `None` if they were deleted.
    objects: BTreeMap<ObjectId, Option<Value>>,
    /// Events that the controller has not received yet.
    events: Vec<(GroupKind, StoreEvent)>,
    version: u64,
    created: u64,
}

impl OverlayCluster {
    pub(super) fn new(inner: Arc<dyn Cluster>, namespaces: Namespaces, now: jiff::Timestamp) -> Self {
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        let dry_run = DryRun::new(Arc::clone(&inner));
        Self { inner, namespaces, now, dry_run, written: PoisonMutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock()
    }

    /// Takes the events of all writes since the last call.
    pub(super) fn take_events(&self) -> Vec<(GroupKind, StoreEvent)> {
        std::mem::take(&mut self.lock().events)
    }

    /// The present object.
    pub(super) fn current(&self, resource: &Resource, id: &ObjectId) -> Result<Option<Value>, ClusterError> {
        if let Some(written) = self.lock().objects.get(id) {
            return Ok(written.clone());
        }
        match self.inner.get(resource, id.namespace(), &id.name) {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object or applies it to the existing one. Returns the object before and after.
    pub(super) fn put(&self, object: &Value) -> Result<(Option<Value>, Value), ClusterError> {
        let resource = self.resource_of(object)?;
        let mut object = object.clone();
        place(&mut object, &resource);
        let id = ObjectId::of(&object);
        let before = self.current(&resource, &id)?;
        let after = match &before {
            None => self.create(&resource, object, &WriteOptions::default())?,
            Some(live) => {
                let own = is_own_group(&resource.group);
                let mut merged = if own { replaced(live, &object) } else { applied(live, &object) };
                let changed = merged.get("spec") != live.get("spec");
                let generation = live.at(&["metadata", "generation"]).and_then(Value::as_i64);
                if let Some(generation) = generation.filter(|_| changed) {
                    set_meta(&mut merged, "generation", Some((generation + 1).into()));
                }
                // When the author changed it last is not when others did.
                set_meta(&mut merged, "managedFields", None);
                for key in ["uid", "creationTimestamp"] {
                    set_meta(&mut merged, key, live.at(&["metadata", key]).cloned());
                }
                self.store(id, merged)
            }
        };
        Ok((before, after))
    }

    /// Deletes an object and returns its last state.
    pub(super) fn take(&self, object: &Value) -> Result<Option<Value>, ClusterError> {
        let resource = self.resource_of(object)?;
        let mut object = object.clone();
        place(&mut object, &resource);
        let id = ObjectId::of(&object);
        let before = self.current(&resource, &id)?;
        if before.is_some() {
            self.delete(&resource, id.namespace(), &id.name, &DeleteOptions::default())?;
        }
        Ok(before)
    }

    /// The object as the server would store it. Of objects that only this overlay knows the server knows nothing.
    fn tried(&self, resource: &Resource, id: &ObjectId, object: Value, write: Write) -> Result<Value, ClusterError> {
        if self.namespaces == Namespaces::Assumed || is_own_group(&resource.group) {
            return Ok(object);
        }
        let namespace = ObjectId::new("v1", "Namespace", "", &id.namespace);
        let known = {
            let written = self.lock();
            !written.objects.contains_key(id) && !written.objects.contains_key(&namespace)
        };
        if known {
            self.dry_run.on_server(resource, &object, write)
        } else {
            Ok(self.dry_run.on_substitute(resource, &object))
        }
    }

    fn resource_of(&self, object: &Value) -> Result<Resource, ClusterError> {
        let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
        self.resolve(text("apiVersion"), text("kind"))
    }

    fn store(&self, id: ObjectId, mut object: Value) -> Value {
        let mut written = self.lock();
        written.version += 1;
        let version = (FIRST_VERSION + written.version).to_string();
        set_meta(&mut object, "resourceVersion", Some(version.into()));
        written.events.push((id.group_kind(), StoreEvent::Apply(object.clone())));
        written.objects.insert(id, Some(object.clone()));
        object
    }
}

/// Puts an object where its kind lives.
fn place(object: &mut Value, resource: &Resource) {
    if !resource.namespaced {
        set_meta(object, "namespace", None);
    } else if object.str_at(&["metadata", "namespace"]).is_none_or(str::is_empty) {
        set_meta(object, "namespace", Some("default".into()));
    }
}

/// What `kubectl apply` makes of an object: what it was given last and is not given now goes, what others have set
/// stays.
fn applied(live: &Value, object: &Value) -> Value {
    let last = live.str_at(&["metadata", "annotations", LAST_APPLIED]).and_then(|text| Value::from_json(text).ok());
    let kept = last.map_or_else(|| live.clone(), |last| without(live, &last, object));
    laid_over(&kept, object)
}

/// `live` without the members that `last` has and `object` has not.
fn without(live: &Value, last: &Value, object: &Value) -> Value {
    let (Value::Object(below), Value::Object(last), Value::Object(object)) = (live, last, object) else {
        return live.clone();
    };
    let mut members = (**below).clone();
    for (key, value) in last.iter() {
        match (members.get(key), object.get(key)) {
            (_, None) => {
                members.remove(key);
            }
            (Some(live), Some(object)) => {
                let kept = without(live, value, object);
                members.insert(key.clone(), kept);
            }
            (None, Some(_)) => {}
        }
    }
    Value::object(members)
}

/// `object` as the next version of `live`: a policy in a file is all of it.
fn replaced(live: &Value, object: &Value) -> Value {
    let mut merged = object.clone();
    set_meta(&mut merged, "generation", live.at(&["metadata", "generation"]).cloned());
    if let (Some(members), Some(status)) = (merged.as_object_mut(), live.get("status")) {
        members.insert("status", status.clone());
    }
    merged
}

/// `live` with the members of `object`; lists are replaced.
fn laid_over(live: &Value, object: &Value) -> Value {
    let (Value::Object(below), Value::Object(above)) = (live, object) else { return object.clone() };
    let mut members = (**below).clone();
    for (key, value) in above.iter() {
        if value.is_null() {
            members.remove(key);
            continue;
        }
        let merged = members.get(key).map_or_else(|| value.clone(), |below| laid_over(below, value));
        members.insert(key.clone(), merged);
    }
    Value::object(members)
}

fn id_of(resource: &Resource, namespace: Option<&str>, name: &str) -> ObjectId {
    let namespace = namespace.filter(|_| resource.namespaced).unwrap_or_default();
    ObjectId::new(&resource.api_version(), &resource.kind, namespace, name)
}

impl Cluster for OverlayCluster {
    fn discovery(&self) -> Result<Arc<Discovery>, ClusterError> {
        self.inner.discovery()
    }

    fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        match self.inner.resolve(api_version, kind) {
            // Policies can be planned for where nothing is installed.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let guess = Resource::guess(api_version, kind);
                if !is_own_group(&guess.group) {
                    return Err(error);
                }
                let namespaced =
                    ProgramKind::parse(kind).map_or(!kind.starts_with("Cluster"), ProgramKind::is_namespaced);
                Ok(Resource { namespaced, ..guess })
            }
            resource => resource,
        }
    }

    fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        let found = self.current(resource, &id_of(resource, namespace, name))?;
        found.ok_or_else(|| ClusterError::not_found(resource, name))
    }

    fn list(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        let mut list = self.inner.list(resource, query)?;
        let written = self.lock();
        list.items.retain(|item| !written.objects.contains_key(&ObjectId::of(item)));
        if list.continue_token.is_none() {
            let own = written.objects.iter().filter(|(id, _)| {
                id.kind == resource.kind
                    && id.group == resource.group
                    && query.filter.namespace().is_none_or(|namespace| namespace == id.namespace)
            });
            list.items.extend(own.filter_map(|(_, object)| object.clone()).filter(|o| query.filter.selects(o)));
        }
        Ok(list)
    }

    fn create(&self, resource: &Resource, mut object: Value, _options: &WriteOptions) -> Result<Value, ClusterError> {
        if let Some(members) = object.as_object_mut() {
            members.insert("apiVersion", resource.api_version());
            members.insert("kind", resource.kind.clone());
        }
        place(&mut object, resource);
        let id = ObjectId::of(&object);
        if self.current(resource, &id)?.is_some() {
            return Err(ClusterError::already_exists(resource, &id.name));
        }
        if resource.namespaced && self.namespaces == Namespaces::Stored && !is_own_group(&resource.group) {
            let namespaces = self.inner.resolve("v1", "Namespace")?;
            if self.current(&namespaces, &ObjectId::new("v1", "Namespace", "", &id.namespace))?.is_none() {
                return Err(ClusterError::not_found(&namespaces, &id.namespace));
            }
        }
        let mut object = self.tried(resource, &id, object, Write::Create)?;
        let number = {
            let mut written = self.lock();
            written.created += 1;
            written.created
        };
        set_meta(&mut object, "uid", Some(format!("planned-{number}").into()));
        set_meta(&mut object, "creationTimestamp", Some(self.now.clone().into()));
        set_meta(&mut object, "generation", Some(1.into()));
        Ok(self.store(id, object))
    }

    fn update(&self, resource: &Resource, object: Value, options: &WriteOptions) -> Result<Value, ClusterError> {
        if is_own_group(&resource.group) {
            return Ok(object);
        }
        let id = ObjectId::of(&object);
        let live = self.current(resource, &id)?.ok_or_else(|| ClusterError::not_found(resource, &id.name))?;
        for key in ["resourceVersion", "uid"] {
            let asked = object.str_at(&["metadata", key]).unwrap_or_default();
            if !asked.is_empty() && live.str_at(&["metadata", key]) != Some(asked) {
                return Err(ClusterError::modified(resource, &id.name));
            }
        }
        let mut object = match options.part {
            Part::Object => self.tried(resource, &id, object, Write::Update)?,
            Part::Status => object,
        };
        for key in ["uid", "creationTimestamp"] {
            set_meta(&mut object, key, live.at(&["metadata", key]).cloned());
        }
        Ok(self.store(id, object))
    }

    fn patch(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        let id = id_of(resource, namespace, name);
        match (self.current(resource, &id)?, patch.kind) {
            (Some(live), PatchKind::Merge | PatchKind::Apply) => {
                let mut after = laid_over(&live, &patch.document);
                set_meta(&mut after, "resourceVersion", live.at(&["metadata", "resourceVersion"]).cloned());
                self.update(resource, after, options)
            }
            (None, PatchKind::Apply) => self.create(resource, patch.document.clone(), options),
            (None, _) => Err(ClusterError::not_found(resource, name)),
            // The controller does not send such patches.
            (Some(_), PatchKind::Json | PatchKind::Strategic) => {
                Err(ClusterError::not_implemented("a plan does not know such patches"))
            }
        }
    }

    fn delete(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        let id = id_of(resource, namespace, name);
        let mut live = self.current(resource, &id)?.ok_or_else(|| ClusterError::not_found(resource, name))?;
        for (key, asked) in [("uid", &options.uid), ("resourceVersion", &options.resource_version)] {
            if !asked.is_empty() && live.str_at(&["metadata", key]) != Some(asked.as_str()) {
                return Err(ClusterError::modified(resource, name));
            }
        }
        let held = live.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
        if held {
            set_meta(&mut live, "deletionTimestamp", Some(self.now.clone().into()));
            return Ok(Deletion::Pending(self.store(id, live)));
        }
        let mut written = self.lock();
        written.events.push((id.group_kind(), StoreEvent::Delete(live.clone())));
        written.objects.insert(id, None);
        Ok(Deletion::Done(live))
    }

    fn watch(&self, resource: &Resource, query: &WatchQuery) -> Result<Box<dyn Watch>, ClusterError> {
        self.inner.watch(resource, query)
    }

    fn raw(&self, request: &RawRequest) -> Result<Value, ClusterError> {
        let path = request.path.split('?').next().unwrap_or_default();
        let target = target(&*self.discovery()?, path);
        match (request.method, target) {
            (Method::Get, Some(target)) if target.subresource.is_none() => answer(self, request),
            (
                Method::Get | Method::Put,
                Some(Target { resource, namespace, name: Some(name), subresource: Some(below) }),
            ) => {
                let Some(view) = View::of_subresource(&resource, &below) else { return self.inner.raw(request) };
                let id = id_of(&resource, namespace.as_deref(), &name);
                let live = self.current(&resource, &id)?.ok_or_else(|| ClusterError::not_found(&resource, &name))?;
                let Some(wanted) = request.body.clone() else { return view.show(&resource, &live) };
                let mut after = view.back(&resource, &live, wanted.clone());
                let version = wanted.at(&["metadata", "resourceVersion"]).cloned();
                set_meta(&mut after, "resourceVersion", version);
                let written =
                    self.update(&resource, after, &WriteOptions { part: Part::Status, ..WriteOptions::default() })?;
                view.show(&resource, &written)
            }
            _ => self.inner.raw(request),
        }
    }
}
