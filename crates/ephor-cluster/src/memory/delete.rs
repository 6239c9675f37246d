//! Deleting.

use ephor_expr::{Str, Value};

use super::containers::Container;
use super::kinds;
use super::options::Collection;
use super::state::{Key, State, shown};
use super::update::bump_generation;
use crate::error::ClusterError;
use crate::object;
use crate::resource::Resource;
use crate::write::{DeleteOptions, Deletion, Propagation};

/// The finalizer of an object whose dependents are to go first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents are to stay.
pub(super) const ORPHAN: &str = "orphan";

impl State {
    /// Removes an object, or marks it as deleted while something holds it.
    ///
    /// There is no grace period: without finalizers even a Pod is gone at once, since nothing runs it.
    pub(super) fn delete(
        &mut self,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Deletion, ClusterError> {
        let current = self.deletable(resource, key, options)?;
        let held = finalizers_after(&current, options.propagation);
        let container = Container::of(resource, key, &current);
        if held.is_empty() && container.is_none() {
            let last = if options.dry_run { None } else { self.remove(resource, key) };
            return Ok(Deletion::Done(last.unwrap_or(current)));
        }
        let marked = self.marked(resource, &current, held);
        if options.dry_run {
            return Ok(Deletion::Pending(marked));
        }
        let marked = if marked == current { marked } else { self.put(resource, key, marked) };
        if let Some(container) = container.filter(|_| self.options.collection == Collection::AtOnce) {
            self.empty_out(&container);
            self.settle(&container);
        }
        Ok(match self.find(resource, key) {
            Some(object) => Deletion::Pending(shown(object, resource)),
            None => Deletion::Done(marked),
        })
    }

    /// The object, if it may be deleted in that way.
    pub(super) fn deletable(
        &self,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Value, ClusterError> {
        let current = self.get(resource, key)?;
        check_preconditions(resource, key, &current, options)?;
        if kinds::is_namespace(resource) && kinds::IMMORTAL_NAMESPACES.contains(&key.name.as_str()) && self.is_strict()
        {
            return Err(ClusterError::forbidden(resource, &key.name, "this namespace may not be deleted"));
        }
        Ok(current)
    }

    /// The object with the mark of deletion and these finalizers.
    fn marked(&self, resource: &Resource, current: &Value, finalizers: Vec<Str>) -> Value {
        let mut marked = current.clone();
        object::set_texts(&mut marked, "finalizers", finalizers);
        if !object::is_deleting(current) {
            object::set(&mut marked, "deletionTimestamp", self.now());
            object::set(&mut marked, "deletionGracePeriodSeconds", 0);
            // The mark changes what controllers have to do about the object, so it counts as a change of substance.
            bump_generation(&mut marked);
            if kinds::is_namespace(resource)
                && let Some(members) = marked.as_object_mut()
            {
                members.insert("status", Value::from([("phase", Value::from("Terminating"))]));
            }
        }
        marked
    }

    /// Stores a changed object; removes it instead if it is marked as deleted and the change takes the last finalizer
    /// away.
    pub(super) fn store(&mut self, resource: &Resource, key: &Key, mut next: Value) -> Value {
        if !object::is_deleting(&next) || object::has_finalizers(&next) {
            return self.put(resource, key, next);
        }
        if let Some(container) = Container::of(resource, key, &next) {
            let next = self.put(resource, key, next);
            self.settle(&container);
            return next;
        }
        if let Some(last) = self.remove(resource, key) {
            object::copy(&mut next, &last, "resourceVersion");
        }
        next
    }

    /// Removes an object, and the namespace or definition that waited for it to go.
    pub(super) fn remove(&mut self, resource: &Resource, key: &Key) -> Option<Value> {
        let last = self.take(resource, key)?;
        for container in Container::around(resource, key) {
            self.settle(&container);
        }
        Some(last)
    }
}

fn check_preconditions(
    resource: &Resource,
    key: &Key,
    current: &Value,
    options: &DeleteOptions,
) -> Result<(), ClusterError> {
    // Upstream: the API server names the kind where it otherwise names the resource.
    let named = || Resource { plural: resource.kind.clone(), ..resource.clone() };
    let stale = |what: &str, wanted: &str, present: &str, happened: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({present}). The object \
             might have been {happened}"
        );
        ClusterError::conflict(&named(), &key.name, &why)
    };
    let uid = object::text(current, "uid");
    if !options.uid.is_empty() && options.uid != uid {
        return Err(stale("UID", &options.uid, uid, "deleted and then recreated"));
    }
    let (wanted, version) = (&options.resource_version, object::text(current, "resourceVersion"));
    if !wanted.is_empty() && wanted != version {
        return Err(stale("ResourceVersion", wanted, version, "modified"));
    }
    Ok(())
}

/// The finalizers of an object that is deleted in that way.
fn finalizers_after(current: &Value, propagation: Option<Propagation>) -> Vec<Str> {
    let mut finalizers: Vec<Str> = object::texts(current, "finalizers").map(Str::new).collect();
    let wanted = match propagation {
        None => return finalizers,
        Some(Propagation::Background) => None,
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Orphan) => Some(ORPHAN),
    };
    finalizers.retain(|f| (f != FOREGROUND && f != ORPHAN) || Some(f.as_str()) == wanted);
    if let Some(wanted) = wanted
        && finalizers.iter().all(|f| f != wanted)
    {
        finalizers.push(wanted.into());
    }
    finalizers
}
