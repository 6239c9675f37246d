//! Merging a part of an object into an object, as `MutatingAdmissionPolicy` does.
//!
//! In go an object and a configuration, which says some of its fields; out comes the object with all that the
//! configuration says. Lists and maps are merged by the schema of the kind, as server-side apply merges them, but without
//! owners of fields. What the schema does not know, and lists and maps that can only be replaced as a whole, are refused
//! with the texts of an API server.

use std::fmt::Write as _;

use ephor_expr::Value;

use super::MemoryCluster;
use super::ownership;
use crate::cluster::Cluster as _;
use crate::schema::{ListKind, Schema};

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
    /// Fields that the schema does not have.
    #[error("error applying patch: failed to convert patch object to typed object: {}", listed(.0))]
    Undeclared(Vec<String>),
    /// Lists and maps that are replaced as a whole.
    #[error("error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}", .0.join(", "))]
    Atomic(Vec<String>),
}

/// Errors as the library for server-side apply prints them.
fn listed(paths: &[String]) -> String {
    let line = |path: &String| format!("{path}: field not declared in schema");
    match paths {
        [path] => line(path),
        paths => {
            format!("errors:\n{}", paths.iter().map(|path| format!("  {}", line(path))).collect::<Vec<_>>().join("\n"))
        }
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
        let mut look = Look::default();
        look.at(schema, configuration, &mut String::new(), &mut String::new());
        if !look.undeclared.is_empty() {
            return Err(MergeError::Undeclared(look.undeclared));
        }
        if !look.atomic.is_empty() {
            return Err(MergeError::Atomic(look.atomic));
        }
        Ok(ownership::merge(Some(schema), object, configuration))
    }
}

/// What cannot be merged.
#[derive(Default)]
struct Look {
    undeclared: Vec<String>,
    atomic: Vec<String>,
}

impl Look {
    /// Looks at a value at a path, which names items of lists by their keys in one text and by their place in the other.
    /// Recurses as deep as a CEL expression can build objects.
    fn at(&mut self, schema: Schema<'_>, value: &Value, by_key: &mut String, by_place: &mut String) {
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
                        Some(below) => self.at(below, member, by_key, by_place),
                        None if schema.keeps_unknown() => {}
                        None => self.undeclared.push(by_key.clone()),
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
                let Some(below) = schema.items() else { return };
                for (place, item) in items.iter().enumerate() {
                    by_key.push_str(&element(&kind, place, item));
                    let _ = write!(by_place, "[{place}]");
                    self.at(below, item, by_key, by_place);
                    by_key.truncate(key_length);
                    by_place.truncate(place_length);
                }
            }
            _ => {}
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
                          {spec: {containers: [{name: web, image: w, args: [x]}, {name: log, image: l}], \
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
                r#"{"replicas":2,"template":{"spec":{"containers":[{"args":["x"],"image":"w","name":"web"},{"image":"new","name":"log"},{"image":"m","name":"more"}],"nodeSelector":{"disk":"fast"}}}}"#,
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
        ] {
            assert_eq!(merged(configuration), want, "{configuration}");
        }
    }
}
