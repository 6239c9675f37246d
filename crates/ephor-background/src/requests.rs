//! Processes `UpdateRequest`s, by which admission hands over requests.
//!
//! | state | means | then |
//! |---|---|---|
//! | none, Pending | to be done | done |
//! | Completed | done; `generatedResources` says what there is | goes after 10 s; at once when more than 100 wait, or when the namespace of the trigger is being deleted |
//! | Skip | there was nothing to do; the message says why | the same |
//! | Failed | tried in vain | tried again four times. Then it is marked as given up and stays as long as `state::given_up` says; synchronizing work stays queued |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ephor_engine::policy::Operation;
use ephor_expr::{Str, Value};
use ephor_runtime::content::normalized_content;
use ephor_runtime::decision::AdmissionRequest;
use ephor_runtime::policies::PolicyId;
use ephor_runtime::queue::{Moment, Settled};
use ephor_runtime::update_request::{
    ANNOTATION_ASKED_AGAIN, ANNOTATION_POLICY_VERSION, RequestType, ResourceSpec, State as RequestState, UpdateRequest,
    UpdateRequestStatus,
};

use super::queue::{Task, WorkKey};
use super::reconcile::{Lookup, ReconcileContext, ReconcileError, TriggerRequest};
use super::rules::PolicyInfo;
use super::state::Subject;
use super::trigger::{TriggerRef, admission_request};

/// How often a failed request is tried again.
pub const MAX_RETRIES: i64 = 3;

/// How long a request that has failed and been retried that often waits, in milliseconds.
pub fn retry_pause(retries: i64) -> Moment {
    5_000 << retries.clamp(0, MAX_RETRIES)
}

/// How many characters of what failed a request says.
const MAX_MESSAGE: usize = 4_096;

/// How long a request waits until its policy is known as admission knew it, in milliseconds.
const SYNC_TIMEOUT: Moment = 10_000;
const POLL_INTERVAL: Moment = 200;

/// The result of a request.
#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    Completed(Vec<ResourceSpec>),
    Skip(String),
    /// There is nothing left that it could be about, or its user had no right to it.
    Moot,
}

