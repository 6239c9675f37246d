//! The cluster as the controller works with it: [`Env`] reads, [`Writer`] writes for policies, [`Records`] for the
//! controller itself.
//!
//! The controller's account may write more than any one policy may. So the cluster is private to this module, and a
//! write for a policy takes a [`Writer`], which knows the policy's [`WriteScope`].

mod policy;
mod records;
mod scope;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::query::Filter;
use ephor_cluster::{Cluster, ClusterError, ErrorKind, List, ListQuery, Resource};
use ephor_engine::evaluation::{Done, Evaluation};
use ephor_engine::outcome::{Outcome, Verdict};
use ephor_engine::rules::mutate::identity::IdentityChanged;
use ephor_expr::{Map, Str, Value};

pub use policy::{Place, Writer};
pub use records::Records;
pub use scope::{OutOfScope, WriteScope};

use ephor_runtime::deadline::{Deadline, LargeEvaluations};
use ephor_runtime::facts::{Answers, drive};
use ephor_runtime::lease::LostLease;
use ephor_runtime::metrics::Metrics;
use ephor_runtime::policies::PolicyId;

use super::trigger::TriggerRef;
use crate::plan::{Change, ObjectId};

/// Who writes generated objects; upstream's name for it.
pub const FIELD_MANAGER: &str = "kyverno-generate";

/// What a rule says beside the objects that it makes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Words {
    /// The text of its result; empty for none.
    pub message: Str,
    /// Properties of its result.
    pub properties: Map,
}

impl Words {
    /// What an outcome says. Results of rules of `kyverno.io` name their objects alone.
    pub(crate) fn of(policy: &PolicyId, outcome: &Outcome) -> Self {
        if !policy.kind.is_of_cel() {
            return Self::default();
        }
        let detail = outcome.detail.as_deref();
        let mut properties = detail.map(|detail| detail.properties.clone()).unwrap_or_default();
        let exceptions = detail.map(|detail| detail.exceptions.as_slice()).unwrap_or_default();
        if !exceptions.is_empty() {
            // By their names alone, as upstream has it.
            let names = exceptions.iter().map(|key| key.rsplit('/').next().unwrap_or(key));
            properties.insert("exceptions", names.collect::<Vec<_>>().join(","));
        }
        Self { message: outcome.message.clone(), properties }
    }
}

/// Something worth telling.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// A change was made for a rule of a policy.
    Changed {
        /// The policy.
        policy: PolicyId,
        /// The rule.
        rule: Str,
        /// What it was made for, if that is known.
        trigger: Option<TriggerRef>,
        /// What was done.
        change: Box<Change>,
        /// The object as it is then, or was.
        object: Value,
        /// What the rule says beside it.
        words: Words,
    },
    /// An exception let a trigger off a rule that a request is about.
    Excepted {
        /// The policy.
        policy: PolicyId,
        /// The rule.
        rule: Str,
        /// The trigger.
        trigger: TriggerRef,
        /// What that counts as.
        verdict: Verdict,
        /// What the rule says.
        words: Words,
    },
    /// A rule of a policy failed for a trigger.
    Failed {
        /// The policy.
        policy: PolicyId,
        /// The rule; empty if it is not known which.
        rule: Str,
        /// What it failed for.
        trigger: Option<TriggerRef>,
        /// Why.
        message: String,
    },
}

/// Receives notes on what the writer did.
pub type Observer = Arc<dyn Fn(&Note) + Send + Sync>;

/// Asked before each write: whether it may start now.
pub type Fence = Arc<dyn Fn() -> Result<(), LostLease> + Send + Sync>;

/// How long a policy may take for one trigger, so that none keeps a worker from the others.
const MAX_EVALUATION: Duration = Duration::from_secs(30);

/// What the controller works with. All code reads through it. Code that writes asks it for a [`Writer`] of a policy or
/// for the [`Records`] of the controller itself; there is no other way to write.
#[derive(Clone)]
pub struct Env {
    cluster: Arc<dyn Cluster>,
    fence: Fence,
    /// Answers to the engine's questions.
    pub answers: Arc<dyn Answers>,
    /// Where `UpdateRequest`s and the settings are.
    pub namespace: Str,
    /// Who is told.
    pub observer: Observer,
    /// What is counted.
    pub metrics: Metrics,
    large: Arc<LargeEvaluations>,
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
    /// The policy may not write the object.
    #[error(transparent)]
    OutOfScope(#[from] OutOfScope),
    /// What is to be written is not the object that was read.
    #[error(transparent)]
    IdentityChanged(#[from] IdentityChanged),
    /// A change is for one object and holds another.
    #[error("a change of {meant} holds {found}")]
    OtherObject {
        /// The object that the change is for.
        meant: Box<ObjectId>,
        /// The object in it.
        found: Box<ObjectId>,
    },
}

impl WriteError {
    /// Whether the cluster answered so.
    pub fn is(&self, kind: ErrorKind) -> bool {
        matches!(self, Self::Cluster(error) if error.kind() == kind)
    }
}

impl Env {
    /// Works on `cluster`, and asks `fence` before each write. The other members are as they are named.
    pub fn new(
        cluster: Arc<dyn Cluster>,
        fence: Fence,
        answers: Arc<dyn Answers>,
        namespace: Str,
        observer: Observer,
        metrics: Metrics,
    ) -> Self {
        Self { cluster, fence, answers, namespace, observer, metrics, large: Arc::default() }
    }

    /// Takes an evaluation to its end, for a bounded time and with bounded memory for all workers together.
    pub fn evaluate(&self, evaluation: Evaluation<'_>, answers: &(impl Answers + ?Sized)) -> Done {
        let deadline = Deadline::blocking(Instant::now() + MAX_EVALUATION, &self.large);
        drive(evaluation.interrupted_by(Arc::new(deadline)), answers)
    }

    /// The resource of a kind, as it is served now.
    pub fn resource(&self, api_version: &str, kind: &str) -> Result<Resource, ClusterError> {
        self.cluster.resolve(api_version, kind)
    }

    /// The object of an identity; `None` if there is none.
    pub fn read(&self, api_version: &str, id: &ObjectId) -> Result<Option<Value>, ClusterError> {
        let resource = self.resource(api_version, &id.kind)?;
        match self.get(&resource, id.namespace(), &id.name) {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One object.
    pub fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Result<Value, ClusterError> {
        self.cluster.get(resource, namespace, name)
    }

    /// A page of objects.
    pub fn page(&self, resource: &Resource, query: &ListQuery) -> Result<List, ClusterError> {
        self.cluster.list(resource, query)
    }

    /// All objects that a filter selects.
    pub fn list(&self, resource: &Resource, filter: &Filter) -> Result<Vec<Value>, ClusterError> {
        Ok(ephor_runtime::watcher::list(&*self.cluster, resource, filter)?.0)
    }

    /// What the API server answers to a `SubjectAccessReview`. Asking stores nothing.
    pub fn is_allowed(&self, question: Value) -> Result<bool, ClusterError> {
        ephor_runtime::access::is_allowed(&*self.cluster, question)
    }

    /// Writes for the rules of a policy.
    pub fn writer(&self, policy: &PolicyId) -> Writer<'_> {
        Writer { env: self, scope: WriteScope::of(policy) }
    }

    /// Writes the controller's own records.
    pub fn records(&self) -> Records<'_> {
        Records { env: self }
    }
}
