//! The way of a write: the new state, admission, the store.
//!
//! Admission is asked without holding the lock, since it asks the cluster itself. If the object is another one when
//! its answer is there, the write starts over, as on an API server.

use ephor_expr::{Map, Str, Value};

use super::cluster::MemoryCluster;
use super::create::Noted;
use super::kinds;
use super::reviews;
use super::state::{Key, State};
use super::update::{Change, check_place};
use super::view::{View, check_scale};
use crate::admission::{Attributes, Operation};
use crate::error::{ClusterError, ErrorKind};
use crate::object;
use crate::resource::Resource;
use crate::write::{DeleteOptions, Deletion, Patch, PatchKind, WriteOptions};

/// So often a write is tried when others keep writing the same object.
const ATTEMPTS: usize = 16;

impl MemoryCluster {
    pub(super) fn create_object(
        &self,
        resource: &Resource,
        object: Value,
        options: &WriteOptions,
        noted: Noted,
    ) -> Result<Value, ClusterError> {
        let mut warnings = Vec::new();
        let draft = self.read(|state| state.draft(resource, object, options, &mut warnings))?;
        if !resource.stored {
            return reviews::answer(resource, draft, self.user());
        }
        self.warn(warnings);
        let mut attributes = self.attributes(resource, Operation::Create, "", &draft);
        attributes.dry_run = options.dry_run;
        attributes.options = write_options("CreateOptions", options);
        attributes.object = draft;
        let draft = self.mutated(&mut attributes)?;
        let draft = self.read(|state| redraft(state, resource, &attributes, draft))?;
        let (key, object) = self.write(|state| {
            let identified = state.identified(resource, draft, options, noted)?;
            if !options.dry_run {
                state.identities.advance();
            }
            Ok::<_, ClusterError>(identified)
        })?;
        attributes.name = key.name.clone();
        attributes.object = object.clone();
        self.validated(&attributes)?;
        self.write(|state| state.insert(resource, &key, object, options.dry_run))
    }

