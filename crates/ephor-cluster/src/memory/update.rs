//! Updating and patching: what an object becomes.

use ephor_expr::{Str, Value};

use super::create::shaped;
use super::kinds;
use super::ownership::{self, Writer};
use super::patch::{PatchFault, json, merge as merge_patch, strategic};
use super::state::{Key, State};
use super::validate::{validate, validate_update};
use super::view::View;
use crate::error::{Cause, ClusterError};
use crate::object;
use crate::resource::{Origin, Resource};
use crate::schema::Schema;
use crate::write::{Patch, PatchKind, WriteOptions};

/// What a client cannot change about an object's metadata.
pub(super) const FIXED: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
    "resourceVersion",
];

/// What a client asks for.
#[derive(Clone, Copy)]
pub(super) enum Change<'c> {
    /// That the object be this.
    Replace(&'c Value),
    /// That the object be changed so.
    Patch(&'c Patch),
}

impl State {
    /// What is to be changed and where, by the metadata of an object that is to replace it.
    pub(super) fn key_of(&self, resource: &Resource, submitted: &Value) -> Result<Key, ClusterError> {
        let name = object::name(submitted);
        if name.is_empty() {
            let cause = Cause::required("metadata.name", "name is required");
            return Err(ClusterError::invalid(resource, "", &[cause]));
        }
        let namespace = match object::namespace(submitted) {
            "" if resource.namespaced && !self.is_strict() => Some("default"),
            "" => None,
            given => Some(given),
        };
        self.key(resource, namespace, name)
    }

    /// What the client wants the part that `view` shows to be, with warnings. `current` is the object as it is.
    pub(super) fn wanted(
        &self,
        resource: &Resource,
        key: &Key,
        view: &View,
        current: &Value,
        change: Change<'_>,
        options: &WriteOptions,
    ) -> Result<(Value, Vec<String>), ClusterError> {
        let shown = view.show(resource, current)?;
        let kind = view.kind(resource);
        let wanted = match change {
            Change::Replace(submitted) => {
                let submitted = shaped(&kind, submitted.clone())?;
                let (uid, present) = (object::text(&submitted, "uid"), object::text(current, "uid"));
                if !uid.is_empty() && uid != present {
                    return Err(uid_conflict(resource, key, uid, present));
                }
                if object::text(&submitted, "resourceVersion").is_empty()
                    && !kinds::allows_unconditional_update(resource)
                {
                    let cause = Cause::invalid_raw("metadata.resourceVersion", "0", "must be specified for an update");
                    // Upstream: the API server names the resource where it otherwise names the kind.
                    let named = Resource { kind: resource.plural.clone(), ..resource.clone() };
                    return Err(ClusterError::invalid(&named, &key.name, &[cause]));
                }
                submitted
            }
            Change::Patch(patch) => {
                let patched = shaped(&kind, self.patched(resource, view, &shown, patch, options)?)?;
                check_place(&patched, key)?;
                let uid = object::text(&patched, "uid");
                if uid != object::text(&shown, "uid") {
                    let cause = Cause::invalid("metadata.uid", uid, "field is immutable");
                    return Err(ClusterError::invalid(resource, &key.name, &[cause]));
                }
                patched
            }
        };
        let expected = object::text(&wanted, "resourceVersion");
        if !expected.is_empty() && expected != object::text(current, "resourceVersion") {
            return Err(ClusterError::modified(resource, &key.name));
        }
        let mut warnings = Vec::new();
        let wanted = self.conformed(&kind, wanted, options.field_validation, &mut warnings)?;
        Ok((view.confined(resource, current, wanted), warnings))
    }

    fn patched(
        &self,
        resource: &Resource,
        view: &View,
        current: &Value,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        let document = &patch.document;
        let kind = view.kind(resource);
        let refused = |fault: PatchFault| match fault {
            PatchFault::Malformed(why) => ClusterError::bad_request(why),
            PatchFault::Misfit(why) => ClusterError::unprocessable(why),
        };
        match patch.kind {
            PatchKind::Merge => merge_patch::merge(current, document)
                .ok_or_else(|| ClusterError::bad_request("the patch is nested too deeply")),
            PatchKind::Json => json::apply(current, document).map_err(refused),
            // Custom resources have no merge keys; an API server refuses such a patch as well.
            PatchKind::Strategic if resource.origin == Origin::Custom && !matches!(view, View::Scale) => {
                Err(unreadable(&[PatchKind::Json, PatchKind::Merge, PatchKind::Apply]))
            }
            PatchKind::Strategic => {
                let schema = Schema::built_in(&kind.api_version(), &kind.kind);
                strategic::apply(current, document, schema).map_err(refused)
            }
            PatchKind::Apply => self.applied(resource, view, Some(current), document, options),
        }
    }

    /// The object after a server-side apply; the whole of it if there was none.
    pub(super) fn applied(
        &self,
        resource: &Resource,
        view: &View,
        current: Option<&Value>,
        config: &Value,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        if options.field_manager.is_empty() {
            let cause = Cause::required("fieldManager", "is required for apply patch");
            return Err(ClusterError::invalid_options("PatchOptions", &[cause]));
        }
        if config.at(&["metadata", "managedFields"]).and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
            return Err(ClusterError::bad_request("metadata.managedFields must be nil"));
        }
        let kind = view.kind(resource);
        // Fields that the kind does not have get no owner. Reading the result warns about them.
        let mut config = match self.schema_of(&kind).get() {
            Some(schema) if options.field_validation != crate::write::FieldValidation::Strict => {
                crate::schema::conform::conform(schema, config).object
            }
            _ => config.clone(),
        };
        if matches!(view, View::Whole) && resource.has_status() {
            config.as_object_mut().and_then(|members| members.remove("status"));
        }
        let schema = self.schema_of(&kind);
        let now = self.now();
        let api_version = kind.api_version();
        let writer = Writer {
            manager: &options.field_manager,
            api_version: &api_version,
            subresource: view.subresource(),
            now: &now,
        };
        ownership::apply(schema.get(), current, &config, &writer, options.force).map_err(|conflicts| {
            ClusterError::apply_conflict(&ownership::conflict_message(&conflicts), &causes(&conflicts))
        })
    }

    /// What is stored when `wanted` is what the client, and admission, want, if its schema takes it.
    pub(super) fn settled(
        &self,
        resource: &Resource,
        view: &View,
        current: &Value,
        wanted: Value,
        change: Change<'_>,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        let mut next = view.back(resource, current, wanted);
        let is_apply = matches!(change, Change::Patch(Patch { kind: PatchKind::Apply, .. }));
        // A server-side apply has updated the managed fields already.
        if !is_apply {
            self.note_writer(resource, Some(current), &mut next, options, view.subresource());
        }
        if matches!(view, View::Whole) {
            validate(resource, &next)?;
            validate_update(resource, &next, current)?;
            if kinds::is_definition(resource) {
                kinds::validate_definition(&next)?;
            }
        }
        if next != *current
            && !matches!(view, View::Status)
            && kinds::has_generation(resource)
            && differs_in_substance(resource, &next, current)
        {
            bump_generation(&mut next);
        }
        Ok(next)
    }

    /// Stores the next state of an object, if it is still what `current` says; `None` if not.
    pub(super) fn succeed(
        &mut self,
        resource: &Resource,
        key: &Key,
        current: &Value,
        next: Value,
        dry_run: bool,
    ) -> Option<Value> {
        let version = |object: &Value| Str::new(object::text(object, "resourceVersion"));
        let present = self.find(resource, key)?;
        if version(present) != version(current) || object::text(present, "uid") != object::text(current, "uid") {
            return None;
        }
        if dry_run || next == *current {
            return Some(next);
        }
        Some(self.store(resource, key, next))
    }

    /// Notes in `next` what its writer owns now.
    pub(super) fn note_writer(
        &self,
        resource: &Resource,
        current: Option<&Value>,
        next: &mut Value,
        options: &WriteOptions,
        subresource: &str,
    ) {
        if !self.enforces_schemas() && !current.is_some_and(ownership::is_tracked) {
            return;
        }
        let schema = self.schema_of(resource);
        let api_version = resource.api_version();
        let manager = if options.field_manager.is_empty() { "unknown" } else { options.field_manager.as_str() };
        let writer = Writer { manager, api_version: &api_version, subresource, now: &self.now() };
        ownership::record(schema.get(), current, next, &writer, resource.has_status());
    }
}

