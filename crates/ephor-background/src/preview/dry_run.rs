//! Finds out what the API server would store for a write: its defaults and the changes of mutating webhooks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ephor_cluster::memory::{Options, Schemas};
use ephor_cluster::{Cluster, ClusterError, ErrorKind, MemoryCluster, Resource, WriteOptions};
use ephor_expr::Value;
use ephor_runtime::content::set_meta;

use crate::writer::FIELD_MANAGER;

/// Sends writes to the API server as dry runs. If that is forbidden, an in-memory API server with the kinds of
/// Kubernetes adds the defaults.
pub(super) struct DryRun {
    inner: Arc<dyn Cluster>,
    substitute: MemoryCluster,
    refused: AtomicBool,
}

/// The kind of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    Create,
    Update,
}

impl DryRun {
    pub(super) fn new(inner: Arc<dyn Cluster>) -> Self {
        let options = Options { schemas: Schemas::Enforced, ..Options::offline() };
        Self { inner, substitute: MemoryCluster::new(options), refused: AtomicBool::new(false) }
    }

    /// The object as the server would store it; an error is the server's own, about the object.
    pub(super) fn on_server(&self, resource: &Resource, object: &Value, write: Write) -> Result<Value, ClusterError> {
        if self.refused.load(Ordering::Relaxed) {
            return Ok(self.on_substitute(resource, object));
        }
        let options = WriteOptions { field_manager: FIELD_MANAGER.into(), ..WriteOptions::dry_run() };
        let tried = match write {
            Write::Create => self.inner.create(resource, object.clone(), &options),
            Write::Update => self.inner.update(resource, object.clone(), &options),
        };
        match tried {
            Err(error) if is_about_asking(&error) => {
                self.refused.store(true, Ordering::Relaxed);
                Ok(self.on_substitute(resource, object))
            }
            tried => tried,
        }
    }

    /// The object with the defaults of its kind, as far as they are known without the server.
    pub(super) fn on_substitute(&self, resource: &Resource, object: &Value) -> Value {
        let mut fresh = object.clone();
        for key in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            set_meta(&mut fresh, key, None);
        }
        let Ok(mut stored) = self.substitute.create(resource, fresh, &WriteOptions::dry_run()) else {
            return object.clone();
        };
        for key in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            set_meta(&mut stored, key, object.at(&["metadata", key]).cloned());
        }
        stored
    }
}

/// Whether it is the asker who is refused, not the object: no permission, or somebody who knows no dry runs.
fn is_about_asking(error: &ClusterError) -> bool {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Forbidden => message.contains(" cannot ") && !message.contains("admission webhook"),
        ErrorKind::Unsupported => true,
        ErrorKind::Invalid => message.contains("does not support dry run"),
        _ => false,
    }
}
