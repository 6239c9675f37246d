//! What the metadata of an object must be like to be stored.

use ephor_expr::{Map, Str, Value};

use super::names::{key_problem, name_problem, value_problem};
use crate::error::{Cause, ClusterError};
use crate::object;
use crate::resource::{Origin, Resource};

/// The annotations of one object together may have so many bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Finalizers of Kubernetes itself, which have no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Checks that the metadata of a new or changed object is in order.
pub(super) fn validate(resource: &Resource, candidate: &Value) -> Result<(), ClusterError> {
    let mut causes = Vec::new();
    let name = object::name(candidate);
    if let Some(problem) = name_problem(resource, name) {
        causes.push(Cause::invalid("metadata.name", name, &problem));
    }
    labels(candidate, &mut causes);
    annotations(candidate, &mut causes);
    owners(candidate, &mut causes);
    for (index, finalizer) in object::texts(candidate, "finalizers").enumerate() {
        if let Some(problem) = key_problem(finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", finalizer, &problem));
        } else if !finalizer.contains('/')
            && resource.origin == Origin::BuiltIn
            && !STANDARD_FINALIZERS.contains(&finalizer)
        {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(format!("metadata.finalizers[{index}]"), finalizer, why));
        }
    }
    refuse(resource, name, &causes)
}

/// Checks that an update does not ask for what no update can do.
pub(super) fn validate_update(resource: &Resource, candidate: &Value, current: &Value) -> Result<(), ClusterError> {
    let mut causes = Vec::new();
    if object::is_deleting(current) {
        let known: Vec<&str> = object::texts(current, "finalizers").collect();
        let extra: Vec<String> =
            object::texts(candidate, "finalizers").filter(|f| !known.contains(f)).map(|f| format!("{f:?}")).collect();
        if !extra.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                extra.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    refuse(resource, object::name(current), &causes)
}

fn refuse(resource: &Resource, name: &str, causes: &[Cause]) -> Result<(), ClusterError> {
    if causes.is_empty() { Ok(()) } else { Err(ClusterError::invalid(resource, name, causes)) }
}

fn entries<'o>(candidate: &'o Value, key: &str) -> impl Iterator<Item = (&'o Str, &'o Value)> {
    candidate.at(&["metadata", key]).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn labels(candidate: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in entries(candidate, "labels") {
        if let Some(problem) = key_problem(key) {
            causes.push(Cause::invalid("metadata.labels", key, &problem));
        }
        match value.as_str() {
            Some(text) => {
                if let Some(problem) = value_problem(text) {
                    causes.push(Cause::invalid("metadata.labels", text, &problem));
                }
            }
            None => causes.push(Cause::invalid_raw("metadata.labels", &value.to_json(), "must be a string")),
        }
    }
}

fn annotations(candidate: &Value, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in entries(candidate, "annotations") {
        if let Some(problem) = key_problem(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", key, &problem));
        }
        match value.as_str() {
            Some(text) => size += key.len() + text.len(),
            None => causes.push(Cause::invalid_raw("metadata.annotations", &value.to_json(), "must be a string")),
        }
    }
    if size > MAX_ANNOTATIONS {
        causes.push(Cause::too_long("metadata.annotations", MAX_ANNOTATIONS));
    }
}

fn owners(candidate: &Value, causes: &mut Vec<Cause>) {
    let references = candidate.at(&["metadata", "ownerReferences"]).and_then(Value::as_array).unwrap_or_default();
    let mut controller: Option<&str> = None;
    for reference in references {
        for (key, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if reference.str_at(&[key]).is_none_or(str::is_empty) {
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{key}"), "", why));
            }
        }
        if reference.get("controller").and_then(Value::as_bool) == Some(true) {
            let name = reference.str_at(&["name"]).unwrap_or_default();
            if let Some(first) = controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                causes.push(Cause::invalid_raw(
                    "metadata.ownerReferences",
                    &Value::from(references.to_vec()).to_json(),
                    &why,
                ));
            }
            controller.get_or_insert(name);
        }
    }
}
