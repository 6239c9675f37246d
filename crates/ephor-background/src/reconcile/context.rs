//! The inputs and results of one reconciliation: environment, shared state, the `UpdateRequest` that asks for it, and
//! the outcome. [`ReconcileContext::find_after`] waits until the API server has stored what a request announces.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard};

use ephor_cluster::ClusterError;
use ephor_cluster::query::Filter;
use ephor_engine::policy::Operation;
use ephor_engine::redact::Redactor;
use ephor_engine::review::Review;
use ephor_expr::{Str, Value};
use ephor_runtime::decision::AdmissionRequest;
use ephor_runtime::poison::PoisonMutex;
use ephor_runtime::policies::PolicyId;
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::{ANNOTATION_POLICY_VERSION, ANNOTATION_UNCHANGED, ResourceSpec, UpdateRequest};

use crate::plan::{Change, ObjectId};
use crate::queue::WorkKey;
use crate::state::State;
use crate::trigger::{TriggerRef, review_of_existing};
use crate::writer::{Env, Note, Words, WriteError};

/// Why a reconciliation did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// It cannot be decided yet. Holds the milliseconds until the next attempt.
    #[error("waiting: {1}")]
    RetryAfter(Moment, String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// The trigger does not exist. The request fails, but its policy is not reported as failing.
    #[error("trigger {0} is not there")]
    TriggerNotFound(TriggerRef),
    /// A mutate rule names a target that does not exist. The request fails, and none stays once it is given up.
    #[error("{0}")]
    TargetNotFound(String),
    /// Another replica leads.
    #[error("leadership is lost")]
    LostLease,
}

impl ReconcileError {
    /// What failed names its rule and its trigger, wherever it is read: in an `UpdateRequest`, a policy or the log.
    pub(crate) fn of_rule(rule: &str, trigger: &TriggerRef, why: &str) -> Self {
        let rule = if rule.is_empty() { String::new() } else { format!("rule {rule} for ") };
        Self::Failed(format!("{rule}{trigger}: {why}"))
    }

    /// The same without the values of Secrets.
    pub(super) fn redacted(self, secrets: &Redactor) -> Self {
        let shown = |message: String| secrets.text(&message).into_owned();
        match self {
            Self::Failed(message) => Self::Failed(shown(message)),
            Self::RetryAfter(pause, why) => Self::RetryAfter(pause, shown(why)),
            Self::TargetNotFound(message) => Self::TargetNotFound(shown(message)),
            failure @ (Self::TriggerNotFound(_) | Self::LostLease) => failure,
        }
    }

    /// Both, as one. Failures are told together; what a policy is to blame for counts before a trigger that is not
    /// there.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Failed(first), Self::Failed(second)) => Self::Failed(format!("{first}; {second}")),
            (Self::TriggerNotFound(_), other) => other,
            (first, _) => first,
        }
    }
}

impl From<ClusterError> for ReconcileError {
    fn from(error: ClusterError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<WriteError> for ReconcileError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Lost(_) => Self::LostLease,
            error => Self::Failed(error.to_string()),
        }
    }
}

/// The result of a reconciliation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Done {
    /// Objects that the rules want and that exist.
    pub generated: Vec<ResourceSpec>,
    /// How many changes were made.
    pub changes: usize,
    /// Whether the API server rejected the request after admission, so that its object was never stored. No change was
    /// made then.
    pub not_persisted: bool,
    /// Whether the trigger is gone.
    pub trigger_gone: bool,
    /// Whether rules failed that the request does not name. They are enqueued.
    pub others_failed: bool,
}

/// An `UpdateRequest` that asks for the reconciliation.
#[derive(Debug, Clone)]
pub struct TriggerRequest {
    /// The request.
    pub update_request: Arc<UpdateRequest>,
    /// The admission request in it; `None` if it has none.
    pub admission: Option<AdmissionRequest>,
    /// The rules it names.
    pub rules: BTreeSet<Str>,
    /// Whether only these rules are evaluated.
    pub alone: bool,
    /// The rules whose downstreams are to be deleted.
    pub released: BTreeSet<Str>,
    /// How long ago it was first seen, in milliseconds.
    pub age: Moment,
}

impl TriggerRequest {
    /// Whether the request carries its object and the object is not stored: CONNECT and subresources.
    pub(super) fn brings_its_object(&self) -> bool {
        let admission = self.admission.as_ref();
        admission.is_some_and(|a| a.operation == Operation::Connect || !a.sub_resource.is_empty())
    }

