//! Taking in objects as they are.

use ephor_expr::{Str, Value};

use super::kinds;
use super::state::{Key, State};
use crate::error::ClusterError;
use crate::object;
use crate::resource::Resource;

/// Higher resource versions are taken for texts, so that no file can exhaust the numbers.
const MAX_VERSION: u64 = 1 << 53;

/// An object that could not be loaded, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Unloaded {
    /// The object as given.
    pub object: Value,
    /// What is wrong with it.
    pub error: ClusterError,
}

impl State {
    /// Stores objects as given: nothing is checked, set or dropped but what it takes to find them again. Definitions
    /// come first, so that the order of files does not matter.
    pub(super) fn load(&mut self, objects: impl IntoIterator<Item = Value>) -> Vec<Unloaded> {
        let is_definition = |object: &Value| object.str_at(&["kind"]) == Some(kinds::DEFINITION.kind.as_str());
        let (definitions, others): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(is_definition);
        let mut unloaded = Vec::new();
        for object in definitions.into_iter().chain(others) {
            if let Err(error) = self.load_one(object.clone()) {
                unloaded.push(Unloaded { object, error });
            }
        }
        unloaded
    }

    /// Serves the kinds of `objects`, of which only the definitions are stored.
    pub(super) fn serve_kinds_of(&mut self, objects: &[Value]) {
        let is_definition = |object: &&Value| object.str_at(&["kind"]) == Some(kinds::DEFINITION.kind.as_str());
        for definition in objects.iter().filter(is_definition) {
            // What cannot be loaded serves no kind: its objects are guessed or refused.
            let _unloaded = self.load_one(definition.clone());
        }
        let text = |object: &Value, key: &str| Str::new(object.str_at(&[key]).unwrap_or_default());
        for object in objects {
            if let Ok(resource) = self.resolve(&text(object, "apiVersion"), &text(object, "kind")) {
                self.learn(&resource);
            }
        }
    }

    fn load_one(&mut self, mut object: Value) -> Result<(), ClusterError> {
        let text = |key: &str| object.str_at(&[key]).unwrap_or_default();
        let resource = self.resolve(text("apiVersion"), text("kind"))?;
        let name = Str::new(object::name(&object));
        if name.is_empty() {
            return Err(ClusterError::bad_request("resource name may not be empty"));
        }
        if !resource.stored {
            return Err(ClusterError::method_not_supported(&resource, "create"));
        }
        if resource.namespaced && object::namespace(&object).is_empty() {
            object::set(&mut object, "namespace", "default");
        }
        let namespace = if resource.namespaced { object::namespace(&object).into() } else { Str::default() };
        self.learn(&resource);
        // The versions of loaded objects must not come again for later changes.
        let version = object::text(&object, "resourceVersion").parse().ok().filter(|v| *v < MAX_VERSION).unwrap_or(0);
        self.revision = (self.revision + 1).max(version);
        self.record(&resource, &Key { namespace, name }, Some(object));
        Ok(())
    }

    /// The resource of a kind; that of an unknown kind is guessed if that is allowed.
    pub(super) fn resolve(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        match self.discovery.find(api_version, kind) {
            Some(resource) => Ok(resource.clone()),
            None if self.is_strict() || kind.is_empty() || api_version.is_empty() => {
                Err(ClusterError::no_such_kind(api_version, kind))
            }
            None => Ok(self.discovery.guess(api_version, kind)),
        }
    }
}
