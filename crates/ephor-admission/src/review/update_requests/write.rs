//! Writes `UpdateRequest`s and counts those that wait.

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, Patch, Resource, WriteOptions};
use ephor_engine::policy::FailurePolicy;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::decision::answer::Answer;
use ephor_runtime::decision::observe::Dropped;
use ephor_runtime::threads;
use ephor_runtime::update_request::{
    ANNOTATION_ASKED_AGAIN, ANNOTATION_UNCHANGED, API_VERSION, KIND, LABEL_GIVEN_UP, LABEL_KEPT,
    LABEL_TRIGGER_NAMESPACE, UpdateRequest,
};
use ephor_runtime::watcher::{StoreEvent, WatchTarget, Watcher};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

use super::Work;
use crate::review::handlers::{HandlerOptions, Parts};
use crate::review::judge::{Effort, WouldBlock};

/// How often a request is written anew when another of its name comes or goes meanwhile.
const TRIES: usize = 4;
/// How many requests wait to be written after the reply.
const MAX_WAITING: usize = 1000;

/// How many requests are kept for triggers of one namespace: more are not made there. The background role holds all.
const MAX_KEPT: usize = 1000;

/// The requests that wait for the background role, and those that it keeps.
#[derive(Debug, Clone, Default)]
pub struct Waiting(Arc<Mutex<Seen>>);

/// Requests by name, with the namespaces of their triggers.
#[derive(Debug, Default)]
struct Seen {
    waiting: BTreeMap<Str, Str>,
    kept: BTreeMap<Str, Str>,
}

impl Seen {
    fn remove(&mut self, name: &Str) {
        self.waiting.remove(name);
        self.kept.remove(name);
    }

    fn add(&mut self, object: &Value) {
        let name = Str::new(object.str_at(&["metadata", "name"]).unwrap_or_default());
        let label = |label: &str| object.at(&["metadata", "labels", label]);
        let namespace = Str::new(label(LABEL_TRIGGER_NAMESPACE).and_then(Value::as_str).unwrap_or_default());
        self.remove(&name);
        // A request that is kept or was given up asks for no more work.
        if label(LABEL_KEPT).is_some() {
            self.kept.insert(name, namespace);
        } else if label(LABEL_GIVEN_UP).is_none() {
            self.waiting.insert(name, namespace);
        }
    }
}

impl Waiting {
    /// Follows the requests in a namespace until `stop`, and tells `seen` how many there are.
    pub fn follow(
        cluster: &Arc<dyn Cluster>,
        namespace: &str,
        seen: impl Fn(usize) + Send + 'static,
        stop: &CancellationToken,
    ) -> (Self, Watcher) {
        let waiting = Self::default();
        let sink = waiting.clone();
        let watched = WatchTarget::all(API_VERSION, KIND).in_namespace(namespace).metadata_only();
        let watcher = Watcher::spawn(Arc::clone(cluster), watched, stop.clone(), move |change| {
            sink.apply(change);
            seen(sink.0.lock().waiting.len());
        });
        (waiting, watcher)
    }

    fn apply(&self, change: StoreEvent) {
        let mut seen = self.0.lock();
        match change {
            StoreEvent::Reset(objects) => {
                *seen = Seen::default();
                for object in &objects {
                    seen.add(object);
                }
            }
            StoreEvent::Apply(object) => seen.add(&object),
            StoreEvent::Delete(object) => {
                seen.remove(&Str::new(object.str_at(&["metadata", "name"]).unwrap_or_default()));
            }
        }
    }

    /// Whether no more may wait for a trigger in `namespace`, where `threshold` may wait in all.
    ///
    /// A namespace has at most as many as are free for all others: one alone gets half, the next a quarter, and
    /// however many namespaces somebody has, there is room for those that have none waiting. Nor may more be made where
    /// very many are kept.
    fn is_full(&self, namespace: &str, threshold: u64) -> bool {
        let seen = self.0.lock();
        let own = |requests: &BTreeMap<Str, Str>| match namespace {
            "" => 0,
            namespace => requests.values().filter(|of| *of == namespace).count(),
        };
        let free = threshold.saturating_sub(seen.waiting.len() as u64);
        own(&seen.waiting) as u64 >= free || own(&seen.kept) >= MAX_KEPT
    }
}

/// The writer of requests.
pub(in crate::review) struct UpdateRequests {
    later: Option<SyncSender<Work>>,
    /// The number of waiting requests, if they are counted.
    pub(in crate::review) waiting: OnceLock<Waiting>,
}

