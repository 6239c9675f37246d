//! The request index: the `UpdateRequest`s that are known, by name, each in one state.
//!
//! It takes in what is known of requests and gives back what the caller has to act on. What follows from a state (work,
//! failures, the end of a request) is the concern of [`State`](super::State).

use std::collections::{BTreeMap, BTreeSet};

use ephor_expr::{Str, Value};
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::policy_of;
use ephor_runtime::watcher::version_of;

use super::given_up::GivenUp;
use super::requests::trigger_namespace;
use super::tombstones::Tombstones;

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
    pub(super) namespace: Str,
}

/// An `UpdateRequest` that rules cannot be judged without. It stays when there is nothing left to do.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Its UID.
    pub uid: Str,
    /// Whether its status says that it failed.
    pub says_failed: bool,
}

/// Requests by name. A name is in one of the maps.
#[derive(Debug, Default)]
pub struct RequestIndex {
    pending: BTreeMap<Str, Pending>,
    finished: BTreeMap<Str, Finished>,
    kept: BTreeMap<Str, Kept>,
    /// Requests that are tried no more.
    pub(super) given_up: BTreeMap<Str, GivenUp>,
    pub(super) tombstones: Tombstones,
}

impl RequestIndex {
    /// A request that is not done.
    pub fn pending(&self, name: &str) -> Option<&Pending> {
        self.pending.get(name)
    }

    /// A request that is done.
    pub fn finished(&self, name: &str) -> Option<&Finished> {
        self.finished.get(name)
    }

    /// A request that is kept.
    pub fn kept(&self, name: &str) -> Option<&Kept> {
        self.kept.get(name)
    }

    /// A request that is tried no more.
    pub fn given_up(&self, name: &str) -> Option<&GivenUp> {
        self.given_up.get(name)
    }

    /// The namespace of a request's policy, or that of its trigger if the policy is a cluster policy; empty if neither
    /// has one.
    pub fn namespace(&self, name: &str) -> Str {
        if let Some(pending) = self.pending.get(name) {
            return policy_of(&pending.object).namespace.unwrap_or_else(|| trigger_namespace(&pending.object));
        }
        self.finished.get(name).map(|finished| finished.namespace.clone()).unwrap_or_default()
    }

    /// The UID of the request that is known by a name.
    pub fn uid(&self, name: &str) -> Option<Str> {
        let pending = self.pending.get(name).map(|pending| uid_of(&pending.object));
        let finished = || self.finished.get(name).map(|finished| finished.uid.clone());
        let given_up = || self.given_up.get(name).map(|request| request.uid.clone());
        pending.or_else(finished).or_else(given_up).or_else(|| self.kept.get(name).map(|kept| kept.uid.clone()))
    }

    /// The names of all requests that are known.
    pub(super) fn names(&self) -> BTreeSet<Str> {
        let others = self.finished.keys().chain(self.kept.keys()).chain(self.given_up.keys());
        self.pending.keys().chain(others).cloned().collect()
    }

    /// How many requests are done and not kept.
    pub(super) fn finished_count(&self) -> usize {
        self.finished.len()
    }

    /// How many requests are pending, or done and not kept.
    pub fn open_count(&self) -> usize {
        self.pending.len() + self.finished.len()
    }

    /// The requests that are done and not kept.
    pub(super) fn all_finished(&self) -> impl Iterator<Item = (&Str, &Finished)> {
        self.finished.iter()
    }

    /// A request has something to do. It may have been done before and be asked for again.
    pub(super) fn set_pending(&mut self, name: &Str, pending: Pending) {
        self.finished.remove(name);
        self.kept.remove(name);
        self.pending.insert(name.clone(), pending);
    }

    /// A request is done, as `object` says; whether that is news.
    pub(super) fn set_finished(&mut self, name: &Str, object: &Value, namespace: Str) -> bool {
        self.end(name, object);
        self.kept.remove(name);
        self.finished.insert(name.clone(), Finished { uid: uid_of(object), namespace }).is_none()
    }

