//! The ownership index: which keys want which objects, and how the objects were when they were last written.
//!
//! A key takes the objects in that its synchronizing rules render. The index returns the objects that the key no
//! longer wants; [`State`](super::State) enqueues the other keys that want or own them.

use std::collections::{BTreeMap, BTreeSet};

use ephor_expr::Str;
use ephor_runtime::content::Written;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::policies::PolicyId;

use super::waiting::Waiting;
use crate::plan::ObjectId;
use crate::queue::WorkKey;

/// Objects and the keys that want them.
#[derive(Debug, Default)]
pub struct Ownership {
    /// What each key's rules render, with the rule; synchronizing rules only.
    rendered: BTreeMap<WorkKey, BTreeMap<ObjectId, Str>>,
    wanted_by: BTreeMap<ObjectId, BTreeSet<WorkKey>>,
    written: BTreeMap<ObjectId, Written>,
    /// Copies whose rule names another source now.
    waiting: BTreeMap<ObjectId, Waiting>,
}

impl Ownership {
    /// Whether nothing is rendered and nothing is remembered as written.
    pub fn is_empty(&self) -> bool {
        self.rendered.is_empty() && self.written.is_empty()
    }

    /// What the rules of a key render, with the rule of each.
    pub fn rendered(&self, key: &WorkKey) -> Option<&BTreeMap<ObjectId, Str>> {
        self.rendered.get(key)
    }

    /// Whether a key renders an object.
    pub fn renders(&self, key: &WorkKey, id: &ObjectId) -> bool {
        self.rendered.get(key).is_some_and(|rendered| rendered.contains_key(id))
    }

    /// Whether a rule renders something for a key.
    pub fn rule_renders(&self, key: &WorkKey, rule: &str) -> bool {
        self.rendered.get(key).is_some_and(|rendered| rendered.values().any(|by| by == rule))
    }

    /// The triggers for which a policy renders something.
    pub fn triggers_of<'s>(&'s self, policy: &'s PolicyId) -> impl Iterator<Item = &'s Str> {
        let first = WorkKey { policy: policy.clone(), trigger: Str::default() };
        self.rendered.range(first..).map(|(key, _)| key).take_while(|key| key.policy == *policy).map(|key| &key.trigger)
    }

    /// Sets what a key renders and returns what it renders no more. An object that no key wants and that does not
    /// exist (`exists`) is forgotten.
    pub fn set_rendered(
        &mut self,
        key: &WorkKey,
        rendered: BTreeMap<ObjectId, Str>,
        exists: impl Fn(&ObjectId) -> bool,
    ) -> Vec<ObjectId> {
        let before = self.rendered.remove(key).unwrap_or_default();
        for id in rendered.keys() {
            self.wanted_by.entry(id.clone()).or_default().insert(key.clone());
        }
        let lost: Vec<ObjectId> = before.into_keys().filter(|id| !rendered.contains_key(id)).collect();
        if !rendered.is_empty() {
            self.rendered.insert(key.clone(), rendered);
        }
        for id in &lost {
            self.waiting.remove(id);
            let Some(keys) = self.wanted_by.get_mut(id) else { continue };
            keys.remove(key);
            if keys.is_empty() {
                self.wanted_by.remove(id);
                if !exists(id) {
                    self.written.remove(id);
                }
            }
        }
        lost
    }