impl ReconcileContext<'_> {
    /// Does what the request of that name asks for.
    pub fn request(&self, name: &Str) -> Settled {
        let Some(pending) = self.lock().requests.pending(name).cloned() else { return Settled::Done };
        let request = match UpdateRequest::from_value(&pending.object) {
            Ok(request) => Arc::new(request),
            Err(errors) => {
                let message =
                    errors.first().map_or_else(String::new, |error| format!("{}: {}", error.path, error.message));
                let status = UpdateRequestStatus {
                    state: RequestState::Skip,
                    message: format!("the request cannot be read: {message}").into(),
                    ..UpdateRequestStatus::default()
                };
                return self.write_status(&pending.object, &status);
            }
        };
        let age = self.now.saturating_sub(pending.since);
        let key = request.policy_id();
        if let Some(pause) = self.is_behind(&key, &request, age) {
            return Settled::Later(pause);
        }
        // At one moment: a policy that comes in between would look like one that has nothing to do.
        let (info, known) = {
            let state = self.lock();
            (state.infos.get(&key).cloned(), state.snapshot.policies.contains_key(&key))
        };
        let result = match (request.spec.request_type, info) {
            (Some(RequestType::CelMutate), _) => return Settled::Done,
            (_, None) => self.without_info(&key, &request, known),
            (work, Some(info)) => match self.is_permitted(&request) {
                Ok(true) if work == Some(RequestType::Mutate) => self.mutate_request(&info, &request, age),
                Ok(true) => self.generate_request(&info, &request, age),
                Ok(false) => Ok(Verdict::Moot),
                Err(failure) => Err(failure),
            },
        };
        let retries = request.status.as_ref().map_or(0, |status| status.retry_count);
        let failed = request.state() == RequestState::Failed;
        let subject = || Subject::Request(name.clone());
        match result {
            Ok(Verdict::Moot) => {
                self.lock().set_failure(&key, subject(), None, self.now);
                self.delete_done(name, &pending.object)
            }
            Ok(verdict) => {
                let (state, message, generated_resources) = match verdict {
                    Verdict::Completed(generated) => (RequestState::Completed, String::new(), generated),
                    Verdict::Skip(message) => (RequestState::Skip, message, Vec::new()),
                    Verdict::Moot => return Settled::Done,
                };
                let unread = {
                    let mut locked = self.lock();
                    locked.set_failure(&key, subject(), None, self.now);
                    locked.work_succeeded(&request, self.now);
                    locked.is_read_by_nobody(&pending.object) && !locked.contexts.needs(name)
                };
                if unread {
                    // Deletes the request without writing its status first. That saves a call under load.
                    return self.delete_done(name, &pending.object);
                }
                let status =
                    UpdateRequestStatus { state, message: message.into(), generated_resources, retry_count: retries };
                self.write_status(&pending.object, &status)
            }
            Err(ReconcileError::RetryAfter(pause, _)) => Settled::Later(pause),
            Err(ReconcileError::LostLease) => Settled::Done,
            Err(
                failure @ (ReconcileError::Failed(_)
                | ReconcileError::TargetNotFound(_)
                | ReconcileError::TriggerNotFound(_)),
            ) => {
                let message = failure.to_string();
                let blames_policy = !matches!(failure, ReconcileError::TriggerNotFound(_));
                tracing::debug!(request = %name, %message, "failed");
                if failed && retries >= MAX_RETRIES {
                    self.lock().set_failure(&key, subject(), None, self.now);
                    let needed = self.lock().contexts.needs(name);
                    if blames_policy {
                        self.env.metrics.background_given_up();
                    }
                    // Upstream leaves no request that failed. One without its target would say nothing that helps.
                    let stays = matches!(failure, ReconcileError::Failed(_));
                    return match (needed, stays) {
                        (true, _) => self.keep(name),
                        (false, true) => self.give_up(&pending.object, &request),
                        (false, false) => self.delete_done(name, &pending.object),
                    };
                }
                if blames_policy {
                    self.lock().set_failure(&key, subject(), Some(message.clone()), self.now);
                }
                let retry_count = if failed { retries + 1 } else { retries };
                let status = UpdateRequestStatus {
                    state: RequestState::Failed,
                    message: message.chars().take(MAX_MESSAGE).collect::<String>().into(),
                    generated_resources: Vec::new(),
                    retry_count,
                };
                match self.write_status(&pending.object, &status) {
                    Settled::Done => Settled::Retry(retry_pause(retry_count)),
                    settled => settled,
                }
            }
        }
    }

    /// Whether admission knew a later policy than is known here, and how long to wait for it: what it asks for is
    /// judged by that. Where it does not come, what is true is asked for.
    fn is_behind(&self, key: &PolicyId, request: &UpdateRequest, age: Moment) -> Option<Moment> {
        let version = request.metadata.annotations.get(ANNOTATION_POLICY_VERSION);
        let (uid, generation) = version.and_then(|version| version.split_once('/'))?;
        // One that is not known at all is asked for.
        let known = self.lock().snapshot.policies.get(key).cloned()?;
        if known.uid() == uid && !generation.parse().is_ok_and(|generation: i64| known.generation() < generation) {
            return None;
        }
        if age < SYNC_TIMEOUT {
            return Some(POLL_INTERVAL);
        }
        let behind = !self.is_current(key, known.uid(), known.generation()).unwrap_or(false);
        behind.then(|| retry_pause(0))
    }

    /// The policy has nothing to do here, or is not known (yet).
    fn without_info(&self, key: &PolicyId, request: &UpdateRequest, known: bool) -> Result<Verdict, ReconcileError> {
        let first = WorkKey { policy: key.clone(), trigger: Str::default() };
        if !known && self.policy_document(&first)?.is_some() {
            return Err(ReconcileError::RetryAfter(POLL_INTERVAL, "the policy is not known yet".to_owned()));
        }
        for context in &request.spec.rule_context {
            let key = WorkKey { policy: key.clone(), trigger: trigger_key(&context.trigger) };
            self.reconcile(&key, None)?;
        }
        Ok(Verdict::Moot)
    }

    fn generate_request(
        &self,
        info: &Arc<PolicyInfo>,
        request: &Arc<UpdateRequest>,
        age: Moment,
    ) -> Result<Verdict, ReconcileError> {
        let mut triggers: BTreeMap<Str, Vec<&ephor_runtime::update_request::RuleContext>> = BTreeMap::new();
        for context in &request.spec.rule_context {
            triggers.entry(trigger_key(&context.trigger)).or_default().push(context);
        }
        let admission = admission_request(request);
        let asked_again = request.metadata.annotations.contains_key(ANNOTATION_ASKED_AGAIN);
        let mut generated = Vec::new();
        let mut failure: Option<ReconcileError> = None;
        let mut changes = 0;
        let (mut gone, mut not_persisted) = (true, true);
        for (trigger, contexts) in triggers {
            let key = WorkKey { policy: info.key.clone(), trigger };
            let first = contexts.first().map(|context| &context.trigger);
            let rules: BTreeSet<Str> = contexts.iter().map(|context| context.rule.clone()).collect();
            let released = contexts
                .iter()
                .filter(|c| c.delete_downstream || request.spec.delete_downstream)
                .map(|c| c.rule.clone());
            let trigger_request = TriggerRequest {
                update_request: Arc::clone(request),
                // A request about a downstream or a source only says that something is amiss with it.
                admission: admission.clone().filter(|admission| first.is_none_or(|t| is_about(admission, t))),
                rules,
                alone: false,
                released: released.collect(),
                age,
            };
            let hint = admission.is_some() && trigger_request.admission.is_none();
            {
                let mut state = self.lock();
                if let Some(first) = first {
                    let trigger = TriggerRef { uid: first.uid.clone(), ..TriggerRef::of_spec(first) };
                    state.events.name(&key, trigger);
                }
                state.events.force(&key, trigger_request.rules.iter().cloned());
            }
            let mut result = self.reconcile(&key, (!hint).then_some(&trigger_request));
            // The request replaced earlier ones. The API server may have stored what those announced.
            if asked_again && matches!(&result, Ok(done) if done.not_persisted) {
                self.lock().events.force(&key, trigger_request.rules.iter().cloned());
                result = self.reconcile(&key, None);
            }
            match result {
                Ok(done) => {
                    generated.extend(done.generated);
                    changes += done.changes;
                    gone &= done.trigger_gone;
                    not_persisted &= done.not_persisted;
                    if !done.others_failed {
                        let mut state = self.lock();
                        state.set_failure(&info.key, Subject::Trigger(key.trigger.clone()), None, self.now);
                        state.is_in_step(&key, self.now);
                    }
                }
                Err(ReconcileError::LostLease) => return Err(ReconcileError::LostLease),
                Err(error) => {
                    let mut state = self.lock();
                    if info.synchronizes() && matches!(error, ReconcileError::Failed(_)) {
                        // The request goes in the end; the work does not.
                        state.queue.add_at(Task::Reconcile(key.clone()), self.now + 1_000, self.now);
                    }
                    // Each try says it anew.
                    state.forget_event(&key);
                    drop(state);
                    failure = Some(match failure {
                        Some(known) => known.and(error),
                        None => error,
                    });
                }
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        if not_persisted || gone && generated.is_empty() && changes == 0 {
            return Ok(Verdict::Moot);
        }
        let selects = request.spec.rule_context.iter().any(|c| info.rule(&c.rule).is_some_and(|r| r.traits.selects));
        if changes == 0 && !selects && self.changes_marks_only(request, admission.as_ref())? {
            let message = "only labels or annotations of the trigger changed, which the rule does not select by, and the \
                           rendered objects are unchanged";
            return Ok(Verdict::Skip(message.to_owned()));
        }
        if changes == 0 && generated.is_empty() {
            return Ok(Verdict::Skip("no rule of the request applies to the trigger".to_owned()));
        }
        Ok(Verdict::Completed(generated))
    }

    /// Whether an update changes labels and annotations and nothing else. The new object is the live one, unless it
    /// came along.
    fn changes_marks_only(
        &self,
        request: &UpdateRequest,
        admission: Option<&AdmissionRequest>,
    ) -> Result<bool, ReconcileError> {
        let update = |a: &&AdmissionRequest| a.operation == Operation::Update && a.sub_resource.is_empty();
        let (Some(admission), Some(context)) = (admission.filter(update), request.spec.rule_context.first()) else {
            return Ok(false);
        };
        let object = match &admission.object {
            Value::Null => match self.find(&TriggerRef::of_spec(&context.trigger))? {
                Lookup::Live(live) => live,
                Lookup::Gone | Lookup::NotPersisted => return Ok(false),
            },
            object => object.clone(),
        };
        Ok(object != admission.old_object && unmarked(&object) == unmarked(&admission.old_object))
    }

    fn mutate_request(
        &self,
        info: &Arc<PolicyInfo>,
        request: &Arc<UpdateRequest>,
        age: Moment,
    ) -> Result<Verdict, ReconcileError> {
        // A retry comes late: the policy may be gone or changed by now, before the watch tells of it. A patch is not
        // taken back, so ask the cluster first.
        if request.state() == RequestState::Failed && !self.is_current(&info.key, &info.uid, info.generation)? {
            return Err(ReconcileError::RetryAfter(retry_pause(0), "the policy is not known as it is now".to_owned()));
        }
        let patched = self.mutate(info, request, age)?;
        Ok(match patched {
            Some(targets) => Verdict::Completed(targets),
            None => Verdict::Moot,
        })
    }
}

/// What a trigger is called: its UID; what has none, by where it is.
pub fn trigger_key(trigger: &ResourceSpec) -> Str {
    if trigger.uid.is_empty() {
        format!("{}/{}/{}", trigger.kind, trigger.namespace, trigger.name).into()
    } else {
        trigger.uid.clone()
    }
}

/// Whether an admission request is about a trigger, and not about a downstream or a source.
fn is_about(admission: &AdmissionRequest, trigger: &ResourceSpec) -> bool {
    if !admission.sub_resource.is_empty() || admission.operation == Operation::Connect || trigger.uid.is_empty() {
        return true;
    }
    let uids = [&admission.object, &admission.old_object];
    let mut uids = uids.into_iter().filter_map(|object| object.str_at(&["metadata", "uid"])).peekable();
    uids.peek().is_none() || uids.any(|uid| uid == trigger.uid)
}

/// What an object says beside its labels and annotations.
fn unmarked(object: &Value) -> Value {
    let mut object = normalized_content(object);
    for key in ["labels", "annotations"] {
        ephor_runtime::content::set_meta(&mut object, key, None);
    }
    object
}
