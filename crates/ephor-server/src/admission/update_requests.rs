//! `UpdateRequest`s: work for the background role that only an admission request knows of.
//!
//! They are made for requests that go on, never on a dry run (controllers 1.4, 2). Where nothing else would remember
//! the event (a deletion, a connection, a subresource, a rule without `synchronize` or one that looks at the user) they
//! are written before the reply, and a failure to write is a verdict by the policy's failure policy. Work that synchronizes follows from what watches
//! see; its requests only make it quick, so they are written after the reply and may be dropped.
//!
//! Names are hashes: of policy and trigger where synchronizing work coalesces, of the admission request
//! otherwise. A request carries the object only where it cannot be read later, never the values of a Secret, and never
//! more than 256 KiB.

use std::collections::BTreeSet;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, Patch, Resource, WriteOptions};
use ephor_engine::compile::{Body, CompiledRule, Program};
use ephor_engine::matching::KindSelector;
use ephor_engine::outcome::{Outcome, Phase, Verdict};
use ephor_engine::policy::{FailurePolicy, Operation};
use ephor_engine::review::Review;
use ephor_engine::select::PolicySet;
use ephor_expr::{Map, Str, Value};
use rustc_hash::FxHashSet;
use sha2::{Digest, Sha256};

use super::answer::Answer;
use super::handlers::{HandlerOptions, Parts, Prepared};
use super::judge::{Effort, Judge, WouldBlock};
use super::observe::Dropped;
use super::path;
use super::redact;
use super::request::AdmissionRequest;
use crate::background::rules::is_for_any_kind;
use crate::background::traits::Traits;
use crate::feed::{Change, Feed, Watched};
use crate::plan::content::essence;
use crate::policies::PolicyKey;
use crate::stop::Stop;
use crate::update_request::{
    self, ANNOTATION_ASKED_AGAIN, ANNOTATION_POLICY_VERSION, ANNOTATION_UNCHANGED, API_VERSION, AdmissionRequestInfo,
    KIND, LABEL_KEPT, RequestContext, RequestMetadata, RequestType, RequestUser, ResourceSpec, RuleContext,
    UpdateRequest, UpdateRequestSpec,
};

/// The work of letting go of what was made.
const DELETE: &str = "delete";
/// How often a request is written anew when another of its name comes or goes meanwhile.
const TRIES: usize = 4;
/// How many bytes of an object travel with a request.
const MAX_PAYLOAD: usize = 256 << 10;
/// How many requests wait to be written after the reply.
const MAX_WAITING: usize = 1000;

/// A request to write.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    pub(super) request: UpdateRequest,
    /// Whether the reply waits until it is written.
    pub(super) urgent: bool,
    /// What it means if it cannot be.
    failure_policy: FailurePolicy,
}

/// The work that follows from a request that goes on.
pub(super) fn plan(
    prepared: &Prepared<'_>,
    set: &PolicySet,
    judge: &Judge<'_>,
    options: &HandlerOptions,
) -> Result<Vec<Work>, WouldBlock> {
    let planner = Planner { prepared, set, options, trigger: trigger(prepared) };
    let mut work = planner.generate(judge)?;
    work.extend(planner.mutate_existing(judge)?);
    Ok(work)
}

/// The object that the request is about.
fn trigger(prepared: &Prepared<'_>) -> ResourceSpec {
    let (request, gvk) = (prepared.request, &prepared.gvk);
    let own = request.sub_resource.is_empty();
    let uid = if own { request.subject().str_at(&["metadata", "uid"]).unwrap_or_default() } else { "" };
    ResourceSpec {
        api_version: ephor_cluster::resource::join_api_version(&gvk.group, &gvk.version),
        kind: gvk.kind.clone(),
        namespace: request.object_namespace().clone(),
        name: request.object_name().into(),
        uid: uid.into(),
    }
}

/// What a rule is to make, or to let go of.
struct Make {
    policy: usize,
    /// Whether nothing but the request tells of it, although the rule synchronizes.
    unique: bool,
    /// Whether what watches see tells the same.
    followed: bool,
    context: RuleContext,
}

struct Planner<'p> {
    prepared: &'p Prepared<'p>,
    set: &'p PolicySet,
    options: &'p HandlerOptions,
    trigger: ResourceSpec,
}