    /// The keys that want an object.
    pub fn wanting<'s>(&'s self, id: &ObjectId) -> impl Iterator<Item = &'s WorkKey> + use<'s> {
        self.wanted_by.get(id).into_iter().flatten()
    }

    /// What was written last of an object.
    pub fn written(&self, id: &ObjectId) -> Option<&Written> {
        self.written.get(id)
    }

    /// Remembers what was written of an object.
    pub fn set_written(&mut self, id: ObjectId, written: Written) {
        self.written.insert(id, written);
    }

    /// Remembers what was written of an object unless something is known.
    pub fn set_written_once(&mut self, id: ObjectId, written: Written) {
        self.written.entry(id).or_insert(written);
    }

    /// Lets copies wait for a change of what they are made of.
    pub(super) fn let_wait(&mut self, copies: impl IntoIterator<Item = (ObjectId, Waiting)>) {
        self.waiting.extend(copies);
    }

    /// Whether an object may wait for a change of what it is made of.
    pub fn may_wait(&self, id: &ObjectId) -> bool {
        self.waiting.contains_key(id)
    }

    /// The record of a copy that waits.
    pub(super) fn waiting_mut(&mut self, id: &ObjectId) -> Option<&mut Waiting> {
        self.waiting.get_mut(id)
    }

    /// A copy waits no more.
    pub(super) fn end_wait(&mut self, id: &ObjectId) {
        self.waiting.remove(id);
    }

    /// A watch tells that an object is gone. A watch of downstreams also tells so when an object loses its labels:
    /// while a key wants the object, what was written stays, so that the controller knows the object again by its UID.
    pub fn told_gone(&mut self, id: &ObjectId) {
        self.waiting.remove(id);
        if !self.wanted_by.contains_key(id) {
            self.written.remove(id);
        }
    }

    /// An object is gone for certain.
    pub fn forget_object(&mut self, id: &ObjectId) {
        self.written.remove(id);
        self.waiting.remove(id);
    }

    /// Forgets what was written of a kind.
    pub fn forget_kind(&mut self, kind: &GroupKind) {
        self.written.retain(|id, _| id.group_kind() != *kind);
        self.waiting.retain(|id, _| id.group_kind() != *kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(policy: &str, trigger: &str) -> WorkKey {
        WorkKey { policy: PolicyId::kyverno("", policy), trigger: trigger.into() }
    }

    fn id(name: &str) -> ObjectId {
        ObjectId::new("v1", "ConfigMap", "default", name)
    }

    fn rendered(names: &[&str]) -> BTreeMap<ObjectId, Str> {
        names.iter().map(|name| (id(name), "r".into())).collect()
    }

    fn written() -> Written {
        Written { sent: String::new(), stored: String::new(), applied: false, origin: None }
    }

    #[test]
    fn an_object_is_wanted_by_each_key_that_renders_it() {
        let mut ownership = Ownership::default();
        let (one, two) = (key("p", "1"), key("p", "2"));
        assert_eq!(ownership.set_rendered(&one, rendered(&["a", "b"]), |_| true), []);
        assert_eq!(ownership.set_rendered(&two, rendered(&["b"]), |_| true), []);
        assert_eq!(ownership.wanting(&id("b")).collect::<Vec<_>>(), [&one, &two]);
        assert!(ownership.renders(&one, &id("a")) && !ownership.renders(&two, &id("a")));
        assert_eq!(ownership.triggers_of(&one.policy).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(ownership.set_rendered(&one, rendered(&["a", "c"]), |_| true), [id("b")]);
        assert_eq!(ownership.wanting(&id("b")).collect::<Vec<_>>(), [&two]);
        assert_eq!(ownership.set_rendered(&one, BTreeMap::new(), |_| true), [id("a"), id("c")]);
        assert!(ownership.rendered(&one).is_none() && ownership.wanting(&id("a")).next().is_none());
    }

    #[test]
    fn what_was_written_is_known_while_the_object_exists_or_a_key_wants_it() {
        let (owner, object) = (key("p", "1"), id("a"));
        for (wanted, told_gone, exists, known) in [
            (true, true, false, true),
            (true, false, true, true),
            (false, false, true, true),
            (false, true, true, false),
            (false, false, false, false),
        ] {
            let mut ownership = Ownership::default();
            ownership.set_rendered(&owner, rendered(&["a"]), |_| exists);
            ownership.set_written(object.clone(), written());
            if !wanted {
                ownership.set_rendered(&owner, BTreeMap::new(), |_| exists);
            }
            if told_gone {
                ownership.told_gone(&object);
            }
            assert_eq!(ownership.written(&object).is_some(), known, "{wanted} {told_gone} {exists}");
        }
    }
}
