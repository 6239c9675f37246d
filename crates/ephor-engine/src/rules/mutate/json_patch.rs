//! stub
use ephor_expr::Value;
#[derive(Debug)]
pub struct JsonPatch;
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct JsonPatchError;
impl JsonPatch {
    pub fn parse(_: &str) -> Result<Self, JsonPatchError> {
        Err(JsonPatchError)
    }
    pub fn from_value(_: &Value) -> Result<Self, JsonPatchError> {
        Err(JsonPatchError)
    }
    pub fn apply(&self, _: &Value) -> Result<Value, JsonPatchError> {
        Err(JsonPatchError)
    }
}
