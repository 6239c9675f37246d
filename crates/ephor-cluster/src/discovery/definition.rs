//! The kinds that a `CustomResourceDefinition` defines.

use std::sync::Arc;

use ephor_expr::{Str, Value};

use super::table::subresource;
use super::version::priority;
use crate::resource::{Origin, Resource, ScalePaths, guess_plural, join_api_version};

/// The resources that a `CustomResourceDefinition` object (`apiextensions.k8s.io/v1`) defines: one for each served
/// version, the preferred version first. None if the object names no group, kind or version.
pub fn resources_of(definition: &Value) -> Vec<Resource> {
    let text = |keys: &[&str]| definition.str_at(keys).filter(|s| !s.is_empty());
    let (Some(group), Some(kind)) = (text(&["spec", "group"]), text(&["spec", "names", "kind"])) else {
        return Vec::new();
    };
    let plural = text(&["spec", "names", "plural"]).map_or_else(|| guess_plural(kind).into(), Str::new);
    let singular = text(&["spec", "names", "singular"]).map_or_else(|| kind.to_ascii_lowercase().into(), Str::new);
    let names = |key: &str| -> Arc<[Str]> {
        let names = definition.at(&["spec", "names", key]).and_then(Value::as_array).unwrap_or_default();
        names.iter().filter_map(|name| name.as_str().map(Str::new)).collect()
    };
    let (short_names, categories) = (names("shortNames"), names("categories"));
    let versions = definition.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or_default();
    let mut resources: Vec<Resource> = versions
        .iter()
        .filter(|version| version.get("served").and_then(Value::as_bool).unwrap_or(false))
        .filter_map(|version| {
            let name = version.str_at(&["name"]).filter(|s| !s.is_empty())?;
            let api_version = join_api_version(group, name);
            let subresources = ["scale", "status"]
                .into_iter()
                .filter(|s| version.at(&["subresources", s]).is_some())
                .map(|s| subresource(s, &api_version, kind))
                .collect();
            Some(Resource {
                group: group.into(),
                version: name.into(),
                kind: kind.into(),
                plural: plural.clone(),
                singular: singular.clone(),
                namespaced: text(&["spec", "scope"]) == Some("Namespaced"),
                subresources,
                short_names: short_names.clone(),
                categories: categories.clone(),
                scale: version.at(&["subresources", "scale"]).map(|scale| Arc::new(scale_paths(scale))),
                origin: Origin::Custom,
                stored: true,
            })
        })
        .collect();
    resources.sort_by(|a, b| priority(&b.version).cmp(&priority(&a.version)));
    resources
}

/// The paths are JSON paths of members only: `.spec.replicas`.
fn scale_paths(scale: &Value) -> ScalePaths {
    let path = |key: &str| {
        let members = scale.str_at(&[key])?.trim_start_matches('.').split('.');
        Some(members.map(Str::new).collect::<Vec<_>>())
    };
    ScalePaths {
        wanted: path("specReplicasPath").unwrap_or_default(),
        present: path("statusReplicasPath").unwrap_or_default(),
        selector: path("labelSelectorPath"),
    }
}
