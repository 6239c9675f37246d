//! The one way in which rules of policies write: each write is within the policy's scope, behind the fence, and bound
//! to the object that was looked at.

use ephor_cluster::raw::RawRequest;
use ephor_cluster::write::{Part, Propagation};
use ephor_cluster::{ClusterError, DeleteOptions, ErrorKind, Patch, Resource, WriteOptions};
use ephor_engine::rules::mutate::identity;
use ephor_expr::{Str, Value};
use ephor_runtime::content::set_meta;

use super::{Env, FIELD_MANAGER, WriteError, WriteScope};
use crate::plan::{Action, Change, ObjectId};

/// Writes for the rules of one policy; see [`Env::writer`].
#[derive(Debug)]
pub struct Writer<'e> {
    pub(super) env: &'e Env,
    pub(super) scope: WriteScope,
}

/// What of an existing object is replaced.
#[derive(Debug, Clone, Copy)]
pub enum Place<'p> {
    /// The object or its status.
    Part(Part),
    /// What is below the object, for example its `scale`.
    Subresource(&'p str),
}

impl Writer<'_> {
    /// Whether the policy may write an object.
    pub fn may_write(&self, resource: &Resource, id: &ObjectId) -> Result<(), WriteError> {
        Ok(self.scope.check(resource, id, &self.env.namespace)?)
    }

    /// Makes a change. Gives back what is stored then; `None` after a deletion.
    pub fn apply(&self, change: &Change) -> Result<Option<Value>, WriteError> {
        let resource = self.env.resource(&change.api_version, &change.id.kind)?;
        let id = &change.id;
        match &change.action {
            Action::Create(object) => {
                let object = named(id, object)?.clone();
                self.admit(&resource, id)?;
                Ok(Some(self.env.cluster.create(&resource, object, &options())?))
            }
            Action::Replace { before, after } => {
                named(id, before)?;
                self.replace(&resource, Place::Part(Part::Object), before, after).map(Some)
            }
            Action::Apply { before, after } => {
                let mut after = named(id, after)?.clone();
                // An object that does not exist yet has no UID to bind to. Without force, the apply takes no field
                // from another manager that creates it meanwhile.
                if let Some(before) = before {
                    named(id, before)?;
                    set_meta(&mut after, "uid", before.at(&["metadata", "uid"]).cloned());
                }
                let options = WriteOptions { force: before.is_some(), ..options() };
                self.admit(&resource, id)?;
                let patch = Patch::apply(after);
                Ok(Some(self.env.cluster.patch(&resource, id.namespace(), &id.name, &patch, &options)?))
            }
            Action::Delete { before, .. } => {
                named(id, before)?;
                let text = |key: &str| Str::new(before.str_at(&["metadata", key]).unwrap_or_default());
                let options = DeleteOptions {
                    uid: text("uid"),
                    resource_version: text("resourceVersion"),
                    propagation: Some(Propagation::Background),
                    ..DeleteOptions::default()
                };
                self.admit(&resource, id)?;
                match self.env.cluster.delete(&resource, id.namespace(), &id.name, &options) {
                    Ok(_) => Ok(None),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }

    /// Replaces an object that was read as `before`, or a part of it; what is stored then. Which object is written is
    /// read from `before` alone, and `after` must be the same one.
    pub fn replace(
        &self,
        resource: &Resource,
        place: Place<'_>,
        before: &Value,
        after: &Value,
    ) -> Result<Value, WriteError> {
        identity::kept(before, after)?;
        let id = ObjectId::of(before);
        self.admit(resource, &id)?;
        let cluster = &self.env.cluster;
        Ok(match place {
            Place::Part(part) => {
                in_kind(resource, before)?;
                cluster.update(resource, after.clone(), &WriteOptions { part, ..options() })?
            }
            Place::Subresource(subresource) => {
                let path = resource.path(id.namespace(), Some(&id.name));
                let path = format!("{path}/{subresource}?fieldManager={FIELD_MANAGER}");
                cluster.raw(&RawRequest::put(path, after.clone()))?
            }
        })
    }

    /// Adds a label to an object that was read.
    pub fn label(&self, object: &Value, key: &str, value: &str) -> Result<Value, WriteError> {
        let id = ObjectId::of(object);
        let resource = self.env.resource(object.str_at(&["apiVersion"]).unwrap_or_default(), &id.kind)?;
        let text = |key: &str| object.at(&["metadata", key]).cloned().unwrap_or_default();
        let metadata = Value::from([
            ("labels", Value::from([(Str::new(key), Value::from(value))])),
            ("resourceVersion", text("resourceVersion")),
            ("uid", text("uid")),
        ]);
        self.admit(&resource, &id)?;
        let patch = Patch::merge(Value::from([("metadata", metadata)]));
        Ok(self.env.cluster.patch(&resource, id.namespace(), &id.name, &patch, &options())?)
    }

    /// Comes right before each write: the policy may write this object, and this replica still leads.
    fn admit(&self, resource: &Resource, id: &ObjectId) -> Result<(), WriteError> {
        self.may_write(resource, id)?;
        Ok((self.env.fence)()?)
    }
}

/// The object, if it is the one that is meant.
fn named<'o>(id: &ObjectId, object: &'o Value) -> Result<&'o Value, WriteError> {
    let found = ObjectId::of(object);
    if found == *id {
        Ok(object)
    } else {
        Err(WriteError::OtherObject { meant: Box::new(id.clone()), found: Box::new(found) })
    }
}

/// An update names its object by the kind of call, so the object must be of that kind.
fn in_kind(resource: &Resource, object: &Value) -> Result<(), ClusterError> {
    let id = ObjectId::of(object);
    if id.kind == resource.kind && id.group == resource.group {
        Ok(())
    } else {
        Err(ClusterError::bad_request(format!("{id} is not one of the {}", resource.qualified_plural())))
    }
}

/// What writes are done with.
fn options() -> WriteOptions {
    WriteOptions { field_manager: Str::new_static(FIELD_MANAGER), ..WriteOptions::default() }
}
