//! Merging a part of an object into an object, as `MutatingAdmissionPolicy` does.
//!
//! In go an object and a configuration, which says some of its fields; out comes the object with all that the
//! configuration says. Lists and maps are merged by the schema of the kind, as server-side apply merges them, but
//! without owners of fields. What the schema does not know, and lists and maps that can only be replaced as a whole,
//! are refused with the texts of an API server.

use std::fmt::Write as _;

use ephor_expr::Value;

use super::MemoryCluster;
use super::ownership::{self, Unkeyed};
use crate::cluster::Cluster as _;
use crate::schema::{Kind, ListKind, Schema};

/// Why a configuration is not merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The cluster does not know the kind.
    #[error(
        "Resource kind {api_version}, Kind={kind} not found. There can be a delay between when CustomResourceDefinitions are created and when they are available."
    )]
    UnknownKind {
        /// The version of the object.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// What of the configuration does not fit the schema, each with its path.
    #[error("error applying patch: failed to convert patch object to typed object: {}", listed(.0))]
    Misfit(Vec<String>),
    /// Lists of the object whose items cannot be told apart, each with its path.
    #[error("error applying patch: failed to convert original object to typed object: {}", listed(.0))]
    Indistinct(Vec<String>),
    /// Lists and maps that are replaced as a whole.
    #[error("error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}", .0.join(", "))]
    Atomic(Vec<String>),
}

