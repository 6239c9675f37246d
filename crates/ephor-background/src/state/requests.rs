//! Takes in `UpdateRequest`s and enqueues them.

use std::collections::BTreeSet;

use ephor_expr::{Str, Value};
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::{ANNOTATION_ASKED_AGAIN, State as RequestState, policy_of};
use ephor_runtime::watcher::StoreEvent;

use super::contexts::is_kept;
use super::failures::Subject;
use super::memory::State;
use super::request_index::{Pending, uid_of};
use crate::plan::ObjectId;
use crate::queue::Task;
use crate::requests::retry_pause;

/// How many finished requests may wait for their end.
const MAX_FINISHED: usize = 100;
/// How long a finished request stays, in milliseconds.
const FINISHED_STAY: Moment = 10_000;

impl State {
    /// Takes in what a watcher says of `UpdateRequest`s.
    pub fn observe_requests(&mut self, change: StoreEvent, now: Moment) {
        match change {
            StoreEvent::Reset(objects) => {
                self.requests.tombstones.forget();
                let names: BTreeSet<Str> = objects.iter().map(name_of).collect();
                for name in self.requests.names().difference(&names) {
                    self.request_gone(name, now);
                }
                for object in objects {
                    self.request_seen(object, now);
                }
            }
            StoreEvent::Apply(object) => {
                if !self.requests.tombstones.is_late(&name_of(&object), &object) {
                    self.request_seen(object, now);
                }
            }
            StoreEvent::Delete(object) => {
                let name = name_of(&object);
                self.requests.tombstones.told(&name, &object);
                if self.requests.uid(&name).is_some_and(|known| known == uid_of(&object)) {
                    self.request_gone(&name, now);
                }
            }
        }
    }

    /// Takes in that this controller took a request away. Another one may have its name by now.
    pub fn request_taken(&mut self, name: &Str, uid: &Str, now: Moment) {
        self.requests.deleted(name, uid);
        if self.requests.given_up(name).is_some_and(|request| request.uid == *uid) {
            self.given_up_ended(name, now);
        }
    }

    fn request_gone(&mut self, name: &Str, now: Moment) {
        if let Some(pending) = self.requests.remove(name) {
            self.set_failure(&policy_of(&pending.object), Subject::Request(name.clone()), None, now);
        }
        self.given_up_ended(name, now);
        for task in [Task::Request(name.clone()), Task::Collect(name.clone())] {
            self.queue.forget(&task);
        }
    }

    /// Whether so many requests wait, done or not, that those which are done go at once.
    fn has_many_requests(&self) -> bool {
        self.requests.open_count() > MAX_FINISHED
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
        let done = self.requests.all_finished().filter(|(_, finished)| finished.namespace == namespace);
        let names: Vec<Str> = done.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.queue.add(Task::Collect(name), now);
        }
        self.collect_given_up_in(namespace, now);
    }

    /// Takes in a request as it is now.
    pub fn request_seen(&mut self, object: Value, now: Moment) {
        let name = name_of(&object);
        if object.str_at(&["metadata", "deletionTimestamp"]).is_some() {
            return;
        }
        if self.given_up_seen(&name, &object, now) {
            self.requests.end(&name, &object);
            self.queue.forget(&Task::Request(name));
            return;
        }
        if is_kept(&object) {
            self.requests.set_kept(&name, &object);
            self.queue.forget(&Task::Request(name.clone()));
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
                self.queue.forget(&Task::Request(name.clone()));
                self.recall(&object, now);
                let namespace = trigger_namespace(&object);
                let stay = if self.is_going(&namespace) { 0 } else { FINISHED_STAY };
                if self.requests.set_finished(&name, &object, namespace) {
                    self.queue.add_at(Task::Collect(name), now + stay, now);
                }
                if self.requests.finished_count() > MAX_FINISHED {
                    for (name, _) in self.requests.all_finished() {
                        self.queue.add(Task::Collect(name.clone()), now);
                    }
                }
            }
            RequestState::Failed | RequestState::Pending => {
                // Its writer and this controller both touch it: what is known of it must not go backwards.
                if self.requests.is_older(&name, &object) {
                    return;
                }
                // A changed request waits again until its object is stored.
                let known = self.requests.pending(&name);
                let known = known.filter(|pending| pending.object.get("spec") == object.get("spec"));
                let since = known.map_or(now, |pending| pending.since);
                // A changed spec is a new request, even if the previous one is finished.
                let asks = |object: &Value| {
                    let again = object.at(&["metadata", "annotations", ANNOTATION_ASKED_AGAIN]).cloned();
                    (object.get("spec").cloned(), again)
                };
                let asked_anew = self.requests.pending(&name).is_some_and(|known| asks(&known.object) != asks(&object));
                let retries = object.at(&["status", "retryCount"]).and_then(Value::as_i64).unwrap_or(0);
                self.requests.set_pending(&name, Pending { object, since });
                // It may have been about to go.
                self.queue.forget(&Task::Collect(name.clone()));
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
pub(super) fn trigger_namespace(object: &Value) -> Str {
    let of_rule = || object.at(&["spec", "ruleContext"])?.as_array()?.first()?.str_at(&["trigger", "namespace"]);
    let named = object.str_at(&["spec", "resource", "namespace"]).filter(|namespace| !namespace.is_empty());
    Str::new(named.or_else(of_rule).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: u64, state: &str) -> Value {
        let text = format!(
            r#"{{"metadata":{{"name":"r","uid":"1","resourceVersion":"{version}"}},"spec":{{"policy":"p"}},"status":{{"state":"{state}"}}}}"#
        );
        Value::from_json(&text).unwrap()
    }

    #[test]
    fn a_finished_request_that_is_asked_for_again_does_not_go_before_it_is_done() {
        let (mut state, collect) = (State::default(), Task::Collect("r".into()));
        state.request_seen(request(1, "Completed"), 0);
        assert!(state.queue.holds(&collect));
        state.request_seen(request(2, "Pending"), 1);
        assert!(!state.queue.holds(&collect) && state.queue.holds(&Task::Request("r".into())));
        state.request_seen(request(3, "Completed"), 2);
        assert!(state.queue.holds(&collect) && !state.queue.holds(&Task::Request("r".into())));
    }
}
