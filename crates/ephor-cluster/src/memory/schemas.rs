//! Which schema an object is held against, and what comes of it.

use ephor_expr::Value;

use super::kinds;
use super::options::Schemas;
use super::rules;
use super::state::{Key, State};
use super::unenforced;
use crate::error::{Cause, ClusterError};
use crate::object;
use crate::resource::{Origin, Resource};
use crate::schema::conform::conform;
use crate::schema::fill::fill;
use crate::schema::{Schema, cel, validate};
use crate::write::FieldValidation;

/// The schema of a kind, wherever it is written down.
pub(super) enum KindSchema {
    /// It is one of Kubernetes' own.
    BuiltIn(Schema<'static>),
    /// It is in a definition.
    Custom(Value),
    /// There is no schema.
    Unknown,
}

impl KindSchema {
    /// The schema of a custom kind as it is written.
    pub(super) fn document(self) -> Option<Value> {
        match self {
            Self::Custom(document) => Some(document),
            Self::BuiltIn(_) | Self::Unknown => None,
        }
    }

    pub(super) fn get(&self) -> Option<Schema<'_>> {
        match self {
            Self::BuiltIn(schema) => Some(*schema),
            Self::Custom(document) => Some(Schema::custom(document)),
            Self::Unknown => None,
        }
    }
}

impl State {
    pub(super) fn schema_of(&self, resource: &Resource) -> KindSchema {
        if resource.origin == Origin::BuiltIn {
            return match Schema::built_in(&resource.api_version(), &resource.kind) {
                Some(schema) => KindSchema::BuiltIn(schema),
                None => KindSchema::Unknown,
            };
        }
        let name = format!("{}.{}", resource.plural, resource.group);
        let definition = self.find(&kinds::DEFINITION, &Key { namespace: "".into(), name: name.into() });
        let versions = definition.and_then(|d| d.at(&["spec", "versions"])).and_then(Value::as_array);
        let version = versions.into_iter().flatten().find(|v| v.str_at(&["name"]) == Some(&resource.version));
        match version.and_then(|v| v.at(&["schema", "openAPIV3Schema"])) {
            Some(document) => KindSchema::Custom(document.clone()),
            None => KindSchema::Unknown,
        }
    }

    pub(super) fn enforces_schemas(&self) -> bool {
        self.options.schemas == Schemas::Enforced
    }

    /// The object as its kind has it, with defaults; unknown fields as warnings, or as an error.
    pub(super) fn conformed(
        &self,
        resource: &Resource,
        object: Value,
        mode: FieldValidation,
        warnings: &mut Vec<String>,
    ) -> Result<Value, ClusterError> {
        if !self.enforces_schemas() {
            return Ok(object);
        }
        let schema = self.schema_of(resource);
        let Some(schema) = schema.get() else { return Ok(object) };
        let read = conform(schema, &object);
        if let Some(misfit) = read.misfits.first() {
            return Err(ClusterError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {misfit}",
                resource.kind,
                resource.api_version(),
                resource.kind
            )));
        }
        let unknown: Vec<String> = read.unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        if mode == FieldValidation::Strict && !unknown.is_empty() {
            return Err(ClusterError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                resource.kind,
                resource.api_version(),
                resource.kind,
                unknown.join(", ")
            )));
        }
        if mode == FieldValidation::Warn {
            warnings.extend(unknown);
        }
        warnings.extend(unenforced::warnings(resource, &read.object));
        let mut object = read.object;
        fill(schema, &mut object);
        super::defaults::complete(resource, &mut object);
        Ok(object)
    }

    /// What is wrong with an object that is about to be stored; what was wrong before already is a warning.
    pub(super) fn check_schema(
        &self,
        resource: &Resource,
        object: &Value,
        before: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ClusterError> {
        if !self.enforces_schemas() {
            return Ok(());
        }
        let causes: Vec<Cause> = match self.schema_of(resource) {
            KindSchema::Custom(document) => {
                let schema = Schema::custom(&document);
                let causes = validate::validate(schema, object);
                // Rules expect values of the right types.
                if causes.is_empty() {
                    let mut judgement = cel::validate(schema, object, before);
                    warnings.append(&mut judgement.warnings);
                    judgement.causes
                } else {
                    causes
                }
            }
            KindSchema::BuiltIn(schema) => rules::check(resource, schema, object, before),
            KindSchema::Unknown => Vec::new(),
        };
        if causes.is_empty() { Ok(()) } else { Err(ClusterError::invalid(resource, object::name(object), &causes)) }
    }
}