    /// Whether Ephor's admission wrote the request: it does so before the API server stores the object, which may never
    /// happen.
    pub(super) fn precedes_its_object(&self) -> bool {
        self.update_request.metadata.annotations.contains_key(ANNOTATION_POLICY_VERSION)
    }
}

/// How long a request waits for its object, in milliseconds. Admission writes the request before the API server stores
/// the object, and other webhooks may take 30 s in parallel.
pub const PERSISTENCE_TIMEOUT: Moment = 35_000;
/// The same if another object has the name, so that the API server most likely rejects the creation.
pub(super) const NAME_TAKEN_TIMEOUT: Moment = 3_000;
pub(super) const POLL_INTERVAL: Moment = 200;
/// The longest pause between two lookups of a request that waits.
const LONGEST_POLL_INTERVAL: Moment = 2_000;
/// How often a change is planned again after the object has changed in between.
pub(super) const TRIES: usize = 4;

/// The result of a lookup of a trigger.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup {
    /// It exists.
    Live(Value),
    /// It does not exist, or is being deleted.
    Gone,
    /// It is as it was before the request, which the API server rejected.
    NotPersisted,
}

/// The environment of a reconciliation.
pub struct ReconcileContext<'p> {
    /// Cluster, writer and facts.
    pub env: &'p Env,
    /// The state of the controller.
    pub state: &'p PoisonMutex<State>,
    /// The current time.
    pub now: Moment,
    /// The current time for the engine.
    pub clock: jiff::Timestamp,
}

