//! The part of an object that a request is about: all of it, its status, its scale.

use ephor_expr::{Map, Str, Value};

use super::kinds;
use super::update::FIXED;
use crate::error::{Cause, ClusterError};
use crate::object;
use crate::resource::{Resource, split_api_version};
use crate::write::Part;

/// The part of an object that a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// The object, without its status where that is kept apart.
    Whole,
    /// Its status.
    Status,
    /// Its number of replicas, as a `Scale`.
    Scale,
    /// Fields of it at these paths, in the form of the object.
    Fields(Str, &'static [&'static [&'static str]]),
}

impl View {
    pub(super) fn of_part(resource: &Resource, part: Part) -> Result<Self, ClusterError> {
        match part {
            Part::Object => Ok(Self::Whole),
            Part::Status if resource.has_status() => Ok(Self::Status),
            Part::Status => Err(ClusterError::no_such_path()),
        }
    }

    /// The view of a subresource that shows part of its object; `None` for the others.
    pub fn of_subresource(resource: &Resource, name: &str) -> Option<Self> {
        resource.subresource(name)?;
        let fields: &[&[&str]] = match name {
            "status" => return Some(Self::Status),
            "scale" => return Some(Self::Scale),
            "ephemeralcontainers" => &[&["spec", "ephemeralContainers"]],
            "resize" => &[&["spec", "containers"], &["spec", "initContainers"]],
            "approval" => &[&["status", "conditions"]],
            "finalize" => &[&["spec", "finalizers"]],
            _ => return None,
        };
        Some(Self::Fields(name.into(), fields))
    }

    /// The name in the URL; empty for the object itself.
    pub(super) fn subresource(&self) -> &str {
        match self {
            Self::Whole => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Fields(name, _) => name,
        }
    }

    /// The kind of what is shown.
    pub(super) fn kind(&self, resource: &Resource) -> Resource {
        let Some(below) = resource.subresource(self.subresource()).filter(|_| *self == Self::Scale) else {
            return resource.clone();
        };
        let (group, version) = split_api_version(&below.api_version);
        Resource {
            group: group.into(),
            version: version.into(),
            kind: below.kind.clone(),
            origin: crate::resource::Origin::BuiltIn,
            subresources: [].into(),
            ..resource.clone()
        }
    }

    /// What a client sees. Errors if the object has nothing of the kind.
    pub fn show(&self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        match self {
            Self::Scale => scale_of(resource, object),
            _ => Ok(object.clone()),
        }
    }

    /// What a client wants, without what it cannot change through this view; what admission sees.
    pub(super) fn confined(&self, resource: &Resource, current: &Value, wanted: Value) -> Value {
        match self {
            Self::Scale => wanted,
            _ => self.back(resource, current, wanted),
        }
    }

    /// The object after the part that is shown has become `wanted`.
    pub fn back(&self, resource: &Resource, current: &Value, wanted: Value) -> Value {
        match self {
            Self::Whole => {
                let mut next = wanted;
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
                next
            }
            Self::Status => {
                let mut next = current.clone();
                object::copy_member(&mut next, &wanted, "status");
                object::copy(&mut next, &wanted, "managedFields");
                next
            }
            Self::Scale => {
                let mut next = current.clone();
                let replicas = wanted.at(&["spec", "replicas"]).cloned().unwrap_or(Value::Int(0));
                match &resource.scale {
                    Some(paths) => set_at(&mut next, &borrowed(&paths.wanted), Some(replicas)),
                    None => set_at(&mut next, &["spec", "replicas"], Some(replicas)),
                }
                next
            }
            Self::Fields(_, paths) => {
                let mut next = current.clone();
                for path in *paths {
                    set_at(&mut next, path, wanted.at(path).cloned());
                }
                next
            }
        }
    }
}

fn set_at(value: &mut Value, path: &[&str], new: Option<Value>) {
    let Some((first, rest)) = path.split_first() else { return };
    let Some(members) = value.as_object_mut() else { return };
    if rest.is_empty() {
        match new {
            Some(new) => members.insert(*first, new),
            None => members.remove(first),
        };
        return;
    }
    let below = members.entry(first);
    if below.as_object().is_none() {
        if new.is_none() {
            return;
        }
        *below = Value::object(Map::new());
    }
    set_at(below, rest, new);
}

fn borrowed(path: &[Str]) -> Vec<&str> {
    path.iter().map(Str::as_str).collect()
}

fn scale_of(resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
    if resource.subresource("scale").is_none() {
        return Err(ClusterError::no_such_path());
    }
    let metadata = ["creationTimestamp", "name", "namespace", "resourceVersion", "uid"]
        .into_iter()
        .filter_map(|key| Some((Str::new_static(key), object.at(&["metadata", key])?.clone())));
    let number = |keys: &[&str], default: i64| object.at(keys).and_then(Value::as_i64).unwrap_or(default);
    let (wanted, present) = match &resource.scale {
        Some(paths) => (number(&borrowed(&paths.wanted), 0), number(&borrowed(&paths.present), 0)),
        None => (number(&["spec", "replicas"], 1), number(&["status", "replicas"], 0)),
    };
    let mut status = Map::from_iter([("replicas".into(), Value::Int(present))]);
    if let Some(paths) = &resource.scale {
        let selector = paths.selector.as_ref().and_then(|path| object.str_at(&borrowed(path)));
        if let Some(selector) = selector {
            status.insert("selector", selector);
        }
    } else if let Some(selector) = object.at(&["spec", "selector"]) {
        let labels = selector.get("matchLabels").unwrap_or(selector).as_object().cloned().unwrap_or_default();
        let terms: Vec<String> =
            labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
        status.insert("selector", terms.join(","));
    }
    Ok(Value::from([
        ("apiVersion", Value::from("autoscaling/v1")),
        ("kind", Value::from("Scale")),
        ("metadata", Value::object(metadata.collect())),
        ("spec", Value::from([("replicas", Value::Int(wanted))])),
        ("status", Value::object(status)),
    ]))
}

/// A scale that nothing can have.
pub(super) fn check_scale(resource: &Resource, name: &str, scale: &Value) -> Result<(), ClusterError> {
    match scale.at(&["spec", "replicas"]).and_then(Value::as_i64) {
        Some(replicas) if replicas < 0 => {
            let why = "must be greater than or equal to 0";
            let cause = Cause::invalid_raw("spec.replicas", &replicas.to_string(), why);
            Err(ClusterError::invalid(resource, name, &[cause]))
        }
        _ => Ok(()),
    }
}