impl UpdateRequests {
    pub(in crate::review) fn start(options: &HandlerOptions, parts: &Parts) -> Self {
        if options.audit_workers == 0 || options.shadow {
            return Self { later: None, waiting: OnceLock::new() };
        }
        let (sender, receiver) = sync_channel::<Work>(MAX_WAITING);
        let parts = parts.clone();
        threads::spawn("update requests", threads::LARGE, &options.stop, move || {
            while let Ok(work) = receiver.recv() {
                if let Err(error) = create(&work, &parts) {
                    tracing::warn!(policy = %work.request.spec.policy, %error, "an UpdateRequest was not written");
                    parts.observer.dropped(Dropped::UpdateRequest);
                }
            }
        });
        Self { later: Some(sender), waiting: OnceLock::new() }
    }

    fn is_full(&self, work: &Work, parts: &Parts) -> bool {
        let threshold = parts.config.get().update_request_threshold;
        let namespace = work.request.metadata.labels.get(LABEL_TRIGGER_NAMESPACE).map_or("", Str::as_str);
        self.waiting.get().is_some_and(|waiting| waiting.is_full(namespace, threshold))
    }

    /// Writes what is urgent and takes the rest for later; the answer to give if something urgent was not written.
    pub(in crate::review) fn write(
        &self,
        work: Vec<Work>,
        effort: Effort,
        parts: &Parts,
    ) -> Result<Result<(), Answer>, WouldBlock> {
        if effort == Effort::Immediate && work.iter().any(|work| work.urgent || self.later.is_none()) {
            return Err(WouldBlock);
        }
        let mut warnings = Vec::new();
        // All work of a request is for the same trigger.
        if work.first().is_some_and(|first| self.is_full(first, parts)) {
            // A queue without end would bring the API server down, and what is lost is not lost in silence.
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
    #[error("others wrote UpdateRequest {name} at each of {TRIES} tries")]
    Contended { name: Str },
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
            // Another writer was faster: the background role, or another request.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(WriteError::Contended { name: work.request.metadata.name.clone() })
}

/// The result of writing a request that exists already.
enum Again {
    /// The other one is to be done once more.
    Asked,
    /// The other one was done or given up, and is gone.
    MadeRoom,
}

/// A request for the same work exists. The controller may have read the cluster before the object of this request was
/// stored, so the work must start again: a new version of the request causes that. A finished request only waits to be
/// deleted.
fn again(resource: &Resource, work: &Work, parts: &Parts) -> Result<Again, ClusterError> {
    let (namespace, name) = (Some(work.request.metadata.namespace.as_str()), &*work.request.metadata.name);
    let known = parts.cluster.get(resource, namespace, name)?;
    let text = |key: &str| Str::new(known.str_at(&["metadata", key]).unwrap_or_default());
    let given_up = known.at(&["metadata", "labels", LABEL_GIVEN_UP]).is_some();
    if given_up || matches!(known.str_at(&["status", "state"]), Some("Completed" | "Skip")) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_leave_room_for_waiting_requests_of_others() {
        let waiting = Waiting::default();
        let add = |namespace: &str, count: usize| {
            for number in 0..count {
                let request = format!(
                    r#"{{"metadata":{{"name":"{namespace}-{number}","labels":{{"{LABEL_TRIGGER_NAMESPACE}":"{namespace}"}}}}}}"#
                );
                waiting.apply(StoreEvent::Apply(Value::from_json(&request).unwrap()));
            }
        };
        let full = |threshold| ["a", "b", ""].map(|namespace| waiting.is_full(namespace, threshold));
        assert_eq!((full(1), full(0)), ([false; 3], [true; 3]));
        add("a", 49);
        assert_eq!(full(100), [false, false, false]);
        add("a", 50);
        assert_eq!(full(100), [true, false, false]);
        add("b", 24);
        assert_eq!(full(100), [true, false, false]);
        add("b", 25);
        assert_eq!(full(100), [true, true, false]);
        // Another namespace, and what is in none, still have room.
        assert!(!waiting.is_full("c", 100));
        add("", 25);
        assert_eq!(full(100), [true, true, true]);
        // A larger threshold leaves room for all, but not where very many are kept.
        for number in 0..MAX_KEPT {
            let labels = format!(r#""{LABEL_TRIGGER_NAMESPACE}":"k","{LABEL_KEPT}":"true""#);
            let request = format!(r#"{{"metadata":{{"name":"k-{number}","labels":{{{labels}}}}}}}"#);
            assert!(!waiting.is_full("k", 500), "{number}");
            waiting.apply(StoreEvent::Apply(Value::from_json(&request).unwrap()));
        }
        assert!(waiting.is_full("k", 500) && !waiting.is_full("l", 500));
        assert_eq!(full(151), [false, false, false]);
    }
}
