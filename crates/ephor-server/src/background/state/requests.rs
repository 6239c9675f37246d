//! `UpdateRequest`s, and the work that they ask for.

use std::collections::BTreeSet;
use std::sync::Arc;

use ephor_expr::{Str, Value};

use super::memory::State;
use crate::background::queue::{Moment, Task, WorkKey};
use crate::background::requests::retry_pause;
use crate::feed::{Change, version_of};
use crate::update_request::{State as RequestState, UpdateRequest};

/// An `UpdateRequest` that is not done.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The object.
    pub object: Value,
    /// When it was first seen.
    pub since: Moment,
}

/// How many finished requests may wait for their end.
const MAX_FINISHED: usize = 100;
/// How long a finished request stays, in milliseconds.
const FINISHED_STAY: Moment = 10_000;
/// How many contexts of requests are kept.
const MAX_CONTEXTS: usize = 1000;

impl State {
    /// Takes in what a feed says of `UpdateRequest`s.
    pub fn observe_requests(&mut self, change: Change, now: Moment) {
        match change {
            Change::Reset(objects) => {
                self.bygone.forget();
                let names: BTreeSet<Str> = objects.iter().map(name_of).collect();
                let known: Vec<Str> = self.requests.keys().chain(self.finished.keys()).cloned().collect();
                for name in known.into_iter().filter(|name| !names.contains(name)) {
                    self.request_gone(&name);
                }
                for object in objects {
                    self.request_seen(object, now);
                }
            }
            Change::Set(object) => {
                if !self.bygone.is_late(&name_of(&object), &object) {
                    self.request_seen(object, now);
                }
            }
            Change::Gone(object) => {
                let name = name_of(&object);
                self.bygone.told(&name, &object);
                if self.uid_of_request(&name).is_some_and(|known| known == uid_of(&object)) {
                    self.request_gone(&name);
                }
            }
        }
    }

    /// The UID of the request that is known by a name.
    fn uid_of_request(&self, name: &Str) -> Option<Str> {
        let pending = self.requests.get(name).map(|pending| uid_of(&pending.object));
        pending.or_else(|| self.finished.get(name).cloned())
    }

    /// Takes in that this controller took a request away. Another one may have its name by now.
    pub fn request_taken(&mut self, name: &Str, uid: &Str) {
        self.bygone.taken(name, uid);
        self.finished.retain(|known, of| known != name || of != uid);
        if self.requests.get(name).is_some_and(|pending| uid_of(&pending.object) == *uid) {
            self.requests.remove(name);
        }
    }

    fn request_gone(&mut self, name: &Str) {
        self.requests.remove(name);
        self.finished.remove(name);
        for task in [Task::Request(name.clone()), Task::Collect(name.clone())] {
            self.queue.forget(&task);
        }
    }

    /// Whether so many requests wait, done or not, that those which are done go at once.
    pub fn has_many_requests(&self) -> bool {
        self.requests.len() + self.finished.len() > MAX_FINISHED
    }

    /// Takes in a request as it is now.
    pub fn request_seen(&mut self, object: Value, now: Moment) {
        let name = name_of(&object);
        let uid = uid_of(&object);
        if object.str_at(&["metadata", "deletionTimestamp"]).is_some() {
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
                self.bygone.done(name.clone(), &object);
                self.requests.remove(&name);
                self.queue.forget(&Task::Request(name.clone()));
                if self.finished.insert(name.clone(), uid).is_none() {
                    self.queue.add_at(Task::Collect(name), now + FINISHED_STAY, now);
                }
                if self.finished.len() > MAX_FINISHED {
                    let names: Vec<Str> = self.finished.keys().cloned().collect();
                    for name in names {
                        self.queue.add(Task::Collect(name), now);
                    }
                }
            }
            RequestState::Failed | RequestState::Pending => {
                // One that asks for something else now waits anew for what it is about to come true.
                let known = self.requests.get(&name).filter(|pending| pending.object.get("spec") == object.get("spec"));
                let since = known.map_or(now, |pending| pending.since);
                // Its writer and this controller both touch it: what is known of it must not go backwards.
                let older = |a: &Value, b: &Value| version_of(b).is_some() && version_of(a) < version_of(b);
                if self.requests.get(&name).is_some_and(|known| older(&object, &known.object)) {
                    return;
                }
                let retries = object.at(&["status", "retryCount"]).and_then(Value::as_i64).unwrap_or(0);
                self.requests.insert(name.clone(), Pending { object, since });
                if state == RequestState::Failed {
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

    /// Remembers the request that a key's rules cannot be judged without.
    pub fn remember_context(&mut self, key: &WorkKey, request: &Arc<UpdateRequest>) {
        if self.contexts.len() >= MAX_CONTEXTS && !self.contexts.contains_key(key) {
            self.contexts.pop_first();
        }
        self.contexts.insert(key.clone(), Arc::clone(request));
    }
}

fn name_of(object: &Value) -> Str {
    Str::new(object.str_at(&["metadata", "name"]).unwrap_or_default())
}

fn uid_of(object: &Value) -> Str {
    Str::new(object.str_at(&["metadata", "uid"]).unwrap_or_default())
}