impl Planner<'_> {
    fn rule(&self, outcome: &Outcome) -> Option<(&Program, &CompiledRule)> {
        let program = self.set.programs().get(outcome.policy)?;
        let rule = program.rules.get(outcome.index)?;
        // Requests of the background role would feed it for ever.
        let background = self.prepared.request.user.username == self.options.background_account;
        (!(background && rule.skip_background_requests)).then_some((program, rule))
    }

    /// The rules that apply to a review, as indexes of policy and rule.
    fn applying(&self, judge: &Judge<'_>, review: Review, phase: Phase) -> Result<Vec<Outcome>, WouldBlock> {
        let mut outcomes = judge.applying(self.set, review, phase)?;
        for unclear in outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Error) {
            // Nothing is made or deleted on a guess.
            tracing::warn!(
                policy = self.set.programs().get(unclear.policy).map_or("", |program| program.key.as_str()),
                rule = %unclear.rule,
                uid = %self.prepared.request.uid,
                why = %unclear.message,
                "cannot tell whether a rule applies"
            );
        }
        outcomes.retain(|outcome| outcome.verdict != Verdict::Skip);
        Ok(outcomes)
    }

    fn generate(&self, judge: &Judge<'_>) -> Result<Vec<Work>, WouldBlock> {
        let request = self.prepared.request;
        let deleted = request.operation == Operation::Delete;
        let mut makes: Vec<Make> = Vec::new();
        // Rules that apply now, or about which nothing is known.
        let mut settled = FxHashSet::default();
        for outcome in self.applying(judge, self.prepared.review.clone(), Phase::Generate)? {
            let Some((program, rule)) = self.rule(&outcome) else { continue };
            if deleted && !rule.matches.names_operation(Operation::Delete) {
                continue;
            }
            settled.insert((outcome.policy, outcome.index));
            if outcome.verdict == Verdict::Pass {
                makes.push(self.make(outcome.policy, program, rule, false));
            }
        }
        if !request.old_object.is_null() {
            let before = Review {
                object: request.old_object.clone(),
                old_object: Value::Null,
                // What is deleted was there once.
                operation: if deleted { Operation::Create } else { request.operation },
                ..self.prepared.review.clone()
            };
            for outcome in self.applying(judge, before, Phase::Generate)? {
                let Some((program, rule)) = self.rule(&outcome) else { continue };
                let gone = outcome.verdict == Verdict::Pass && !settled.contains(&(outcome.policy, outcome.index));
                if gone && synchronizes(rule) {
                    makes.push(self.make(outcome.policy, program, rule, true));
                }
            }
        }
        Ok(self.generate_requests(makes))
    }

    fn make(&self, policy: usize, program: &Program, rule: &CompiledRule, delete_downstream: bool) -> Make {
        let context = RuleContext {
            rule: rule.name.clone(),
            delete_downstream,
            synchronize: synchronizes(rule),
            cache_restore: false,
            trigger: self.trigger.clone(),
        };
        let unique = context.synchronize && self.traits(program, rule).remembers(self.prepared.request.operation);
        let kinds: Option<Vec<KindSelector>> = rule.matches.kinds().map(|kinds| kinds.into_iter().cloned().collect());
        let followed = context.synchronize && !unique && !is_for_any_kind(kinds.as_deref());
        Make { policy, unique, followed, context }
    }

    /// What the document of a rule says of requests.
    fn traits(&self, program: &Program, rule: &CompiledRule) -> Traits {
        let key = PolicyKey { namespace: program.namespace.clone(), name: program.name.clone() };
        let document = self.prepared.lanes.snapshot.policies.get(&key).map(|policy| &policy.document);
        let rules = document.and_then(|document| document.at(&["spec", "rules"])?.as_array()).unwrap_or_default();
        let rule = rules.iter().find(|document| document.str_at(&["name"]) == Some(&*rule.declared));
        rule.map(Traits::of_requests).unwrap_or_default()
    }

    /// The rules of one policy share a request, those that synchronize apart from the others: they are remembered in
    /// different ways.
    fn generate_requests(&self, mut makes: Vec<Make>) -> Vec<Work> {
        let sort = |make: &Make| {
            (make.policy, make.context.synchronize, make.context.delete_downstream, make.unique, make.followed)
        };
        makes.sort_by_key(sort);
        makes
            .chunk_by(|a, b| sort(a) == sort(b))
            .filter_map(|chunk| {
                let first = chunk.first()?;
                let program = self.set.programs().get(first.policy)?;
                let work = if first.context.delete_downstream { DELETE } else { "generate" };
                let spec = UpdateRequestSpec {
                    request_type: Some(RequestType::Generate),
                    policy: program.key.clone(),
                    rule_context: chunk.iter().map(|make| make.context.clone()).collect(),
                    context: self.request_context(),
                    ..UpdateRequestSpec::default()
                };
                let labels = update_request::generate_labels(&program.name);
                let coalesces = first.context.synchronize && !first.unique;
                Some(self.work(program, spec, labels, work, (coalesces, first.followed)))
            })
            .collect()
    }

    fn mutate_existing(&self, judge: &Judge<'_>) -> Result<Vec<Work>, WouldBlock> {
        let request = self.prepared.request;
        let mut work = Vec::new();
        for outcome in self.applying(judge, self.prepared.review.clone(), Phase::MutateExisting)? {
            let Some((program, rule)) = self.rule(&outcome).filter(|_| outcome.verdict == Verdict::Pass) else {
                continue;
            };
            if request.operation == Operation::Delete && !rule.matches.names_operation(Operation::Delete) {
                continue;
            }
            let spec = UpdateRequestSpec {
                request_type: Some(RequestType::Mutate),
                policy: program.key.clone(),
                rule: rule.name.clone(),
                resource: self.trigger.clone(),
                context: self.request_context(),
                ..UpdateRequestSpec::default()
            };
            let labels = update_request::mutate_labels(&program.name, &self.trigger);
            work.push(self.work(program, spec, labels, &format!("mutate {}", rule.name), (false, false)));
        }
        Ok(work)
    }

    fn work(
        &self,
        program: &Program,
        spec: UpdateRequestSpec,
        labels: std::collections::BTreeMap<Str, Str>,
        work: &str,
        (coalesces, followed): (bool, bool),
    ) -> Work {
        let request = self.prepared.request;
        let trigger = &self.trigger;
        let plain = matches!(request.operation, Operation::Create | Operation::Update);
        let object = if trigger.uid.is_empty() {
            format!("{}/{}/{}/{}", trigger.api_version, trigger.kind, trigger.namespace, trigger.name)
        } else {
            trigger.uid.to_string()
        };
        // What comes with the request alone is another work each time.
        let live = work == DELETE || plain && request.sub_resource.is_empty();
        let name = if coalesces && live {
            hashed(&[&program.key, &object])
        } else {
            hashed(&[&program.key, &object, work, &request.uid])
        };
        Work {
            urgent: !(followed && plain && request.sub_resource.is_empty()),
            failure_policy: path::failure_policy(program, self.options.force_failure_policy_ignore),
            request: UpdateRequest {
                metadata: RequestMetadata {
                    name,
                    namespace: self.options.namespace.clone(),
                    labels,
                    annotations: self.policy_version(program).into_iter().chain(unchanged(request)).collect(),
                    ..RequestMetadata::default()
                },
                spec,
                status: None,
            },
        }
    }

    fn policy_version(&self, program: &Program) -> Option<(Str, Str)> {
        let key = PolicyKey { namespace: program.namespace.clone(), name: program.name.clone() };
        let policy = self.prepared.lanes.snapshot.policies.get(&key)?;
        let version = format!("{}/{}", policy.uid(), policy.generation());
        Some((Str::new_static(ANNOTATION_POLICY_VERSION), version.into()))
    }

    fn request_context(&self) -> RequestContext {
        let user_info = self.prepared.review.user.as_ref().map(RequestUser::from).unwrap_or_default();
        RequestContext {
            user_info,
            admission_request_info: AdmissionRequestInfo {
                admission_request: payload(self.prepared.request),
                operation: Some(self.prepared.request.operation),
            },
        }
    }
}

