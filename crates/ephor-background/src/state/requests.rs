//! Takes in `UpdateRequest`s and enqueues them.

use std::collections::BTreeSet;

use ephor_expr::{Str, Value};
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::{ANNOTATION_ASKED_AGAIN, State as RequestState};
use ephor_runtime::watcher::{StoreEvent, version_of};

use super::contexts::is_kept;
use super::failures::Subject;
use super::memory::State;
use super::names::policy_key;
use crate::plan::ObjectId;
use crate::queue::Task;
use crate::requests::retry_pause;

/// An `UpdateRequest` that is not done.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The object.
    pub object: Value,
    /// When it was first seen.
    pub since: Moment,
}

/// An `UpdateRequest` that is done.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its UID.
    pub uid: Str,
    /// The namespace of its trigger; empty for cluster-wide ones.
    namespace: Str,
}

/// How many finished requests may wait for their end.
const MAX_FINISHED: usize = 100;
/// How long a finished request stays, in milliseconds.
const FINISHED_STAY: Moment = 10_000;

impl State {
    /// Takes in what a watcher says of `UpdateRequest`s.
    pub fn observe_requests(&mut self, change: StoreEvent, now: Moment) {
        match change {
            StoreEvent::Reset(objects) => {
                self.tombstones.forget();
                let names: BTreeSet<Str> = objects.iter().map(name_of).collect();
                let known: Vec<Str> = self
                    .requests
                    .keys()
                    .chain(self.finished.keys())
                    .chain(self.kept.keys())
                    .chain(self.given_up.keys())
                    .cloned()
                    .collect();
                for name in known.into_iter().filter(|name| !names.contains(name)) {
                    self.request_gone(&name, now);
                }
                for object in objects {
                    self.request_seen(object, now);
                }
            }
            StoreEvent::Apply(object) => {
                if !self.tombstones.is_late(&name_of(&object), &object) {
                    self.request_seen(object, now);
                }
            }
            StoreEvent::Delete(object) => {
                let name = name_of(&object);
                self.tombstones.told(&name, &object);
                if self.uid_of_request(&name).is_some_and(|known| known == uid_of(&object)) {
                    self.request_gone(&name, now);
                }
            }
        }
    }

    /// The UID of the request that is known by a name.
    pub fn uid_of_request(&self, name: &Str) -> Option<Str> {
        let pending = self.requests.get(name).map(|pending| uid_of(&pending.object));
        let finished = || self.finished.get(name).map(|finished| finished.uid.clone());
        let given_up = || self.given_up.get(name).map(|request| request.uid.clone());
        pending.or_else(finished).or_else(given_up).or_else(|| self.kept.get(name).cloned())
    }

    /// Takes in that this controller took a request away. Another one may have its name by now.
    pub fn request_taken(&mut self, name: &Str, uid: &Str, now: Moment) {
        self.tombstones.taken(name, uid);
        self.finished.retain(|known, finished| known != name || finished.uid != *uid);
        self.kept.retain(|known, of| known != name || of != uid);
        if self.given_up.get(name).is_some_and(|request| request.uid == *uid) {
            self.given_up_ended(name, now);
        }
        if self.requests.get(name).is_some_and(|pending| uid_of(&pending.object) == *uid) {
            self.requests.remove(name);
        }
    }

    fn request_gone(&mut self, name: &Str, now: Moment) {
        if let Some(pending) = self.requests.remove(name) {
            let policy = pending.object.str_at(&["spec", "policy"]).unwrap_or_default();
            let (namespace, policy) = policy.split_once('/').unwrap_or(("", policy));
            self.set_failure(&policy_key(namespace, policy), Subject::Request(name.clone()), None, now);
        }
        self.finished.remove(name);
        self.kept.remove(name);
        self.given_up_ended(name, now);
        for task in [Task::Request(name.clone()), Task::Collect(name.clone())] {
            self.queue.forget(&task);
        }
    }

    /// Whether so many requests wait, done or not, that those which are done go at once.
    fn has_many_requests(&self) -> bool {
        self.requests.len() + self.finished.len() > MAX_FINISHED
    }

    /// Whether a finished request can be deleted at once: too many are kept, or the namespace of what it is
    /// about is on its way out.
    pub fn is_read_by_nobody(&self, request: &Value) -> bool {
        self.has_many_requests() || self.is_going(&trigger_namespace(request))
    }

    fn is_going(&self, namespace: &str) -> bool {
        let seen = self.index.find(&ObjectId::new("v1", "Namespace", "", namespace));
        seen.is_some_and(|namespace| namespace.terminating)
    }

