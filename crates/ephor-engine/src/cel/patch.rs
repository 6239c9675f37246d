//! What an expression gives to change an object, as data.

use std::fmt::Write as _;

use ephor_expr::cel::{Dict, List, Val};
use ephor_expr::{Map, Str, Value};

use super::body::PatchKind;

/// What is wrong with the names of types in a patch, if anything is: in a configuration, or in the values of
/// operations.
pub(super) fn misnamed_types(kind: PatchKind, patch: &Val<'_>) -> Option<String> {
    let faults = match (kind, patch) {
        (PatchKind::ApplyConfiguration, configuration) => configuration.misnamed_types(),
        (PatchKind::JsonPatch, Val::List(operations)) => {
            let value = |operation| match operation {
                Val::Object(operation) => operation.fields.get("value").map(Val::misnamed_types),
                _ => None,
            };
            operations.iter().filter_map(value).find(|faults| !faults.is_empty()).unwrap_or_default()
        }
        (PatchKind::JsonPatch, _) => Vec::new(),
    };
    (!faults.is_empty()).then(|| faults.join("\n"))
}

/// The patch as data. An API server reads values of JSON patches as protocol buffers write them, and what is in a
/// configuration as they are.
pub(super) fn written(kind: PatchKind, patch: &Val<'_>) -> Result<Value, String> {
    let none = |value: &Val<'_>| format!("a {} is no patch", value.type_name());
    match (kind, patch) {
        (PatchKind::ApplyConfiguration, configuration) => {
            applied(configuration, &mut String::new())?;
            configuration.to_json().ok_or_else(|| none(configuration))
        }
        (PatchKind::JsonPatch, Val::List(operations)) => {
            operations.iter().map(|operation| operation_written(&operation)).collect::<Result<_, _>>().map(Value::array)
        }
        (PatchKind::JsonPatch, other) => Err(none(other)),
    }
}

fn operation_written(operation: &Val<'_>) -> Result<Value, String> {
    let Val::Object(operation) = operation else {
        return operation.to_json().ok_or_else(|| format!("a {} is no operation", operation.type_name()));
    };
    let member = |(name, value): (&Str, &Val<'_>)| {
        let json = if name == "value" { value.to_protobuf_json() } else { value.to_json() };
        let json = json.ok_or_else(|| {
            format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {}",
                value.type_name()
            )
        })?;
        Ok((name.clone(), json))
    };
    operation.fields.iter().map(member).collect::<Result<Map, String>>().map(Value::object)
}

/// Refuses what a configuration cannot hold at a path: an API server takes an unsigned number for no number.
fn applied(value: &Val<'_>, path: &mut String) -> Result<(), String> {
    let length = path.len();
    match value {
        Val::Uint(_) => {
            return Err(format!(
                "error applying patch: failed to convert patch object to typed object: {path}: expected numeric (int or \
                 float), got uint64"
            ));
        }
        Val::List(List::Json(_)) | Val::Map(Dict::Json(_)) => {}
        Val::Object(object) => {
            for (name, value) in &object.fields {
                let _ = write!(path, ".{name}");
                applied(value, path)?;
                path.truncate(length);
            }
        }
        Val::Map(map) => {
            for (key, value) in map.entries() {
                let _ = write!(path, ".{}", key.as_str().unwrap_or_default());
                applied(&value, path)?;
                path.truncate(length);
            }
        }
        Val::List(list) => {
            for (i, value) in list.iter().enumerate() {
                let _ = write!(path, "[{i}]");
                applied(&value, path)?;
                path.truncate(length);
            }
        }
        _ => {}
    }
    Ok(())
}