    /// A request is done and kept, as `object` says.
    pub(super) fn set_kept(&mut self, name: &Str, object: &Value) {
        self.end(name, object);
        self.finished.remove(name);
        let says_failed = object.str_at(&["status", "state"]) == Some("Failed");
        self.kept.insert(name.clone(), Kept { uid: uid_of(object), says_failed });
    }

    /// Nothing of a request is to be done any more, as `object` says.
    pub(super) fn end(&mut self, name: &Str, object: &Value) {
        self.tombstones.done(name.clone(), object);
        self.pending.remove(name);
    }

    /// A pending request does not exist any more.
    pub fn remove_pending(&mut self, name: &str) {
        self.pending.remove(name);
    }

    /// A request does not exist any more; what was to be done, if anything. One that was given up stays here.
    pub(super) fn remove(&mut self, name: &str) -> Option<Pending> {
        self.finished.remove(name);
        self.kept.remove(name);
        self.pending.remove(name)
    }

    /// This controller deleted a request. Another one may have its name by now, and a watch may still tell of the one
    /// that was deleted.
    pub(super) fn deleted(&mut self, name: &Str, uid: &Str) {
        self.tombstones.taken(name, uid);
        if self.uid(name).is_some_and(|known| known == *uid) {
            self.remove(name);
        }
    }

    /// Whether `object` is an older version of the pending request of that name.
    pub(super) fn is_older(&self, name: &str, object: &Value) -> bool {
        let older = |known: &Value| version_of(known).is_some() && version_of(object) < version_of(known);
        self.pending.get(name).is_some_and(|known| older(&known.object))
    }
}

pub(super) fn uid_of(object: &Value) -> Str {
    Str::new(object.str_at(&["metadata", "uid"]).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uid: &str, version: u64) -> Value {
        let metadata = [("uid", Value::from(uid)), ("resourceVersion", version.to_string().as_str().into())];
        Value::from([("metadata", Value::from(metadata))])
    }

    fn pending(uid: &str, version: u64) -> Pending {
        Pending { object: request(uid, version), since: 0 }
    }

    #[test]
    fn a_request_is_in_one_state() {
        let (mut index, name) = (RequestIndex::default(), Str::new("r"));
        let states = |index: &RequestIndex| {
            (index.pending("r").is_some(), index.finished("r").is_some(), index.kept("r").is_some())
        };
        index.set_pending(&name, pending("1", 1));
        assert_eq!(states(&index), (true, false, false));
        assert!(index.set_finished(&name, &request("1", 2), "n".into()), "news");
        assert!(!index.set_finished(&name, &request("1", 3), "n".into()), "no news");
        assert_eq!(states(&index), (false, true, false));
        index.set_pending(&name, pending("1", 4));
        assert_eq!(states(&index), (true, false, false), "it is asked for again");
        index.set_kept(&name, &request("1", 5));
        assert_eq!((states(&index), index.names().len()), ((false, false, true), 1));
        assert!(index.remove("r").is_none() && index.names().is_empty());
    }

    #[test]
    fn another_request_of_the_name_of_a_deleted_one_stays() {
        let (mut index, name) = (RequestIndex::default(), Str::new("r"));
        index.set_pending(&name, pending("2", 9));
        index.deleted(&name, &"1".into());
        assert_eq!(index.uid("r").as_deref(), Some("2"));
        index.deleted(&name, &"2".into());
        assert_eq!(index.uid("r"), None);
        assert!(index.tombstones.is_late(&name, &request("2", 10)));
    }

    #[test]
    fn what_is_known_of_a_pending_request_does_not_go_backwards() {
        let (mut index, name) = (RequestIndex::default(), Str::new("r"));
        index.set_pending(&name, pending("1", 5));
        assert!(index.is_older("r", &request("1", 4)));
        assert!(!index.is_older("r", &request("1", 5)) && !index.is_older("other", &request("1", 4)));
    }
}