    /// Changes the part of an object that `view` shows; gives back that part.
    pub(super) fn change_object(
        &self,
        resource: &Resource,
        key: &Key,
        view: &View,
        change: Change<'_>,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        for _ in 0..ATTEMPTS {
            let read: Result<_, ClusterError> = self.read(|state| {
                let current = state.get(resource, key)?;
                let (wanted, warnings) = state.wanted(resource, key, view, &current, change, options)?;
                Ok((current, wanted, warnings))
            });
            let (current, wanted, warnings) = match (read, change) {
                (Ok(read), _) => read,
                (Err(missing), Change::Patch(Patch { kind: PatchKind::Apply, document }))
                    if missing.kind() == ErrorKind::NotFound && *view == View::Whole =>
                {
                    return self.create_applied(resource, key, document, options);
                }
                (Err(error), _) => return Err(error),
            };
            self.warn(warnings);
            let shown = view.show(resource, &current)?;
            let mut attributes = self.attributes(resource, Operation::Update, view.subresource(), &current);
            let kind = view.kind(resource);
            attributes.kind = (kind.api_version(), kind.kind.clone());
            attributes.dry_run = options.dry_run;
            attributes.options = write_options(
                if matches!(change, Change::Patch(_)) { "PatchOptions" } else { "UpdateOptions" },
                options,
            );
            attributes.old_object = shown;
            attributes.object = wanted;
            let wanted = self.mutated(&mut attributes)?;
            if *view == View::Scale {
                check_scale(resource, &key.name, &wanted)?;
            }
            let mut warnings = Vec::new();
            let next = self.read(|state| {
                let wanted = state.conformed(&kind, wanted, crate::write::FieldValidation::Ignore, &mut Vec::new())?;
                let next = state.settled(resource, view, &current, wanted, change, options)?;
                state.check_schema(resource, &next, Some(&current), &mut warnings)?;
                Ok::<_, ClusterError>(next)
            });
            self.warn(warnings);
            let next = next?;
            attributes.object = view.show(resource, &next)?;
            self.validated(&attributes)?;
            if let Some(stored) = self.write(|state| state.succeed(resource, key, &current, next, options.dry_run)) {
                return view.show(resource, &stored);
            }
            let is_conditional = match change {
                Change::Replace(submitted) => !object::text(submitted, "resourceVersion").is_empty(),
                Change::Patch(patch) => patch.document.at(&["metadata", "resourceVersion"]).is_some(),
            };
            if is_conditional {
                break;
            }
        }
        Err(ClusterError::modified(resource, &key.name))
    }

    /// Server-side apply of an object that is not there yet.
    fn create_applied(
        &self,
        resource: &Resource,
        key: &Key,
        config: &Value,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        let mut config = config.clone();
        for (field, text) in [("name", &key.name), ("namespace", &key.namespace)] {
            if object::text(&config, field).is_empty() && !text.is_empty() {
                object::set(&mut config, field, text.clone());
            }
        }
        check_place(&config, key)?;
        if !object::text(&config, "uid").is_empty() || !object::text(&config, "resourceVersion").is_empty() {
            return Err(ClusterError::not_found(resource, &key.name));
        }
        let object = self.read(|state| state.applied(resource, &View::Whole, None, &config, options))?;
        self.create_object(resource, object, options, Noted::ByApply)
    }

    pub(super) fn delete_object(
        &self,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        for _ in 0..ATTEMPTS {
            let current = self.read(|state| state.deletable(resource, key, options))?;
            let mut attributes = self.attributes(resource, Operation::Delete, "", &current);
            attributes.dry_run = options.dry_run;
            attributes.options = delete_options(options);
            attributes.old_object = current.clone();
            self.mutated(&mut attributes)?;
            self.validated(&attributes)?;
            let version = object::text(&current, "resourceVersion");
            let deleted = self.write(|state| {
                let present = state.get(resource, key)?;
                if object::text(&present, "resourceVersion") == version {
                    state.delete(resource, key, options).map(Some)
                } else {
                    Ok(None)
                }
            })?;
            if let Some(deletion) = deleted {
                return Ok(deletion);
            }
        }
        Err(ClusterError::modified(resource, &key.name))
    }

    /// What admission is told about a write of `object`.
    pub(super) fn attributes(
        &self,
        resource: &Resource,
        operation: Operation,
        subresource: &str,
        object: &Value,
    ) -> Attributes {
        let name = Str::new(object::name(object));
        let namespace = if kinds::is_namespace(resource) { name.clone() } else { Str::new(object::namespace(object)) };
        Attributes {
            serial: self.next_serial(),
            operation,
            resource: resource.clone(),
            subresource: subresource.into(),
            kind: (resource.api_version(), resource.kind.clone()),
            namespace,
            name,
            object: Value::Null,
            old_object: Value::Null,
            options: Value::Null,
            dry_run: false,
            user: self.user().clone(),
        }
    }

    /// The object after mutating admission.
    pub(super) fn mutated(&self, attributes: &mut Attributes) -> Result<Value, ClusterError> {
        if let Some(admission) = self.admission() {
            let mutated = admission.mutate(attributes)?;
            self.warn(mutated.warnings);
            if let Some(object) = mutated.object.filter(|_| attributes.operation != Operation::Delete) {
                attributes.object = object;
            }
        }
        Ok(attributes.object.clone())
    }

    pub(super) fn validated(&self, attributes: &Attributes) -> Result<(), ClusterError> {
        if let Some(admission) = self.admission() {
            let warnings = admission.validate(attributes)?;
            self.warn(warnings);
        }
        Ok(())
    }
}

/// The draft after admission: still of its kind, at its place.
fn redraft(state: &State, resource: &Resource, attributes: &Attributes, draft: Value) -> Result<Value, ClusterError> {
    let draft = super::create::shaped(resource, draft)?;
    if resource.namespaced && object::namespace(&draft) != attributes.namespace {
        return Err(ClusterError::bad_request("admission changed the namespace of the object"));
    }
    state.conformed(resource, draft, crate::write::FieldValidation::Ignore, &mut Vec::new())
}

fn write_options(kind: &str, options: &WriteOptions) -> Value {
    let mut members = options_of(kind, options.dry_run);
    if !options.field_manager.is_empty() {
        members.insert("fieldManager", options.field_manager.clone());
    }
    if options.force {
        members.insert("force", true);
    }
    Value::object(members)
}

fn delete_options(options: &DeleteOptions) -> Value {
    let mut members = options_of("DeleteOptions", options.dry_run);
    if let Some(propagation) = options.propagation {
        members.insert("propagationPolicy", format!("{propagation:?}"));
    }
    Value::object(members)
}

fn options_of(kind: &str, dry_run: bool) -> Map {
    let mut members = Map::from_iter([
        (Str::new_static("apiVersion"), Value::from("meta.k8s.io/v1")),
        (Str::new_static("kind"), Value::from(kind)),
    ]);
    if dry_run {
        members.insert("dryRun", vec!["All"]);
    }
    members
}
