//! Creating.

use ephor_expr::{Map, Str, Value};

use super::kinds;
use super::state::{Key, State};
use super::validate::validate;
use crate::error::{Cause, ClusterError};
use crate::object;
use crate::resource::{Origin, Resource};
use crate::write::WriteOptions;

/// The characters of `generateName` that make it into a name; five random ones follow.
const MAX_GENERATED_BASE: usize = 58;

/// How many generated names are tried before the creation fails.
const NAME_ATTEMPTS: u64 = 8;

/// What a new object gets from the server, whatever the client says.
const SYSTEM_FIELDS: [&str; 6] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"];

/// Whether a new object says already who owns its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noted {
    /// It is to be noted.
    Not,
    /// Server-side apply has done so.
    ByApply,
}

impl State {
    /// Creates one of the objects that a cluster begins with.
    pub(super) fn create_first(&mut self, resource: &Resource, object: Value) -> Result<Value, ClusterError> {
        let draft = self.draft(resource, object, &WriteOptions::default(), &mut Vec::new())?;
        let (key, object) = self.identified(resource, draft, &WriteOptions::default(), Noted::Not)?;
        self.identities.advance();
        self.insert(resource, &key, object, false)
    }

    /// A new object as the client wants it: in its namespace and as its kind has it, without name or identity where
    /// the server gives them.
    pub(super) fn draft(
        &self,
        resource: &Resource,
        object: Value,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Value, ClusterError> {
        self.check_served(resource)?;
        let mut object = shaped(resource, object)?;
        if !resource.stored {
            return Ok(object);
        }
        if !object::text(&object, "resourceVersion").is_empty() {
            return Err(ClusterError::bad_request("resourceVersion should not be set on objects to be created"));
        }
        let namespace = self.namespace_for(resource, &object)?;
        if resource.namespaced {
            object::set(&mut object, "namespace", namespace.clone());
        }
        self.check_place(resource, &namespace, object::name(&object))?;
        for key in SYSTEM_FIELDS {
            object::unset(&mut object, key);
        }
        self.conformed(resource, object, options.field_validation, warnings)
    }

    /// The draft as it will be stored, without a resource version, and where.
    pub(super) fn identified(
        &self,
        resource: &Resource,
        mut object: Value,
        options: &WriteOptions,
        noted: Noted,
    ) -> Result<(Key, Value), ClusterError> {
        let namespace = Str::new(object::namespace(&object));
        let name = self.name_for(resource, &namespace, &object)?;
        object::set(&mut object, "name", name.clone());
        let now = self.now();
        object::set(&mut object, "uid", self.identities.uid());
        object::set(&mut object, "creationTimestamp", now.clone());
        if kinds::has_generation(resource) {
            object::set(&mut object, "generation", 1);
        }
        kinds::prepare(resource, &mut object, &now);
        if noted == Noted::Not {
            self.note_writer(resource, None, &mut object, options, "");
        }
        validate(resource, &object)?;
        if kinds::is_definition(resource) {
            kinds::validate_definition(&object)?;
        }
        self.check_schema(resource, &object, None, &mut Vec::new())?;
        let key = Key { namespace, name };
        self.check_free(resource, &key)?;
        Ok((key, object))
    }

    /// Stores a new object.
    pub(super) fn insert(
        &mut self,
        resource: &Resource,
        key: &Key,
        object: Value,
        dry_run: bool,
    ) -> Result<Value, ClusterError> {
        self.check_served(resource)?;
        self.check_place(resource, &key.namespace, &key.name)?;
        self.check_free(resource, key)?;
        if dry_run {
            return Ok(object);
        }
        self.learn(resource);
        Ok(self.put(resource, key, object))
    }

    fn check_free(&self, resource: &Resource, key: &Key) -> Result<(), ClusterError> {
        match self.find(resource, key) {
            Some(_) => Err(ClusterError::already_exists(resource, &key.name)),
            None => Ok(()),
        }
    }

    /// Remembers a kind that was only guessed, so that URLs lead to it.
    pub(super) fn learn(&mut self, resource: &Resource) {
        if self.discovery.find_plural(&resource.group, &resource.version, &resource.plural).is_none() {
            std::sync::Arc::make_mut(&mut self.discovery).add(resource.clone());
        }
    }

    fn namespace_for(&self, resource: &Resource, object: &Value) -> Result<Str, ClusterError> {
        let given = object::namespace(object);
        match (resource.namespaced, given) {
            (false, "") => Ok(Str::default()),
            (false, _) => Err(ClusterError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            )),
            (true, "") if self.is_strict() => {
                Err(ClusterError::bad_request("an empty namespace may not be set during creation"))
            }
            (true, "") => Ok(Str::new_static("default")),
            (true, namespace) => Ok(namespace.into()),
        }
    }