impl ReconcileContext<'_> {
    /// Locks the state.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The trigger as a watch told it last, or as it is stored where no watch tells of it.
    pub fn find(&self, trigger: &TriggerRef) -> Result<Lookup, ReconcileError> {
        self.recent(trigger).map_or_else(|| self.stored(trigger), Ok)
    }

    /// The trigger as a watch told it last; `None` if no watch tells of it.
    fn recent(&self, trigger: &TriggerRef) -> Option<Lookup> {
        let id = trigger.id();
        let state = self.lock();
        let seen = state.index.find(&id).filter(|seen| !trigger.name.is_empty() && seen.uid == trigger.uid)?;
        state.index.recent.get(seen).filter(|_| state.index.is_wide(&id.group_kind())).map(found)
    }

    /// A created trigger as a watch told it; `None` if none tells of it. The request is tried again shortly if it comes
    /// before the watch. `age` is the time since the request was first seen.
    ///
    /// This is for rules that synchronize: a later change corrects what they did.
    pub(super) fn told_of(&self, trigger: &TriggerRef, age: Moment) -> Result<Option<Lookup>, ReconcileError> {
        let told = self.recent(trigger);
        let state = self.lock();
        let id = trigger.id();
        let is_awaited = told.is_none() && state.index.is_wide(&id.group_kind()) && state.index.find(&id).is_none();
        if is_awaited && age < POLL_INTERVAL {
            return Err(ReconcileError::RetryAfter(
                POLL_INTERVAL,
                "the watch has not told of the object yet".to_owned(),
            ));
        }
        Ok(told)
    }

    /// The trigger as it is stored now.
    fn stored(&self, trigger: &TriggerRef) -> Result<Lookup, ReconcileError> {
        if trigger.name.is_empty() {
            // Upstream's labels hold no names of triggers, so look for the UID.
            let resource = self.env.resource(&trigger.api_version, &trigger.kind)?;
            let filter = Filter { namespace: Some(trigger.namespace.clone()), ..Filter::default() };
            let objects = self.env.list(&resource, &filter)?;
            let with_uid = objects.into_iter().find(|o| o.str_at(&["metadata", "uid"]) == Some(&*trigger.uid));
            return Ok(with_uid.map_or(Lookup::Gone, found));
        }
        let Some(object) = self.env.read(&trigger.api_version, &trigger.id())? else { return Ok(Lookup::Gone) };
        if !trigger.uid.is_empty() && object.str_at(&["metadata", "uid"]) != Some(&*trigger.uid) {
            return Ok(Lookup::Gone);
        }
        self.lock().note(&object, self.now);
        Ok(found(object))
    }

    /// The trigger, once the API server has stored what the admission request announces. `age` is the time since the
    /// request was first seen.
    ///
    /// Watches lag, and a request is judged only once. So what a watch told can make the request wait, but the result
    /// is what is stored.
    pub fn find_after(
        &self,
        trigger: &TriggerRef,
        request: &UpdateRequest,
        admission: &AdmissionRequest,
        age: Moment,
    ) -> Result<Lookup, ReconcileError> {
        // The API server does not store an update without a change.
        let unchanged = request.metadata.annotations.contains_key(ANNOTATION_UNCHANGED);
        let early = |found: &Lookup| admission.sub_resource.is_empty() && !unchanged && is_early(found, admission);
        let expired = age >= PERSISTENCE_TIMEOUT;
        let found = match self.recent(trigger).filter(|known| !expired && early(known)) {
            Some(known) => known,
            None => self.stored(trigger)?,
        };
        if !early(&found) {
            return Ok(found);
        }
        // The API server rejects the creation if another object has the name.
        let in_vain = age >= NAME_TAKEN_TIMEOUT
            && admission.operation == Operation::Create
            && self.env.read(&trigger.api_version, &trigger.id())?.is_some();
        if !expired && !in_vain {
            let pause = (age / 8).clamp(POLL_INTERVAL, LONGEST_POLL_INTERVAL);
            return Err(ReconcileError::RetryAfter(pause, "the object of the request is not stored yet".to_owned()));
        }
        Ok(if matches!(found, Lookup::Live(_)) { Lookup::NotPersisted } else { found })
    }

    pub(crate) fn policy_document(&self, key: &WorkKey) -> Result<Option<Value>, ReconcileError> {
        let PolicyId { kind, name, .. } = &key.policy;
        let Some(api_version) = kind.api_version() else { return Ok(None) };
        let id = ObjectId::new(api_version, kind.as_str(), key.policy.namespace_label(), name);
        // Where not even the kind is served, nothing can be said about the policy.
        Ok(self.env.read(api_version, &id)?)
    }

    /// The review of an existing trigger for a policy with that UID, with the resource that the API server names in
    /// requests about such objects.
    pub(crate) fn review_of(&self, object: &Value, operation: Operation, policy_uid: &str) -> Review {
        let mut review = review_of_existing(object, operation, policy_uid, self.clock);
        let discovery = Arc::clone(&self.lock().discovery);
        let gvk = &review.gvk;
        let resource = discovery.with_kind(&gvk.kind).find(|r| r.group == gvk.group && r.version == gvk.version);
        if let Some(resource) = resource {
            let named = Value::from([
                ("group", Value::from(resource.group.clone())),
                ("version", resource.version.clone().into()),
                ("resource", resource.plural.clone().into()),
            ]);
            review.attributes.insert("resource", named);
        }
        review
    }

    /// Whether the cluster has a policy just as it is known.
    pub(crate) fn is_current(&self, policy: &PolicyId, uid: &str, generation: i64) -> Result<bool, ReconcileError> {
        let live = self.policy_document(&WorkKey { policy: policy.clone(), trigger: Str::default() })?;
        Ok(live.is_some_and(|live| {
            live.str_at(&["metadata", "uid"]) == Some(uid)
                && live.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default() == generation
        }))
    }

    pub(super) fn tell(&self, key: &WorkKey, rule: &str, trigger: Option<&TriggerRef>, change: &Change, object: Value) {
        let (policy, trigger) = (key.policy.clone(), trigger.cloned());
        let (change, words) = (Box::new(change.clone()), Words::default());
        (self.env.observer)(&Note::Changed { policy, rule: rule.into(), trigger, change, object, words });
    }

    pub(super) fn forget(&self, id: &ObjectId) {
        self.lock().lose_own(id, self.now);
    }

    /// Forgets a deleted object. One with finalizers still exists; the watch reports when it is gone.
    pub(super) fn forget_object(&self, id: &ObjectId, live: &Value) {
        let held = live.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
        if !held {
            self.forget(id);
        }
    }
}

/// Whether a trigger is as it was before the request, or older: the request is not stored yet, or never will be.
fn is_early(found: &Lookup, admission: &AdmissionRequest) -> bool {
    let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).map(Str::new);
    match (found, admission.operation) {
        (Lookup::Gone, Operation::Create) | (Lookup::Live(_), Operation::Delete) => true,
        (Lookup::Live(live), Operation::Update) if !admission.old_object.is_null() => {
            match (version(live), version(&admission.old_object)) {
                (Some(live), Some(old)) => match (live.parse::<u64>(), old.parse::<u64>()) {
                    (Ok(live), Ok(old)) => live <= old,
                    _ => live == old,
                },
                (live, old) => live == old,
            }
        }
        _ => false,
    }
}

fn found(object: Value) -> Lookup {
    let going = object.str_at(&["metadata", "deletionTimestamp"]).is_some();
    if going { Lookup::Gone } else { Lookup::Live(object) }
}
