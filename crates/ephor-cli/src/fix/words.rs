//! Words that have another spelling today.

use ephor_engine::autogen;
use ephor_expr::Value;
use ephor_expr::value::Path;

use super::Fix;
use super::document::Document;

/// Old versions of the kinds, where the current one has the same shape.
pub(super) fn versions(document: &Document<'_>) -> Vec<Fix> {
    let (old, kind) = document.kind();
    let new = match (old, kind) {
        ("kyverno.io/v2beta1", "ClusterPolicy" | "Policy") => "kyverno.io/v1",
        ("kyverno.io/v2beta1", "CleanupPolicy" | "ClusterCleanupPolicy" | "PolicyException" | "GlobalContextEntry") => {
            "kyverno.io/v2"
        }
        _ => return Vec::new(),
    };
    let path = Path::root().key("apiVersion");
    let message = format!("`{old}` is an old version of `{kind}`: the current one is `{new}`");
    document.set_text(&path, new).map(|edit| Fix { message, path, edits: vec![edit] }).into_iter().collect()
}

/// `enforce` and `audit`.
pub(super) fn action_case(document: &Document<'_>) -> Vec<Fix> {
    if !document.is_policy() {
        return Vec::new();
    }
    let spec = Path::root().key("spec");
    let mut places = vec![spec.key("validationFailureAction")];
    places.extend(override_actions(document, &spec.key("validationFailureActionOverrides")));
    for rule in document.rules() {
        places.push(rule.keys(&["validate", "failureAction"]));
        places.extend(override_actions(document, &rule.keys(&["validate", "failureActionOverrides"])));
    }
    let fix = |path: Path| {
        let old = document.str(&path)?;
        let new = match old {
            "enforce" => "Enforce",
            "audit" => "Audit",
            _ => return None,
        };
        let edit = document.set_text(&path, new)?;
        Some(Fix { message: format!("`{old}` is an old spelling of `{new}`"), path, edits: vec![edit] })
    };
    places.into_iter().filter_map(fix).collect()
}

fn override_actions(document: &Document<'_>, path: &Path) -> Vec<Path> {
    let count = document.get(path).and_then(Value::as_array).map_or(0, <[Value]>::len);
    (0..count).map(|i| path.index(i).key("action")).collect()
}

/// `Equal` and `NotEqual`. Other old operators judge some values differently from their successors.
pub(super) fn operators(document: &Document<'_>) -> Vec<Fix> {
    let (api_version, _) = document.kind();
    if !api_version.starts_with("kyverno.io/") {
        return Vec::new();
    }
    let spec = Path::root().key("spec");
    let mut places = Vec::new();
    if let Some(value) = document.get(&spec) {
        conditions(value, &spec, false, &mut places);
    }
    let fix = |path: Path| {
        let old = document.str(&path)?;
        let new = match old {
            "Equal" => "Equals",
            "NotEqual" => "NotEquals",
            _ => return None,
        };
        let edit = document.set_text(&path, new)?;
        Some(Fix { message: format!("operator `{old}` is an old spelling of `{new}`"), path, edits: vec![edit] })
    };
    places.into_iter().filter_map(fix).collect()
}

/// The operators of all conditions below `path`; `inside` says that it is a block of conditions or a part of one.
fn conditions(value: &Value, path: &Path, inside: bool, places: &mut Vec<Path>) {
    match value {
        Value::Object(map) if inside && map.contains_key("operator") => places.push(path.key("operator")),
        Value::Object(map) => {
            for (key, member) in map.iter() {
                // Parts that are the user's own data are not read.
                if matches!(key.as_str(), "pattern" | "anyPattern" | "patchStrategicMerge" | "data" | "context") {
                    continue;
                }
                let block = matches!(key.as_str(), "preconditions" | "conditions");
                let part = inside && matches!(key.as_str(), "any" | "all");
                conditions(member, &path.key(key.clone()), block || part, places);
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                conditions(item, &path.index(i), inside, places);
            }
        }
        _ => {}
    }
}

/// The annotation value `all`, which is what its absence means.
pub(super) fn autogen_all(document: &Document<'_>) -> Vec<Fix> {
    let annotations = Path::root().keys(&["metadata", "annotations"]);
    let path = annotations.key(autogen::ANNOTATION);
    if !document.is_policy() || document.str(&path).map(str::trim) != Some("all") {
        return Vec::new();
    }
    let alone = document.get(&annotations).and_then(Value::as_object).is_some_and(|map| map.len() == 1);
    let edit = document.remove(if alone { &annotations } else { &path });
    let message = "the auto-gen value `all` is what holds without the annotation".to_owned();
    edit.map(|edit| Fix { message, path, edits: vec![edit] }).into_iter().collect()
}
