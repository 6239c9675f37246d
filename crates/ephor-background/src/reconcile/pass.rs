//! One piece of work at hand: what it works with, what is asked and what comes of it.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard};

use ephor_cluster::ClusterError;
use ephor_cluster::query::Filter;
use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};
use ephor_runtime::decision::AdmissionRequest;
use ephor_runtime::poison::PoisonMutex;
use ephor_runtime::policies::PolicyKey;
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::{ANNOTATION_POLICY_VERSION, ANNOTATION_UNCHANGED, ResourceSpec, UpdateRequest};

use crate::plan::{Change, ObjectId};
use crate::queue::WorkKey;
use crate::state::State;
use crate::trigger::TriggerRef;
use crate::writer::{Env, Note, WriteError};

/// Why work is not done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It is too early: again after that many milliseconds.
    #[error("waiting: {1}")]
    Later(Moment, String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// The trigger is not there. The request fails, but the policy is not to blame.
    #[error("trigger {0} is not there")]
    NoTrigger(TriggerRef),
    /// Another replica leads.
    #[error("leadership is lost")]
    Lost,
}

impl Failure {
    /// What failed names its rule and its trigger, wherever it is read: in an `UpdateRequest`, a policy or the log.
    pub(crate) fn of_rule(rule: &str, trigger: &TriggerRef, why: &str) -> Self {
        let rule = if rule.is_empty() { String::new() } else { format!("rule {rule} for ") };
        Self::Failed(format!("{rule}{trigger}: {why}"))
    }
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Lost(_) => Self::Lost,
            error => Self::Failed(error.to_string()),
        }
    }
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Done {
    /// Objects that the rules want and that exist.
    pub generated: Vec<ResourceSpec>,
    /// How many changes were made.
    pub changes: usize,
    /// Whether what the request says never came true: nothing was done then.
    pub untrue: bool,
    /// Whether the trigger is gone.
    pub trigger_gone: bool,
}

/// A request behind the work.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The request.
    pub request: Arc<UpdateRequest>,
    /// What admission was asked; `None` for requests without.
    pub admission: Option<AdmissionRequest>,
    /// The rules it is about.
    pub rules: BTreeSet<Str>,
    /// Whether no other rules are to be looked at.
    pub alone: bool,
    /// Those of them that shall let go of what they made.
    pub released: BTreeSet<Str>,
    /// How long ago it was first seen, in milliseconds.
    pub age: Moment,
}

impl Asked {
    /// Whether what it is about came with it and is no stored object.
    pub(super) fn brings_its_object(&self) -> bool {
        let admission = self.admission.as_ref();
        admission.is_some_and(|a| a.operation == Operation::Connect || !a.sub_resource.is_empty())
    }

    /// Whether Ephor's admission wrote the request: it does so before the API server stores the object, which may never
    /// happen.
    pub(super) fn precedes_its_object(&self) -> bool {
        self.request.metadata.annotations.contains_key(ANNOTATION_POLICY_VERSION)
    }
}

/// How long a request waits for what it is about to come true: it is written before the API server stores the object,
/// and other webhooks may take 30 s each, all at the same time.
pub const PATIENCE: Moment = 35_000;
/// The same for what is most likely in vain.
pub(super) const BRIEF: Moment = 3_000;
pub(super) const LOOK_AGAIN: Moment = 200;
/// The longest pause between two looks.
const LONGEST_PAUSE: Moment = 2_000;
/// How often a change is planned anew when the object has changed meanwhile.
pub(super) const TRIES: usize = 4;

/// A trigger, as it is found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// It is there.
    Live(Value),
    /// It is gone, or about to go.
    Gone,
    /// It is as it was before the request, which was refused.
    Untrue,
}

/// One piece of work at hand.
pub struct Pass<'p> {
    /// What to work with.
    pub env: &'p Env,
    /// What is known.
    pub state: &'p PoisonMutex<State>,
    /// When this is.
    pub now: Moment,
    /// The same as the engine has it.
    pub clock: jiff::Timestamp,
}