/// Errors as the library for server-side apply prints them.
fn listed(lines: &[String]) -> String {
    match lines {
        [line] => line.clone(),
        lines => format!("errors:\n{}", lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")),
    }
}

impl MemoryCluster {
    /// `object` with all that `configuration` says.
    ///
    /// # Errors
    ///
    /// If the configuration is none of the object's kind, or would replace what is not merged.
    pub fn merge(&self, object: &Value, configuration: &Value) -> Result<Value, MergeError> {
        let text = |key| object.str_at(&[key]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let unknown = || MergeError::UnknownKind { api_version: api_version.to_owned(), kind: kind.to_owned() };
        let resource = self.resolve(api_version, kind).map_err(|_| unknown())?;
        let schema = self.read(|state| state.schema_of(&resource));
        let Some(schema) = schema.get() else {
            return Ok(ownership::merge(None, object, configuration));
        };
        // An object stays of its kind, whatever a configuration calls itself.
        let mut configuration = configuration.clone();
        if let Some(members) = configuration.as_object_mut() {
            members.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind"));
        }
        let mut look = Look::default();
        look.at(schema, &configuration, Some(object), &mut String::new(), &mut String::new());
        if !look.indistinct.is_empty() {
            return Err(MergeError::Indistinct(look.indistinct));
        }
        if !look.misfits.is_empty() {
            return Err(MergeError::Misfit(look.misfits));
        }
        if !look.atomic.is_empty() {
            return Err(MergeError::Atomic(look.atomic));
        }
        Ok(ownership::merge(Some(schema), object, &configuration))
    }
}

/// What cannot be merged.
#[derive(Default)]
struct Look {
    misfits: Vec<String>,
    /// Lists of the object.
    indistinct: Vec<String>,
    atomic: Vec<String>,
}

impl Look {
    /// Looks at a value at a path, which names items of lists by their keys in one text and by their place in the
    /// other, and at what the object has there. Recurses as deep as a CEL expression can build objects.
    fn at(
        &mut self,
        schema: Schema<'_>,
        value: &Value,
        live: Option<&Value>,
        by_key: &mut String,
        by_place: &mut String,
    ) {
        if let Some(wanted) = misfit(schema.kind(), value) {
            self.misfits.push(format!("{by_key}: {wanted}"));
            return;
        }
        let (key_length, place_length) = (by_key.len(), by_place.len());
        match value {
            Value::Object(members) => {
                if schema.is_atomic_map() {
                    self.atomic.push(by_place.clone());
                }
                for (key, member) in members.iter() {
                    let _ = write!(by_key, ".{key}");
                    let _ = write!(by_place, ".{key}");
                    match schema.member(key) {
                        Some(below) => self.at(below, member, live.and_then(|live| live.get(key)), by_key, by_place),
                        None if schema.keeps_unknown() => {}
                        None => self.misfits.push(format!("{by_key}: field not declared in schema")),
                    }
                    by_key.truncate(key_length);
                    by_place.truncate(place_length);
                }
            }
            Value::Array(items) => {
                let kind = schema.list_kind();
                if kind == ListKind::Atomic {
                    self.atomic.push(by_place.clone());
                }
                // Items that cannot be told apart would be replaced as a whole, and what is there would be lost.
                let there = live.and_then(Value::as_array).unwrap_or_default();
                let names = match ownership::names(schema, items) {
                    Some(Err(unkeyed)) => {
                        self.misfits.push(format!("{by_key}: {}", unkeyed_text(&kind, &unkeyed)));
                        return;
                    }
                    Some(Ok(names)) => names,
                    None => Vec::new(),
                };
                let known = match ownership::names(schema, there) {
                    Some(Err(unkeyed)) => {
                        self.indistinct.push(format!("{by_key}: {}", unkeyed_text(&kind, &unkeyed)));
                        return;
                    }
                    Some(Ok(known)) => known,
                    None => Vec::new(),
                };
                let Some(below) = schema.items() else { return };
                for (place, item) in items.iter().enumerate() {
                    by_key.push_str(&element(&kind, place, item));
                    let _ = write!(by_place, "[{place}]");
                    let name = names.get(place);
                    let at = name.and_then(|name| known.iter().position(|known| known == name));
                    self.at(below, item, at.and_then(|at| there.get(at)), by_key, by_place);
                    by_key.truncate(key_length);
                    by_place.truncate(place_length);
                }
            }
            _ => {}
        }
    }
}

/// What is wrong with a value where the schema wants this kind of one.
fn misfit(kind: Kind, value: &Value) -> Option<String> {
    let got = || match value {
        Value::Null => "&{NULL_VALUE}".to_owned(),
        Value::String(text) => format!("&{{{text}}}"),
        other => format!("&{{{}}}", other.to_json()),
    };
    match (kind, value) {
        (Kind::Object, value) if value.as_object().is_none() => Some(format!("expected map, got {}", got())),
        (Kind::Array, value) if value.as_array().is_none() => Some(format!("expected list, got {}", got())),
        (_, Value::Null) | (Kind::Integer | Kind::Number, Value::Int(_) | Value::Float(_)) => None,
        (Kind::String, value) if value.as_str().is_none() => Some(format!("expected string, got {}", got())),
        (Kind::Integer | Kind::Number, value) => {
            Some(format!("expected numeric (int or float), got {}", value.type_name()))
        }
        (Kind::Boolean, value) if value.as_bool().is_none() => Some(format!("expected boolean, got {}", got())),
        _ => None,
    }
}

fn unkeyed_text(kind: &ListKind<'_>, unkeyed: &Unkeyed) -> String {
    match unkeyed {
        Unkeyed::Without(place) => {
            let keys = if let ListKind::Map(keys) = kind { keys.join(", ") } else { String::new() };
            format!("element {place}: associative list with keys has an element that omits key field {keys:?}")
        }
        Unkeyed::Twice(name) => {
            let named = name.strip_prefix("k:").map(|json| Value::from_json(json).unwrap_or_default());
            let parts = named.as_ref().and_then(Value::as_object).into_iter().flat_map(ephor_expr::Map::iter);
            let parts: Vec<String> = parts.map(|(key, value)| format!("{key}={}", value.to_json())).collect();
            match named {
                Some(_) => format!("duplicate entries for key [{}]", parts.join(",")),
                None => format!("duplicate entries for key [={}]", name.strip_prefix("v:").unwrap_or(name)),
            }
        }
    }
}

/// The name of an item: `[name="web"]`, or its place.
fn element(kind: &ListKind<'_>, place: usize, item: &Value) -> String {
    let ListKind::Map(keys) = kind else { return format!("[{place}]") };
    let mut keys: Vec<&str> = keys.clone();
    keys.sort_unstable();
    let named = keys.iter().filter_map(|key| Some(format!("{key}={}", item.get(key)?.to_json())));
    format!("[{}]", named.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use ephor_expr::yaml::parse_value;

    use super::*;
    use crate::memory::Options;

    fn merged(configuration: &str) -> String {
        let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, labels: {a: b}}, spec: {template: \
                          {spec: {containers: [{name: web, image: w, args: [x]}, {name: log, image: l, env: [{name: A}, {name: A}]}], \
                          nodeSelector: {disk: fast}}}}}";
        let cluster = MemoryCluster::new(Options::server());
        match cluster.merge(&parse_value(deployment).unwrap(), &parse_value(configuration).unwrap()) {
            Ok(merged) => merged.at(&["spec"]).unwrap().to_json(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn configurations_are_merged_by_the_schema_of_the_kind() {
        for (configuration, want) in [
            (
                "{spec: {replicas: 2, template: {spec: {containers: [{name: log, image: new}, {name: more, image: m}]}}}}",
                r#"{"replicas":2,"template":{"spec":{"containers":[{"args":["x"],"image":"w","name":"web"},{"env":[{"name":"A"},{"name":"A"}],"image":"new","name":"log"},{"image":"m","name":"more"}],"nodeSelector":{"disk":"fast"}}}}"#,
            ),
            (
                "{spec: {template: {spec: {containers: [{name: web, args: [z]}], nodeSelector: {a: b}}}}}",
                "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
                 .spec.template.spec.containers[0].args, .spec.template.spec.nodeSelector",
            ),
            (
                "{spec: {colour: red}}",
                "error applying patch: failed to convert patch object to typed object: .spec.colour: field not declared \
                 in schema",
            ),
            (
                "{spec: {template: {spec: {containers: [{name: web, a: b, c: d}]}}}}",
                "error applying patch: failed to convert patch object to typed object: errors:\n  \
                 .spec.template.spec.containers[name=\"web\"].a: field not declared in schema\n  \
                 .spec.template.spec.containers[name=\"web\"].c: field not declared in schema",
            ),
            // What cannot be told apart is not replaced as a whole.
            (
                "{spec: {template: {spec: {containers: [{image: z}]}}}}",
                "error applying patch: failed to convert patch object to typed object: .spec.template.spec.containers: \
                 element 0: associative list with keys has an element that omits key field \"name\"",
            ),
            (
                "{spec: {template: {spec: {containers: [{name: web, image: y}, {name: web, image: z}]}}}}",
                "error applying patch: failed to convert patch object to typed object: .spec.template.spec.containers: \
                 duplicate entries for key [name=\"web\"]",
            ),
            (
                "{spec: {template: {spec: {containers: [{name: log, env: [{name: C, value: c}]}]}}}}",
                "error applying patch: failed to convert original object to typed object: \
                 .spec.template.spec.containers[name=\"log\"].env: duplicate entries for key [name=\"A\"]",
            ),
            (
                "{spec: null}",
                "error applying patch: failed to convert patch object to typed object: .spec: expected map, got \
                 &{NULL_VALUE}",
            ),
            (
                "{spec: {replicas: two, template: {spec: {containers: x}}}}",
                "error applying patch: failed to convert patch object to typed object: errors:\n  .spec.replicas: \
                 expected numeric (int or float), got string\n  .spec.template.spec.containers: expected list, got &{x}",
            ),
            // It stays what it is.
            (
                "{apiVersion: v1, kind: Pod, spec: {replicas: 3}}",
                r#"{"replicas":3,"template":{"spec":{"containers":[{"args":["x"],"image":"w","name":"web"},{"env":[{"name":"A"},{"name":"A"}],"image":"l","name":"log"}],"nodeSelector":{"disk":"fast"}}}}"#,
            ),
        ] {
            assert_eq!(merged(configuration), want, "{configuration}");
        }
    }
}
