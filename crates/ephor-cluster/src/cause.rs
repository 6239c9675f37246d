//! What is wrong with one field, in the words of the API server.

use std::fmt;

use ephor_expr::{Str, Value};

/// One field of an object that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The field, for example `metadata.name`.
    pub field: Str,
    /// The machine-readable reason, for example `FieldValueRequired`.
    pub reason: &'static str,
    /// What is wrong, without the field.
    pub message: String,
}

impl Cause {
    /// A field that must not be empty.
    pub fn required(field: impl Into<Str>, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { field: field.into(), reason: "FieldValueRequired", message }
    }

    /// A field with a value that it may not have.
    pub fn invalid(field: impl Into<Str>, value: &str, why: &str) -> Self {
        Self::invalid_raw(field, &format!("{value:?}"), why)
    }

    /// Like [`Cause::invalid`], with the value already in the form in which it is shown.
    pub fn invalid_raw(field: impl Into<Str>, shown: &str, why: &str) -> Self {
        let message = format!("Invalid value: {shown}: {why}");
        Self { field: field.into(), reason: "FieldValueInvalid", message }
    }

    /// A field whose value, shown as `shown`, is none of those that it may have.
    pub fn unsupported(field: impl Into<Str>, shown: &str, allowed: &[Value]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(Value::to_json).collect();
        let message = format!("Unsupported value: {shown}: supported values: {}", allowed.join(", "));
        Self { field: field.into(), reason: "FieldValueNotSupported", message }
    }

    /// A value that may be there once only.
    pub fn duplicate(field: impl Into<Str>, value: &Value) -> Self {
        let message = format!("Duplicate value: {}", value.to_json());
        Self { field: field.into(), reason: "FieldValueDuplicate", message }
    }

    /// A name of something that is not there.
    pub fn not_found(field: impl Into<Str>, name: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueNotFound", message: format!("Not found: {name:?}") }
    }

    /// A text of more than `most` bytes.
    pub fn too_long(field: impl Into<Str>, most: usize) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {most} {unit}");
        Self { field: field.into(), reason: "FieldValueTooLong", message }
    }

    /// A list or map with `found` entries, which is more than `most`.
    pub fn too_many(field: impl Into<Str>, found: usize, most: usize) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        let message = format!("Too many: {found}: must have at most {most} {unit}");
        Self { field: field.into(), reason: "FieldValueTooMany", message }
    }

    /// A field that could not be judged.
    pub fn internal(field: impl Into<Str>, why: &str) -> Self {
        Self { field: field.into(), reason: "InternalError", message: format!("Internal error: {why}") }
    }

    /// A field that must not be set, or not in this way.
    pub fn forbidden(field: impl Into<Str>, why: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueForbidden", message: format!("Forbidden: {why}") }
    }
}

impl Cause {
    /// The cause in a `Status`.
    pub(crate) fn value(&self) -> Value {
        Value::from([
            ("reason", Value::from(self.reason)),
            ("message", Value::from(self.message.as_str())),
            ("field", Value::from(self.field.clone())),
        ])
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