    /// A namespace is on its way out: requests that are done for triggers in it go before it.
    pub(super) fn collect_in(&mut self, namespace: &str, now: Moment) {
        let done = self.finished.iter().filter(|(_, finished)| finished.namespace == namespace);
        let names: Vec<Str> = done.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.queue.add(Task::Collect(name), now);
        }
        self.collect_given_up_in(namespace, now);
    }

    /// Takes in a request as it is now.
    pub fn request_seen(&mut self, object: Value, now: Moment) {
        let name = name_of(&object);
        let uid = uid_of(&object);
        if object.str_at(&["metadata", "deletionTimestamp"]).is_some() {
            return;
        }
        if self.given_up_seen(&name, &object, now) {
            self.tombstones.done(name.clone(), &object);
            self.requests.remove(&name);
            self.queue.forget(&Task::Request(name));
            return;
        }
        if is_kept(&object) {
            self.tombstones.done(name.clone(), &object);
            self.requests.remove(&name);
            self.finished.remove(&name);
            self.queue.forget(&Task::Request(name.clone()));
            self.kept.insert(name.clone(), uid);
            self.recall(&object, now);
            if !self.contexts.needs(&name) {
                self.queue.add(Task::Collect(name), now);
            }
            return;
        }
        let state = match object.str_at(&["status", "state"]) {
            Some("Completed") => RequestState::Completed,
            Some("Skip") => RequestState::Skip,
            Some("Failed") => RequestState::Failed,
            _ => RequestState::Pending,
        };
        match state {
            RequestState::Completed | RequestState::Skip => {
                self.tombstones.done(name.clone(), &object);
                self.requests.remove(&name);
                self.queue.forget(&Task::Request(name.clone()));
                self.recall(&object, now);
                let namespace = trigger_namespace(&object);
                let stay = if self.is_going(&namespace) { 0 } else { FINISHED_STAY };
                if self.finished.insert(name.clone(), Finished { uid, namespace }).is_none() {
                    self.queue.add_at(Task::Collect(name), now + stay, now);
                }
                if self.finished.len() > MAX_FINISHED {
                    let names: Vec<Str> = self.finished.keys().cloned().collect();
                    for name in names {
                        self.queue.add(Task::Collect(name), now);
                    }
                }
            }
            RequestState::Failed | RequestState::Pending => {
                // A changed request waits again until its object is stored.
                let known = self.requests.get(&name).filter(|pending| pending.object.get("spec") == object.get("spec"));
                let since = known.map_or(now, |pending| pending.since);
                // Its writer and this controller both touch it: what is known of it must not go backwards.
                let older = |a: &Value, b: &Value| version_of(b).is_some() && version_of(a) < version_of(b);
                if self.requests.get(&name).is_some_and(|known| older(&object, &known.object)) {
                    return;
                }
                // A changed spec is a new request, even if the previous one is finished.
                let asks = |object: &Value| {
                    let again = object.at(&["metadata", "annotations", ANNOTATION_ASKED_AGAIN]).cloned();
                    (object.get("spec").cloned(), again)
                };
                let asked_anew = self.requests.get(&name).is_some_and(|known| asks(&known.object) != asks(&object));
                let retries = object.at(&["status", "retryCount"]).and_then(Value::as_i64).unwrap_or(0);
                self.requests.insert(name.clone(), Pending { object, since });
                if state == RequestState::Failed && !asked_anew {
                    let pause = retry_pause(retries);
                    if !self.queue.holds(&Task::Request(name.clone())) {
                        self.queue.add_at(Task::Request(name), now + pause, now);
                    }
                } else {
                    self.queue.add(Task::Request(name), now);
                }
            }
        }
    }
}

fn name_of(object: &Value) -> Str {
    Str::new(object.str_at(&["metadata", "name"]).unwrap_or_default())
}

/// Mutate requests name their trigger once, generate requests for each rule.
fn trigger_namespace(object: &Value) -> Str {
    let of_rule = || object.at(&["spec", "ruleContext"])?.as_array()?.first()?.str_at(&["trigger", "namespace"]);
    let named = object.str_at(&["spec", "resource", "namespace"]).filter(|namespace| !namespace.is_empty());
    Str::new(named.or_else(of_rule).unwrap_or_default())
}

pub(super) fn uid_of(object: &Value) -> Str {
    Str::new(object.str_at(&["metadata", "uid"]).unwrap_or_default())
}