impl Pass<'_> {
    /// The state, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The live trigger.
    pub fn find(&self, trigger: &TriggerRef) -> Result<Found, Failure> {
        let id = trigger.id();
        if !trigger.name.is_empty() {
            let recent = {
                let state = self.lock();
                let seen = state.index.find(&id).filter(|seen| seen.uid == trigger.uid);
                seen.filter(|_| state.index.is_wide(&id.group_kind())).and_then(|seen| state.index.recent.get(seen))
            };
            if let Some(object) = recent {
                return Ok(found(object));
            }
            return self.read(trigger);
        }
        // Made by upstream, which notes no names: looked for by UID.
        let resource = self.env.resource(&trigger.api_version, &trigger.kind)?;
        let filter = Filter { namespace: Some(trigger.namespace.clone()), ..Filter::default() };
        let objects = self.env.list(&resource, &filter)?;
        let with_uid = objects.into_iter().find(|o| o.str_at(&["metadata", "uid"]) == Some(&*trigger.uid));
        Ok(with_uid.map_or(Found::Gone, found))
    }

    /// The trigger as it is stored now.
    fn read(&self, trigger: &TriggerRef) -> Result<Found, Failure> {
        let id = trigger.id();
        let Some(object) = self.env.read(&trigger.api_version, &id)? else { return Ok(Found::Gone) };
        if !trigger.uid.is_empty() && object.str_at(&["metadata", "uid"]) != Some(&*trigger.uid) {
            return Ok(Found::Gone);
        }
        self.lock().note(&object, self.now);
        Ok(found(object))
    }

    /// The trigger, once what an admission request says about it has come true: the request is written before the API
    /// server stores the object. `age` is how long that has been waited for.
    pub fn find_after(
        &self,
        trigger: &TriggerRef,
        request: &UpdateRequest,
        admission: &AdmissionRequest,
        age: Moment,
    ) -> Result<Found, Failure> {
        let found = self.find(trigger)?;
        // What changes nothing is not stored.
        let unchanged = request.metadata.annotations.contains_key(ANNOTATION_UNCHANGED);
        if !admission.sub_resource.is_empty() || unchanged || !is_early(&found, admission) {
            return Ok(found);
        }
        let in_vain = age >= BRIEF
            && admission.operation == Operation::Create
            && self.env.read(&trigger.api_version, &trigger.id())?.is_some();
        // Where another object has the name, the creation is refused.
        if age < PATIENCE && !in_vain {
            let pause = (age / 8).clamp(LOOK_AGAIN, LONGEST_PAUSE);
            return Err(Failure::Later(pause, "the object of the request is not stored yet".to_owned()));
        }
        // What is known may be old; what is true is asked for once.
        let found = self.read(trigger)?;
        let refused = matches!(found, Found::Live(_)) && is_early(&found, admission);
        Ok(if refused { Found::Untrue } else { found })
    }

    pub(crate) fn policy_document(&self, key: &WorkKey) -> Result<Option<Value>, Failure> {
        let kind = if key.policy.namespace.is_some() { "Policy" } else { "ClusterPolicy" };
        let namespace = key.policy.namespace.as_deref().unwrap_or_default();
        let id = ObjectId::new("kyverno.io/v1", kind, namespace, &key.policy.name);
        match self.env.read("kyverno.io/v1", &id) {
            Ok(found) => Ok(found),
            // Not even the kind is served: nothing can be said about the policy.
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the cluster has a policy just as it is known.
    pub(crate) fn is_current(&self, policy: &PolicyKey, uid: &str, generation: i64) -> Result<bool, Failure> {
        let live = self.policy_document(&WorkKey { policy: policy.clone(), trigger: Str::default() })?;
        Ok(live.is_some_and(|live| {
            live.str_at(&["metadata", "uid"]) == Some(uid)
                && live.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default() == generation
        }))
    }

    pub(super) fn tell(&self, key: &WorkKey, rule: &str, trigger: Option<&TriggerRef>, change: &Change, object: Value) {
        let (policy, trigger) = (key.policy.clone(), trigger.cloned());
        let change = Box::new(change.clone());
        (self.env.observer)(&Note::Changed { policy, rule: rule.into(), trigger, change, object });
    }

    pub(super) fn forget(&self, id: &ObjectId) {
        self.lock().lose_own(id, self.now);
    }

    /// After a deletion: the object may still be there, held by finalizers; the watch will tell.
    pub(super) fn forget_object(&self, id: &ObjectId, live: &Value) {
        let held = live.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
        if !held {
            self.forget(id);
        }
    }
}

/// Whether a trigger is as it was before the request, or older: the request is not stored yet, or never will be.
fn is_early(found: &Found, admission: &AdmissionRequest) -> bool {
    let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).map(Str::new);
    match (found, admission.operation) {
        (Found::Gone, Operation::Create) | (Found::Live(_), Operation::Delete) => true,
        (Found::Live(live), Operation::Update) if !admission.old_object.is_null() => {
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

fn found(object: Value) -> Found {
    let going = object.str_at(&["metadata", "deletionTimestamp"]).is_some();
    if going { Found::Gone } else { Found::Live(object) }
}
