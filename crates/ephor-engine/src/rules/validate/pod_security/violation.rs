//! What a check finds: fields that are missing or have forbidden values.

use std::fmt;

use ephor_expr::Str;

use super::pod::Container;

/// One field that violates the standard. Prints as messages show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Where, for example `spec.containers[0].securityContext.privileged`.
    pub field: String,
    /// What is wrong there.
    pub fault: FieldFault,
    /// The container's name; nothing for fields of the Pod itself.
    pub container: Option<Str>,
}

/// What is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldFault {
    /// It must be set.
    Required,
    /// It must not be set, or not to this value.
    Forbidden(BadValue),
}

/// A value that the standard forbids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadValue {
    /// The mere presence of the field is forbidden, or its value is the empty text.
    None,
    /// A boolean.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A text.
    Text(Str),
    /// The offenders of a list, sorted.
    List(Vec<Str>),
}

impl From<bool> for BadValue {
    fn from(value: bool) -> Self {
        BadValue::Bool(value)
    }
}

impl From<i64> for BadValue {
    fn from(value: i64) -> Self {
        BadValue::Int(value)
    }
}

impl From<&str> for BadValue {
    fn from(value: &str) -> Self {
        if value.is_empty() { BadValue::None } else { BadValue::Text(value.into()) }
    }
}

impl BadValue {
    /// The offenders of a list, sorted and each once.
    pub(super) fn list<'a>(offenders: impl IntoIterator<Item = &'a str>) -> Self {
        let mut list: Vec<Str> = offenders.into_iter().map(Str::new).collect();
        list.sort();
        list.dedup();
        BadValue::List(list)
    }

    /// Whether `accept` takes every single value; true when there is none.
    pub(super) fn all(&self, accept: impl Fn(&str) -> bool) -> bool {
        match self {
            BadValue::None => true,
            BadValue::Bool(b) => accept(if *b { "true" } else { "false" }),
            BadValue::Int(n) => accept(&n.to_string()),
            BadValue::Text(text) => accept(text),
            BadValue::List(list) => list.iter().all(|text| accept(text)),
        }
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadValue::None => Ok(()),
            BadValue::Bool(b) => b.fmt(f),
            BadValue::Int(n) => n.fmt(f),
            BadValue::Text(text) => f.write_str(text),
            BadValue::List(list) => write!(f, "[{}]", list.join(" ")),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = &self.field;
        match &self.fault {
            FieldFault::Required => write!(f, "{field}: Required value"),
            FieldFault::Forbidden(BadValue::None) => write!(f, "{field}: Forbidden"),
            FieldFault::Forbidden(value) => write!(f, "{field} is forbidden, forbidden values found: {value}"),
        }
    }
}

/// What one check found in one Pod; nothing when the Pod passes.
#[derive(Debug)]
pub(super) struct Violations {
    /// The reason messages give.
    pub(super) reason: &'static str,
    /// The fields, in the order in which messages list them.
    pub(super) errors: Vec<FieldError>,
    /// Images of the containers that are to blame, each once.
    pub(super) images: Vec<Str>,
    any: bool,
}

impl Violations {
    /// No violation yet.
    pub(super) fn new(reason: &'static str) -> Self {
        Self { reason, errors: Vec::new(), images: Vec::new(), any: false }
    }

    /// Whether the Pod passes the check.
    pub(super) fn is_empty(&self) -> bool {
        !self.any
    }

    /// A forbidden value in the Pod itself.
    pub(super) fn forbid(&mut self, field: impl Into<String>, value: impl Into<BadValue>) {
        self.any = true;
        let fault = FieldFault::Forbidden(value.into());
        self.errors.push(FieldError { field: field.into(), fault, container: None });
    }

    /// A forbidden value at `tail` in a container.
    pub(super) fn forbid_in(&mut self, container: &Container<'_>, tail: &str, value: impl Into<BadValue>) {
        self.blame(container);
        self.push(container, tail, FieldFault::Forbidden(value.into()));
    }

    /// A missing value at `tail` in a container.
    pub(super) fn require_in(&mut self, container: &Container<'_>, tail: &str) {
        self.blame(container);
        self.push(container, tail, FieldFault::Required);
    }

    /// A container that violates the check, without saying in which field.
    pub(super) fn blame(&mut self, container: &Container<'_>) {
        self.any = true;
        if !self.images.iter().any(|image| image == container.image) {
            self.images.push(container.image.into());
        }
    }

    fn push(&mut self, container: &Container<'_>, tail: &str, fault: FieldFault) {
        let field = format!("spec.{}[{}].{tail}", container.group.key(), container.index);
        self.errors.push(FieldError { field, fault, container: Some(container.name.into()) });
    }
}
