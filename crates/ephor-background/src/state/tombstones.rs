//! Finished `UpdateRequest`s. A late or repeated watch event must not add them to the queue again.

use std::collections::BTreeMap;

use ephor_expr::{Str, Value};
use ephor_runtime::watcher::version_of;

use super::request_index::uid_of;

/// Finished requests, kept while watch events about them may still arrive.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    /// By name.
    ended: BTreeMap<Str, Tombstone>,
    /// The version of the last end that was told.
    told: Option<u64>,
}

#[derive(Debug)]
struct Tombstone {
    uid: Str,
    /// What it says up to this version is old.
    version: Option<u64>,
    /// Whether it was taken away: whatever it says is old.
    taken: bool,
}

impl Tombstones {
    /// A request is done, as this object says.
    pub(super) fn done(&mut self, name: Str, object: &Value) {
        self.ended.insert(name, Tombstone { uid: uid_of(object), version: version_of(object), taken: false });
    }

    /// A request was taken away.
    pub(super) fn taken(&mut self, name: &Str, uid: &Str) {
        match self.ended.get_mut(name) {
            Some(end) if end.uid == *uid => end.taken = true,
            _ => {
                self.ended.insert(name.clone(), Tombstone { uid: uid.clone(), version: None, taken: true });
            }
        }
    }

    /// The end of a request is told.
    pub(super) fn told(&mut self, name: &Str, object: &Value) {
        self.told = self.told.max(version_of(object));
        if self.ended.get(name).is_some_and(|end| end.uid == uid_of(object)) {
            self.ended.remove(name);
        }
    }

    /// All that there is was told anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether what is told of a request comes too late.
    pub(super) fn is_late(&self, name: &Str, object: &Value) -> bool {
        let version = version_of(object);
        // No version is less than any other.
        let old = |end: Option<u64>| version.is_some() && version <= end;
        let over = |end: &Tombstone| old(end.version) || (end.taken && end.uid == uid_of(object));
        old(self.told) || self.ended.get(name).is_some_and(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uid: &str, version: u64) -> Value {
        let metadata = [("uid", Value::from(uid)), ("resourceVersion", version.to_string().as_str().into())];
        Value::from([("metadata", Value::from(metadata))])
    }

    #[test]
    fn what_is_done_is_done_until_something_newer_is_told() {
        let (mut tombstones, name) = (Tombstones::default(), Str::new("a"));
        assert!(!tombstones.is_late(&name, &request("one", 3)));
        tombstones.done(name.clone(), &request("one", 5));
        assert!(tombstones.is_late(&name, &request("one", 3)) && tombstones.is_late(&name, &request("one", 5)));
        assert!(!tombstones.is_late(&name, &request("one", 6)), "it was asked for again");
        tombstones.taken(&name, &"one".into());
        assert!(tombstones.is_late(&name, &request("one", 6)));
        assert!(!tombstones.is_late(&name, &request("two", 7)), "another one of that name");
    }

    #[test]
    fn what_is_older_than_the_last_end_comes_too_late() {
        let (mut tombstones, name) = (Tombstones::default(), Str::new("a"));
        tombstones.told(&name, &request("one", 7));
        assert!(tombstones.is_late(&name, &request("one", 6)) && !tombstones.is_late(&name, &request("two", 8)));
        tombstones.forget();
        assert!(!tombstones.is_late(&name, &request("one", 6)));
    }
}
