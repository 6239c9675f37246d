//! What objects of Kubernetes' own kinds must be like, as far as their schema does not say.
//!
//! Required fields, selectors that select their own template, fields that never change. An API server knows far more
//! rules; these are the ones that mistakes in manifests run into.

use ephor_expr::{Map, Value};

use super::{definitions, pods};
use crate::error::Cause;
use crate::resource::Resource;
use crate::schema::{Kind, Schema};

const MAX_DEPTH: usize = 32;

/// What is wrong with `object`; `before` is what it replaces.
pub(super) fn check(resource: &Resource, schema: Schema<'_>, object: &Value, before: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    // Events come from programs that leave much out.
    if resource.kind != "Event" {
        for (key, field) in schema.fields().filter(|(key, _)| !matches!(*key, "metadata" | "status")) {
            required(field, object.get(key), key, &mut causes, MAX_DEPTH);
        }
    }
    if let Some(place) =
        pods::place(&resource.kind).filter(|_| matches!(resource.group.as_str(), "" | "apps" | "batch"))
        && let Some(spec) = object.at(place)
    {
        let claims = object.at(&["spec", "volumeClaimTemplates"]).and_then(Value::as_array);
        pods::check(spec, &place.join("."), claims.unwrap_or_default(), &mut causes);
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("apps", "Deployment" | "DaemonSet" | "ReplicaSet" | "StatefulSet") => {
            selector(object, &mut causes);
            if let Some(before) = before.filter(|_| resource.kind != "ReplicaSet") {
                fixed(object, before, &["spec", "selector"], &mut causes);
            }
        }
        ("batch", "CronJob") => schedule(object, &mut causes),
        ("", "ConfigMap" | "Secret") => {
            if resource.kind == "Secret" {
                secret(object, &mut causes);
            }
            if let Some(before) = before {
                immutable_data(object, before, &mut causes);
                if resource.kind == "Secret" {
                    fixed(object, before, &["type"], &mut causes);
                }
            }
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            if let Some(before) = before
                && before.get("roleRef") != object.get("roleRef")
            {
                let shown = object.get("roleRef").map(Value::to_json).unwrap_or_default();
                causes.push(Cause::invalid_raw("roleRef", &shown, "cannot change roleRef"));
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definitions::check(object, before, &mut causes),
        ("", "Pod") => {
            if let Some(before) = before {
                pod(object, before, &mut causes);
            }
        }
        _ => {}
    }
    causes
}

/// Reports what the schema requires and is not there. An object that is required and missing is as good as an empty
/// one: Go has no word for the difference.
fn required(schema: Schema<'_>, value: Option<&Value>, path: &str, causes: &mut Vec<Cause>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Some(Value::Array(items)) => {
            if let Some(item) = schema.items() {
                for (index, value) in items.iter().enumerate() {
                    required(item, Some(value), &format!("{path}[{index}]"), causes, depth);
                }
            }
        }
        Some(Value::Object(members)) => {
            for key in schema.required() {
                let Some(member) = schema.member(key) else { continue };
                // Names must be something, values may be empty: Go has no word for that difference either.
                if key == "value" {
                    continue;
                }
                let present = members.get(key);
                let below = format!("{path}.{key}");
                match member.kind() {
                    Kind::Object | Kind::Any if present.is_none() => {
                        let nothing = Value::object(Map::new());
                        required(member, Some(&nothing), &below, causes, depth);
                    }
                    Kind::String if present.and_then(Value::as_str).is_some_and(|text| !text.is_empty()) => {}
                    Kind::Array if present.and_then(Value::as_array).is_some_and(|items| !items.is_empty()) => {}
                    Kind::String | Kind::Array => causes.push(Cause::required(below, "")),
                    _ if present.is_none() => causes.push(Cause::required(below, "")),
                    _ => {}
                }
            }
            for (key, value) in members.iter() {
                if let Some(member) = schema.member(key) {
                    required(member, Some(value), &format!("{path}.{key}"), causes, depth);
                }
            }
        }
        _ => {}
    }
}

fn selector(object: &Value, causes: &mut Vec<Cause>) {
    let Some(selector) = object.at(&["spec", "selector"]) else {
        causes.push(Cause::required("spec.selector", ""));
        return;
    };
    let labels = object.at(&["spec", "template", "metadata", "labels"]);
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let misses =
        wanted.into_iter().flat_map(Map::iter).any(|(key, value)| labels.and_then(|l| l.get(key)) != Some(value));
    if misses {
        let shown = labels.map_or_else(|| "null".to_owned(), Value::to_json);
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid_raw("spec.template.metadata.labels", &shown, why));
    }
}

/// The keys that a Secret of a type of Kubernetes must have.
fn secret(object: &Value, causes: &mut Vec<Cause>) {
    let keys: &[&str] = match object.str_at(&["type"]) {
        Some("kubernetes.io/tls") => &["tls.crt", "tls.key"],
        Some("kubernetes.io/dockerconfigjson") => &[".dockerconfigjson"],
        Some("kubernetes.io/dockercfg") => &[".dockercfg"],
        Some("kubernetes.io/ssh-auth") => &["ssh-privatekey"],
        _ => &[],
    };
    for key in keys.iter().filter(|key| object.at(&["data", key]).is_none()) {
        causes.push(Cause::required(format!("data[{key}]"), ""));
    }
}

/// A schedule has five fields, or is a word like `@daily`.
fn schedule(object: &Value, causes: &mut Vec<Cause>) {
    let given = object.str_at(&["spec", "schedule"]).unwrap_or_default();
    let fields: Vec<&str> = given.split_whitespace().collect();
    if !given.is_empty() && !given.starts_with('@') && fields.len() != 5 {
        let why = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
        causes.push(Cause::invalid("spec.schedule", given, &why));
    }
}

fn fixed(object: &Value, before: &Value, path: &[&str], causes: &mut Vec<Cause>) {
    if object.at(path) != before.at(path) {
        let shown = object.at(path).map_or_else(|| "null".to_owned(), Value::to_json);
        causes.push(Cause::invalid_raw(path.join("."), &shown, "field is immutable"));
    }
}

fn immutable_data(object: &Value, before: &Value, causes: &mut Vec<Cause>) {
    if before.get("immutable").and_then(Value::as_bool) != Some(true) {
        return;
    }
    for key in ["immutable", "data", "binaryData"] {
        if object.get(key) != before.get(key) {
            causes.push(Cause::forbidden(key, "field is immutable when `immutable` is set"));
        }
    }
}

/// A Pod's containers stay what they are but for their images.
fn pod(object: &Value, before: &Value, causes: &mut Vec<Cause>) {
    let substance = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        let Some(members) = spec.as_object_mut() else { return spec };
        for key in [
            "activeDeadlineSeconds",
            "tolerations",
            "nodeName",
            "ephemeralContainers",
            "schedulingGates",
            "nodeSelector",
            "affinity",
            "terminationGracePeriodSeconds",
        ] {
            members.remove(key);
        }
        for list in ["containers", "initContainers"] {
            if let Some(items) = members.get_mut(list).and_then(Value::as_array_mut) {
                for container in items.iter_mut().filter_map(Value::as_object_mut) {
                    for key in ["image", "imagePullPolicy", "resources", "resizePolicy"] {
                        container.remove(key);
                    }
                }
            }
        }
        spec
    };
    if substance(object) != substance(before) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
            `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
            tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        causes.push(Cause::forbidden("spec", why));
    }
}
