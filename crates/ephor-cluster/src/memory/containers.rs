//! Objects that take others with them: namespaces their contents, definitions the objects of their kind.
//!
//! On a real cluster controllers do this after the fact ([`super::controllers`]); here the deletion of the container
//! does, unless it is told not to.

use std::ops::Bound;

use ephor_expr::{Str, Value};

use super::kinds;
use super::state::{Key, State};
use crate::object;
use crate::resource::{Origin, Resource};
use crate::write::DeleteOptions;

/// What cannot go before its contents.
pub(super) enum Container {
    /// The namespace of that name.
    Namespace(Str),
    /// The definition of that kind.
    Definition { group: Str, plural: Str },
}

impl Container {
    /// What `object` contains, if it is a container.
    pub(super) fn of(resource: &Resource, key: &Key, object: &Value) -> Option<Self> {
        if kinds::is_namespace(resource) {
            return Some(Self::Namespace(key.name.clone()));
        }
        if kinds::is_definition(resource) {
            let group = object.str_at(&["spec", "group"])?.into();
            let plural = object.str_at(&["spec", "names", "plural"])?.into();
            return Some(Self::Definition { group, plural });
        }
        None
    }

    /// The containers that an object is in.
    pub(super) fn around(resource: &Resource, key: &Key) -> impl Iterator<Item = Self> {
        let namespace = resource.namespaced.then(|| Self::Namespace(key.namespace.clone()));
        let definition = (resource.origin == Origin::Custom)
            .then(|| Self::Definition { group: resource.group.clone(), plural: resource.plural.clone() });
        namespace.into_iter().chain(definition)
    }

    pub(super) fn place(&self) -> (&'static Resource, Key) {
        let (resource, name) = match self {
            Self::Namespace(name) => (&*kinds::NAMESPACE, name.clone()),
            Self::Definition { group, plural } => (&*kinds::DEFINITION, Str::from(format!("{plural}.{group}"))),
        };
        (resource, Key { namespace: Str::default(), name })
    }
}

impl State {
    /// What is in the container.
    pub(super) fn contents<'s>(
        &'s self,
        container: &'s Container,
    ) -> Box<dyn Iterator<Item = (&'s Resource, &'s Key)> + 's> {
        match container {
            Container::Namespace(name) => {
                let start = Key { namespace: name.clone(), name: Str::default() };
                Box::new(self.tables.values().filter(|t| t.resource.namespaced).flat_map(move |table| {
                    table
                        .objects
                        .range((Bound::Included(start.clone()), Bound::Unbounded))
                        .map(|(key, _)| key)
                        .take_while(move |key| key.namespace == *name)
                        .map(|key| (&table.resource, key))
                }))
            }
            Container::Definition { group, plural } => {
                let table = self.tables.get(&(group.clone(), plural.clone()));
                Box::new(table.into_iter().flat_map(|t| t.objects.keys().map(|key| (&t.resource, key))))
            }
        }
    }

    /// Deletes everything in the container. What finalizers hold stays for now.
    pub(super) fn empty_out(&mut self, container: &Container) {
        let contents: Vec<(Resource, Key)> =
            self.contents(container).map(|(resource, key)| (resource.clone(), key.clone())).collect();
        for (resource, key) in contents {
            // An error can only say that the object went with another one.
            let _ = self.delete(&resource, &key, &DeleteOptions::default());
        }
    }

    /// Removes the container if it is marked as deleted and nothing holds it any longer, no finalizer and no
    /// contents.
    pub(super) fn settle(&mut self, container: &Container) {
        let (resource, key) = container.place();
        let over = self.find(resource, &key).is_some_and(|o| object::is_deleting(o) && !object::has_finalizers(o));
        if over && self.contents(container).next().is_none() {
            self.take(resource, &key);
        }
    }
}
