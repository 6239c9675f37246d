//! Updating and patching.

use ephor_expr::Value;

use super::create::shaped;
use super::kinds;
use super::merge_patch;
use super::state::{Key, State};
use super::validate::{validate, validate_update};
use crate::error::{Cause, ClusterError};
use crate::object;
use crate::resource::Resource;
use crate::write::{Part, Patch, PatchKind, WriteOptions};

/// What a client cannot change about an object's metadata.
const FIXED: [&str; 9] = [
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

impl State {
    /// Replaces an object.
    pub(super) fn update(
        &mut self,
        resource: &Resource,
        submitted: Value,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        self.check_served(resource)?;
        let submitted = shaped(resource, submitted)?;
        let name = object::name(&submitted);
        if name.is_empty() {
            let cause = Cause::required("metadata.name", "name is required");
            return Err(ClusterError::invalid(resource, "", &[cause]));
        }
        let namespace = match object::namespace(&submitted) {
            "" if resource.namespaced && !self.is_strict() => Some("default"),
            "" => None,
            given => Some(given),
        };
        let key = self.key(resource, namespace, name)?;
        let current = self.get(resource, &key)?;
        let (uid, present) = (object::text(&submitted, "uid"), object::text(&current, "uid"));
        if !uid.is_empty() && uid != present {
            return Err(uid_conflict(resource, &key.name, uid, present));
        }
        if object::text(&submitted, "resourceVersion").is_empty() && !kinds::allows_unconditional_update(resource) {
            let cause = Cause::invalid_raw("metadata.resourceVersion", "0x0", "must be specified for an update");
            return Err(ClusterError::invalid(resource, &key.name, &[cause]));
        }
        self.replace(resource, &key, &current, submitted, options)
    }

    /// Changes an object.
    pub(super) fn patch(
        &mut self,
        resource: &Resource,
        key: &Key,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        let current = self.get(resource, key)?;
        let patched = shaped(resource, self.patched(resource, &current, patch)?)?;
        let name = object::name(&patched);
        if name != key.name {
            return Err(ClusterError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                key.name
            )));
        }
        if object::namespace(&patched) != key.namespace {
            return Err(ClusterError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let uid = object::text(&patched, "uid");
        if uid != object::text(&current, "uid") {
            let cause = Cause::invalid("metadata.uid", uid, "field is immutable");
            return Err(ClusterError::invalid(resource, &key.name, &[cause]));
        }
        self.replace(resource, key, &current, patched, options)
    }

    fn patched(&self, resource: &Resource, current: &Value, patch: &Patch) -> Result<Value, ClusterError> {
        let document = &patch.document;
        match (patch.kind, &self.options.patches) {
            (PatchKind::Merge, _) => merge_patch::merge(current, document)
                .ok_or_else(|| ClusterError::bad_request("the patch is nested too deeply")),
            (PatchKind::Json, Some(patches)) => {
                patches.json(current, document).map_err(|e| ClusterError::bad_request(e.message))
            }
            (PatchKind::Strategic, Some(_)) if resource.origin == crate::resource::Origin::Custom => {
                // Nobody knows the merge keys of custom resources; an API server refuses as well.
                Err(unreadable(&[PatchKind::Json, PatchKind::Merge]))
            }
            (PatchKind::Strategic, Some(patches)) => {
                patches.strategic(resource, current, document).map_err(|e| ClusterError::bad_request(e.message))
            }
            (PatchKind::Json | PatchKind::Strategic, None) => Err(unreadable(&[PatchKind::Merge])),
        }
    }

    /// Makes `submitted` the state of the object, as far as a client may.
    fn replace(
        &mut self,
        resource: &Resource,
        key: &Key,
        current: &Value,
        submitted: Value,
        options: &WriteOptions,
    ) -> Result<Value, ClusterError> {
        let expected = object::text(&submitted, "resourceVersion");
        if !expected.is_empty() && expected != object::text(current, "resourceVersion") {
            return Err(ClusterError::modified(resource, &key.name));
        }
        let mut next = match options.part {
            Part::Status if !resource.has_status() => return Err(ClusterError::no_such_path()),
            Part::Status => {
                let mut next = current.clone();
                object::copy_member(&mut next, &submitted, "status");
                next
            }
            Part::Object => {
                let mut next = submitted;
                for field in FIXED {
                    object::copy(&mut next, current, field);
                }
                if resource.has_status() {
                    object::copy_member(&mut next, current, "status");
                }
                if kinds::is_namespace(resource) {
                    object::copy_member(&mut next, current, "spec");
                    kinds::label_namespace(&mut next);
                }
                validate(resource, &next)?;
                validate_update(resource, &next, current)?;
                if kinds::is_definition(resource) {
                    kinds::validate_definition(&next)?;
                }
                next
            }
        };
        if next == *current {
            return Ok(next);
        }
        if options.part == Part::Object
            && kinds::has_generation(resource)
            && differs_in_substance(resource, &next, current)
        {
            bump_generation(&mut next);
        }
        if options.dry_run {
            return Ok(next);
        }
        Ok(self.store(resource, key, next))
    }
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

/// The caller meant another object of the same name.
pub(super) fn uid_conflict(resource: &Resource, name: &str, wanted: &str, present: &str) -> ClusterError {
    let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {present}");
    ClusterError::conflict(resource, name, &why)
}

fn unreadable(accepted: &[PatchKind]) -> ClusterError {
    let types: Vec<_> = accepted.iter().map(|kind| kind.content_type()).collect();
    ClusterError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        types.join(", ")
    ))
}
