//! Changes into the cluster: each behind the fence, each bound to the object that was looked at.

use std::sync::Arc;

use ephor_cluster::write::Propagation;
use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, Patch, Resource, WriteOptions};
use ephor_expr::{Str, Value};

use super::trigger::TriggerRef;
use crate::facts::Answers;
use crate::lease::LostLease;
use crate::metrics::Metrics;
use crate::plan::{Action, Change, ObjectId};
use crate::policies::PolicyKey;

/// Who writes generated objects; upstream's name for it.
pub const FIELD_MANAGER: &str = "kyverno-generate";

/// Something worth telling.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// A change was made for a rule of a policy.
    Changed {
        /// The policy.
        policy: PolicyKey,
        /// The rule.
        rule: Str,
        /// What it was made for, if that is known.
        trigger: Option<TriggerRef>,
        /// What was done.
        change: Box<Change>,
        /// The object as it is then, or was.
        object: Value,
    },
    /// A rule of a policy failed for a trigger.
    Failed {
        /// The policy.
        policy: PolicyKey,
        /// The rule; empty if it is not known which.
        rule: Str,
        /// What it failed for.
        trigger: Option<TriggerRef>,
        /// Why.
        message: String,
    },
}

/// Whoever wants to know.
pub type Observer = Arc<dyn Fn(&Note) + Send + Sync>;

/// Asked before each write: whether it may start now.
pub type Fence = Arc<dyn Fn() -> Result<(), LostLease> + Send + Sync>;

/// What the controller works with.
#[derive(Clone)]
pub struct Env {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Answers to the engine's questions.
    pub answers: Arc<dyn Answers>,
    /// Whether a write may start now.
    pub fence: Fence,
    /// Where `UpdateRequest`s are.
    pub namespace: Str,
    /// Who is told.
    pub observer: Observer,
    /// What is counted.
    pub metrics: Metrics,
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Env({})", self.namespace)
    }
}

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another replica leads.
    #[error(transparent)]
    Lost(#[from] LostLease),
    /// The cluster refused.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl WriteError {
    /// Whether the cluster answered so.
    pub fn is(&self, kind: ErrorKind) -> bool {
        matches!(self, Self::Cluster(error) if error.kind() == kind)
    }
}

impl Env {
    /// What writes are done with.
    pub fn options() -> WriteOptions {
        WriteOptions { field_manager: Str::new_static(FIELD_MANAGER), ..WriteOptions::default() }
    }

    /// The resource of a change.
    pub fn resource(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.cluster.resolve(api_version, kind)
    }

    /// The object of an identity; `None` if there is none.
    pub fn read(&self, api_version: &str, id: &ObjectId) -> Result<Option<Value>, ClusterError> {
        let resource = self.resource(api_version, &id.kind)?;
        match self.cluster.get(&resource, id.namespace(), &id.name) {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a change. Gives back what is stored then; `None` after a deletion.
    pub fn apply(&self, change: &Change) -> Result<Option<Value>, WriteError> {
        let resource = self.resource(&change.api_version, &change.id.kind)?;
        let options = Self::options();
        (self.fence)()?;
        match &change.action {
            Action::Create(object) => Ok(Some(self.cluster.create(&resource, object.clone(), &options)?)),
            Action::Replace { after, .. } => Ok(Some(self.cluster.update(&resource, after.clone(), &options)?)),
            Action::Apply { before, after } => {
                let mut after = after.clone();
                // Bound to the object that was looked at. What is not there yet cannot be bound, but without force it
                // takes nothing from whoever made it meanwhile.
                if let Some(uid) = before.as_ref().and_then(|before| before.at(&["metadata", "uid"])) {
                    crate::plan::content::set_meta(&mut after, "uid", Some(uid.clone()));
                }
                let options = WriteOptions { force: before.is_some(), ..options };
                let (id, patch) = (&change.id, Patch::apply(after));
                Ok(Some(self.cluster.patch(&resource, id.namespace(), &id.name, &patch, &options)?))
            }
            Action::Delete { before, .. } => {
                let text = |key: &str| Str::new(before.str_at(&["metadata", key]).unwrap_or_default());
                let options = DeleteOptions {
                    uid: text("uid"),
                    resource_version: text("resourceVersion"),
                    propagation: Some(Propagation::Background),
                    ..DeleteOptions::default()
                };
                match self.cluster.delete(&resource, change.id.namespace(), &change.id.name, &options) {
                    Ok(_) => Ok(None),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
}