    fn name_for(&self, resource: &Resource, namespace: &Str, object: &Value) -> Result<Str, ClusterError> {
        let name = object::name(object);
        if !name.is_empty() {
            return Ok(name.into());
        }
        let base: String = object::text(object, "generateName").chars().take(MAX_GENERATED_BASE).collect();
        if base.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(ClusterError::invalid(resource, "", &[cause]));
        }
        let mut names =
            (0..NAME_ATTEMPTS).map(|attempt| Str::from(format!("{base}{}", self.identities.suffix(attempt))));
        let is_free =
            |name: &Str| self.find(resource, &Key { namespace: namespace.clone(), name: name.clone() }).is_none();
        names.find(is_free).ok_or_else(|| ClusterError::already_exists(resource, &base))
    }

    /// Whether new objects of that kind are welcome in that namespace.
    fn check_place(&self, resource: &Resource, namespace: &Str, name: &str) -> Result<(), ClusterError> {
        if resource.origin == Origin::Custom {
            let definition = Str::from(format!("{}.{}", resource.plural, resource.group));
            let key = Key { namespace: Str::default(), name: definition };
            if self.find(&kinds::DEFINITION, &key).is_some_and(object::is_deleting) {
                return Err(ClusterError::method_not_supported(resource, "create"));
            }
        }
        if !resource.namespaced {
            return Ok(());
        }
        let key = Key { namespace: Str::default(), name: namespace.clone() };
        match self.find(&kinds::NAMESPACE, &key) {
            Some(found) if object::is_deleting(found) => {
                let why =
                    format!("unable to create new content in namespace {namespace} because it is being terminated");
                Err(ClusterError::forbidden(resource, name, &why))
            }
            None if self.is_strict() => Err(ClusterError::not_found(&kinds::NAMESPACE, namespace)),
            _ => Ok(()),
        }
    }
}

/// The object with `apiVersion` and `kind` of its resource and with metadata that is a map without nulls, which a
/// server reads as absent.
pub(super) fn shaped(resource: &Resource, mut object: Value) -> Result<Value, ClusterError> {
    let Some(members) = object.as_object_mut() else {
        return Err(ClusterError::bad_request(format!("the body is no object but {}", object.type_name())));
    };
    let api_version = resource.api_version();
    match members.get("kind").and_then(Value::as_str) {
        None | Some("") => {
            members.insert("kind", resource.kind.clone());
        }
        Some(kind) if kind == resource.kind => {}
        Some(kind) => {
            let given = members.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            return Err(ClusterError::bad_request(format!(
                "{kind} in version {given:?} cannot be handled as a {}",
                resource.kind
            )));
        }
    }
    match members.get("apiVersion").and_then(Value::as_str) {
        None | Some("") => {
            members.insert("apiVersion", api_version);
        }
        Some(given) if given == api_version => {}
        Some(given) => {
            return Err(ClusterError::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({api_version})"
            )));
        }
    }
    match members.entry("metadata") {
        missing @ Value::Null => *missing = Value::object(Map::new()),
        metadata => match metadata.as_object_mut() {
            Some(metadata) => metadata.retain(|_, value| !value.is_null()),
            None => return Err(ClusterError::bad_request("metadata is no object")),
        },
    }
    Ok(object)
}