/// That an update changes nothing.
fn unchanged(request: &AdmissionRequest) -> Option<(Str, Str)> {
    let says = |object: &Value| (essence(object), object.get("status").cloned());
    let same = request.operation == Operation::Update
        && request.sub_resource.is_empty()
        && says(&request.object) == says(&request.old_object);
    same.then(|| (Str::new_static(ANNOTATION_UNCHANGED), "true".into()))
}

fn synchronizes(rule: &CompiledRule) -> bool {
    matches!(&rule.body, Body::Generate(body) if body.synchronize)
}

/// What of the admission request travels along: the objects only where they cannot be read later.
fn payload(request: &AdmissionRequest) -> Value {
    let needed =
        matches!(request.operation, Operation::Delete | Operation::Connect) || !request.sub_resource.is_empty();
    // Of an update the object before can be read nowhere later; its version also tells when the update has come true.
    let updated = request.operation == Operation::Update;
    let members = request.document.as_object().into_iter().flat_map(Map::iter);
    let mut kept: Map = members
        .filter(|(key, _)| !matches!(key.as_str(), "object" | "oldObject" | "userInfo"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if needed || updated {
        for (key, object) in [("object", &request.object), ("oldObject", &request.old_object)] {
            if !object.is_null() && (needed || key == "oldObject") {
                let object = trimmed(object);
                let bytes = object.to_json().len();
                if bytes <= MAX_PAYLOAD {
                    kept.insert(key, object);
                } else {
                    tracing::warn!(
                        uid = %request.uid, kind = %request.kind.kind, namespace = %request.namespace,
                        name = %request.object_name(), operation = request.operation.as_str(), bytes,
                        "`{key}` is too large to travel with an UpdateRequest: rules that read it fail, or see none"
                    );
                }
            }
        }
    }
    kept.into()
}

/// An object without what nobody renders from it.
fn trimmed(object: &Value) -> Value {
    let mut object = redact::without_values(object);
    if let Some(metadata) =
        object.as_object_mut().and_then(|members| members.get_mut("metadata")).and_then(Value::as_object_mut)
    {
        metadata.remove("managedFields");
    }
    object
}

fn hashed(parts: &[&str]) -> Str {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize();
    digest.iter().take(10).fold(Str::new_static("ur-"), |name, byte| format!("{name}{byte:02x}").into())
}

/// How many requests wait for the background role.
#[derive(Debug, Clone, Default)]
pub struct Waiting(Arc<Mutex<BTreeSet<Str>>>);

impl Waiting {
    /// Follows the requests in a namespace until `stop`, and tells `seen` how many there are.
    pub fn follow(
        cluster: &Arc<dyn Cluster>,
        namespace: &str,
        seen: impl Fn(usize) + Send + 'static,
        stop: &Stop,
    ) -> (Self, Feed) {
        let waiting = Self::default();
        let sink = waiting.clone();
        let watched = Watched::all(API_VERSION, KIND).in_namespace(namespace).metadata_only();
        let feed = Feed::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| {
            sink.apply(change);
            seen(sink.count());
        });
        (waiting, feed)
    }

    fn apply(&self, change: Change) {
        let name = |object: &Value| Str::new(object.str_at(&["metadata", "name"]).unwrap_or_default());
        // What is done and kept waits for nobody.
        let waits = |object: &Value| object.at(&["metadata", "labels", LABEL_KEPT]).is_none();
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Reset(objects) => *names = objects.iter().filter(|object| waits(object)).map(name).collect(),
            Change::Set(object) if waits(&object) => {
                names.insert(name(&object));
            }
            Change::Set(object) | Change::Gone(object) => {
                names.remove(&name(&object));
            }
        }
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// The writer of requests.
pub(super) struct UpdateRequests {
    later: Option<SyncSender<Work>>,
    /// How many wait already, where somebody counts.
    pub(super) waiting: OnceLock<Waiting>,
}

impl UpdateRequests {
    pub(super) fn start(options: &HandlerOptions, parts: &Parts) -> Self {
        if options.audit_workers == 0 || options.shadow {
            return Self { later: None, waiting: OnceLock::new() };
        }
        let (sender, receiver) = sync_channel::<Work>(MAX_WAITING);
        let parts = parts.clone();
        let spawned = std::thread::Builder::new().name("update requests".into()).spawn(move || {
            while let Ok(work) = receiver.recv() {
                if let Err(error) = create(&work, &parts) {
                    tracing::warn!(policy = %work.request.spec.policy, %error, "an UpdateRequest was not written");
                    parts.observer.dropped(Dropped::UpdateRequest);
                }
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "cannot start a thread");
            return Self { later: None, waiting: OnceLock::new() };
        }
        Self { later: Some(sender), waiting: OnceLock::new() }
    }

    fn is_full(&self, parts: &Parts) -> bool {
        let threshold = parts.config.get().update_request_threshold;
        self.waiting.get().is_some_and(|waiting| waiting.count() as u64 >= threshold)
    }

    /// Writes what is urgent and takes the rest for later; the answer to give if something urgent was not written.
    pub(super) fn write(
        &self,
        work: Vec<Work>,
        effort: Effort,
        parts: &Parts,
    ) -> Result<Result<(), Answer>, WouldBlock> {
        if effort == Effort::Immediate && work.iter().any(|work| work.urgent || self.later.is_none()) {
            return Err(WouldBlock);
        }
        let mut warnings = Vec::new();
        if !work.is_empty() && self.is_full(parts) {
            // A queue without end would bring the API server down (lessons 10), and what is lost is not lost in silence.
            let lost = work.iter().filter(|work| work.urgent).map(|work| &work.request.spec.policy);
            warnings.extend(lost.map(|policy| {
                format!("the work of policy {policy} was not recorded: too many UpdateRequests wait already")
            }));
            for work in &work {
                tracing::warn!(policy = %work.request.spec.policy, "too many UpdateRequests wait: one more is dropped");
                parts.observer.dropped(Dropped::UpdateRequest);
            }
            return Ok(if warnings.is_empty() { Ok(()) } else { Err(Answer::allow().with_warnings(warnings)) });
        }
        // What is urgent first: if that cannot be written, the request does not go on.
        let (urgent, later): (Vec<Work>, Vec<Work>) = work.into_iter().partition(|work| work.urgent);
        for work in urgent {
            let Err(error) = create(&work, parts) else { continue };
            let policy = &work.request.spec.policy;
            tracing::warn!(%policy, %error, "an UpdateRequest was not written");
            let message = format!("the work of policy {policy} could not be recorded: {error}");
            match work.failure_policy {
                FailurePolicy::Fail => return Ok(Err(Answer { code: Some(500), ..Answer::deny(message) })),
                FailurePolicy::Ignore => warnings.push(message),
            }
        }
        for work in later {
            let taken = match &self.later {
                Some(later) => later.try_send(work).is_ok(),
                None => create(&work, parts).is_ok(),
            };
            if !taken {
                parts.observer.dropped(Dropped::UpdateRequest);
            }
        }
        if warnings.is_empty() { Ok(Ok(())) } else { Ok(Err(Answer::allow().with_warnings(warnings))) }
    }
}

/// Why a request was not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Encode(#[from] ephor_expr::value::EncodeError),
}

fn create(work: &Work, parts: &Parts) -> Result<(), WriteError> {
    let object = work.request.to_value()?;
    let resource = parts.cluster.resolve(API_VERSION, KIND)?;
    let options = WriteOptions::default();
    for _ in 0..TRIES {
        match parts.cluster.create(&resource, object.clone(), &options) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return Ok(created.map(|_| ())?),
        }
        match again(&resource, work, parts) {
            Ok(Again::Asked) => return Ok(()),
            Ok(Again::MadeRoom) => {}
            // Somebody else was quicker: the background role, or another request.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What became of a request that says what another one says already.
enum Again {
    /// The other one is to be done once more.
    Asked,
    /// The other one was done, and is gone.
    MadeRoom,
}

/// The same work is asked for already. Whoever is at it may have looked before this request's object was stored: so it
/// must begin anew, which a new version of the request brings about; and one that is done waits only for its end.
fn again(resource: &Resource, work: &Work, parts: &Parts) -> Result<Again, ClusterError> {
    let (namespace, name) = (Some(work.request.metadata.namespace.as_str()), &*work.request.metadata.name);
    let known = parts.cluster.get(resource, namespace, name)?;
    let text = |key: &str| Str::new(known.str_at(&["metadata", key]).unwrap_or_default());
    if matches!(known.str_at(&["status", "state"]), Some("Completed" | "Skip")) {
        let options =
            DeleteOptions { uid: text("uid"), resource_version: text("resourceVersion"), ..DeleteOptions::default() };
        parts.cluster.delete(resource, namespace, name, &options)?;
        return Ok(Again::MadeRoom);
    }
    let mut annotations: Map =
        work.request.metadata.annotations.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    let asked = work.request.spec.context.admission_request_info.admission_request.str_at(&["uid"]).unwrap_or_default();
    annotations.insert(ANNOTATION_ASKED_AGAIN, asked);
    if !work.request.metadata.annotations.contains_key(ANNOTATION_UNCHANGED) {
        annotations.insert(ANNOTATION_UNCHANGED, Value::Null);
    }
    let metadata = Value::from([
        ("annotations", Value::object(annotations)),
        ("uid", text("uid").into()),
        ("resourceVersion", text("resourceVersion").into()),
    ]);
    let mut asked = work.request.clone();
    // What it says of other rules stays said.
    let said = UpdateRequest::from_value(&known).map(|known| known.spec.rule_context).unwrap_or_default();
    let new: FxHashSet<Str> = asked.spec.rule_context.iter().map(|context| context.rule.clone()).collect();
    asked.spec.rule_context.extend(said.into_iter().filter(|context| !new.contains(&context.rule)));
    let spec = asked.to_value().ok().and_then(|asked| asked.get("spec").cloned()).unwrap_or_default();
    let patch = Patch::merge(Value::from([("metadata", metadata), ("spec", spec)]));
    parts.cluster.patch(resource, namespace, name, &patch, &WriteOptions::default())?;
    Ok(Again::Asked)
}
