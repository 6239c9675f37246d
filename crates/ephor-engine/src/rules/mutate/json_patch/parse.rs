//! Reading patches.

use ephor_expr::{Map, Value, yaml};

use super::error::{JsonPatchError, OperationFault};
use super::operation::{JsonPatch, PatchOp};
use super::pointer::Pointer;

impl JsonPatch {
    /// Reads a patch from YAML or JSON text.
    pub fn parse(text: &str) -> Result<Self, JsonPatchError> {
        Self::from_value(&yaml::parse_value(text)?)
    }

    /// Reads a patch: a list of operations. Null is the empty patch; fields that an operation does not need are
    /// ignored.
    pub fn from_value(patch: &Value) -> Result<Self, JsonPatchError> {
        match patch {
            Value::Null => Ok(Self::default()),
            Value::Array(items) => Ok(Self { ops: items.iter().map(operation).collect::<Result<_, _>>()? }),
            other => Err(JsonPatchError::NotAList(go_type(other))),
        }
    }
}

fn operation(item: &Value) -> Result<PatchOp, JsonPatchError> {
    let op = match item {
        Value::Object(map) => typed_operation(map),
        Value::Null => Err(OperationFault::Unsupported),
        other => return Err(JsonPatchError::NotAnOperation(go_type(other))),
    };
    op.map_err(|fault| JsonPatchError::InvalidOperation { operation: item.to_json(), fault })
}

fn typed_operation(map: &Map) -> Result<PatchOp, OperationFault> {
    let path = || pointer(map, "path", OperationFault::MissingPath);
    let from = || pointer(map, "from", OperationFault::MissingFrom);
    let value = || map.get("value").cloned().ok_or(OperationFault::MissingValue);
    Ok(match map.get("op").and_then(Value::as_str) {
        Some("add") => PatchOp::Add { path: path()?, value: value()? },
        Some("remove") => PatchOp::Remove { path: path()? },
        Some("replace") => PatchOp::Replace { path: path()?, value: value()? },
        Some("move") => PatchOp::Move { path: path()?, from: from()? },
        Some("copy") => PatchOp::Copy { path: path()?, from: from()? },
        Some("test") => PatchOp::Test { path: path()?, value: value().unwrap_or_default() },
        _ => return Err(OperationFault::Unsupported),
    })
}

fn pointer(map: &Map, field: &'static str, missing: OperationFault) -> Result<Pointer, OperationFault> {
    match map.get(field) {
        None | Some(Value::Null) => Err(missing),
        Some(Value::String(text)) => Ok(Pointer::parse(text)),
        Some(other) => Err(OperationFault::NotAString { field, found: go_type(other) }),
    }
}

/// The name of a JSON type in messages of Go's `encoding/json`.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        other => other.type_name(),
    }
}
