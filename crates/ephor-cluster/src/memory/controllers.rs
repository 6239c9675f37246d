//! The controllers of Kubernetes that the in-memory cluster needs: namespace deletion and garbage collection.

use super::cluster::MemoryCluster;
use super::containers::Container;
use super::garbage::Place;
use super::kinds;
use super::state::{State, table_id};
use crate::admission::User;
use crate::cluster::Cluster;
use crate::object;
use crate::write::DeleteOptions;

/// A deletion that admission refuses stops nothing; it is tried again at the next call.
const MAX_ROUNDS: usize = 64;

impl MemoryCluster {
    /// Does what there is to do for the controllers of a cluster: what is in deleted namespaces and definitions goes,
    /// and what has no living owner any longer. Admission sees the users of Kubernetes' controllers. How many objects
    /// were touched.
    pub fn reconcile(&self) -> usize {
        let mut touched = 0;
        for _ in 0..MAX_ROUNDS {
            let done = self.empty_containers() + self.sweep();
            if done == 0 {
                break;
            }
            touched += done;
        }
        touched
    }

    fn empty_containers(&self) -> usize {
        let controller = self.acting_as(User::service_account("kube-system", "namespace-controller"));
        let mut touched = 0;
        let terminating = self.read(State::terminating);
        for container in terminating {
            let contents: Vec<Place> = self.read(|state| {
                let present = state.contents(&container).map(|(resource, key)| (resource.clone(), key.clone()));
                present.filter(|(r, k)| state.find(r, k).is_some_and(|o| !object::is_deleting(o))).collect()
            });
            for (resource, key) in contents {
                let options = DeleteOptions::default();
                let deleted = match &container {
                    Container::Namespace(name) => controller.delete(&resource, Some(name), &key.name, &options).is_ok(),
                    // The API server itself deletes what a definition defined.
                    Container::Definition { .. } => self.write(|state| state.delete(&resource, &key, &options)).is_ok(),
                };
                touched += usize::from(deleted);
            }
            touched += usize::from(self.write(|state| {
                let (resource, key) = container.place();
                let before = state.find(resource, &key).is_some();
                state.settle(&container);
                before && state.find(resource, &key).is_none()
            }));
        }
        touched
    }

    fn sweep(&self) -> usize {
        let controller = self.acting_as(User::service_account("kube-system", "generic-garbage-collector"));
        let (mut touched, doomed) = self.write(State::garbage);
        for ((resource, key), options) in doomed {
            let namespace = Some(key.namespace.as_str()).filter(|n| !n.is_empty());
            touched += usize::from(controller.delete(&resource, namespace, &key.name, &options).is_ok());
        }
        touched
    }
}

impl State {
    /// The containers that are marked as deleted.
    fn terminating(&self) -> Vec<Container> {
        let mut found = Vec::new();
        for resource in [&*kinds::NAMESPACE, &*kinds::DEFINITION] {
            let Some(table) = self.tables.get(&table_id(resource)) else { continue };
            for (key, object) in table.objects.iter().filter(|(_, object)| object::is_deleting(object)) {
                found.extend(Container::of(resource, key, object));
            }
        }
        found
    }
}