/// Whether an object is still the one at that place.
pub(super) fn check_place(object: &Value, key: &Key) -> Result<(), ClusterError> {
    let name = object::name(object);
    if name != key.name {
        return Err(ClusterError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            key.name
        )));
    }
    if object::namespace(object) != key.namespace {
        return Err(ClusterError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn causes(conflicts: &[ownership::Conflict]) -> Vec<Cause> {
    let of = |conflict: &ownership::Conflict| {
        let message = format!("conflict with {}", conflict.owner);
        let cause = move |field: &String| Cause {
            field: field.as_str().into(),
            reason: "FieldManagerConflict",
            message: message.clone(),
        };
        conflict.fields.iter().map(cause).collect::<Vec<_>>()
    };
    conflicts.iter().flat_map(of).collect()
}

/// The next generation, where the kind counts them.
pub(super) fn bump_generation(object: &mut Value) {
    if let Some(generation) = object.at(&["metadata", "generation"]).and_then(Value::as_i64) {
        object::set(object, "generation", generation.saturating_add(1));
    }
}

/// Whether anything differs but metadata, and status where that is kept apart.
fn differs_in_substance(resource: &Resource, a: &Value, b: &Value) -> bool {
    let substance = |object: &Value| {
        let mut members = object.as_object().cloned().unwrap_or_default();
        members.remove("metadata");
        if resource.has_status() {
            members.remove("status");
        }
        members
    };
    substance(a) != substance(b)
}

/// The caller meant another object of the same name. The server passes on what its storage says.
fn uid_conflict(resource: &Resource, key: &Key, wanted: &str, present: &str) -> ClusterError {
    let group = if resource.origin == Origin::BuiltIn { "" } else { resource.group.as_str() };
    let place = [group, &resource.plural, &key.namespace, &key.name];
    let place: Vec<&str> = place.into_iter().filter(|part| !part.is_empty()).collect();
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {wanted}, UID in object meta: {present}",
        place.join("/")
    );
    ClusterError::conflict(resource, &key.name, &why)
}

fn unreadable(accepted: &[PatchKind]) -> ClusterError {
    let types: Vec<_> = accepted.iter().map(|kind| kind.content_type()).collect();
    ClusterError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        types.join(", ")
    ))
}
