//! The dependency index: what keys were judged by, which is the objects that their rules read and the answers of global
//! context entries. A change of one of them asks for the keys again.
//!
//! Each record holds the number of the last read, and each pass over a key holds the number that it began at. A pass
//! that has judged all rules of its key drops the records of earlier passes, because the key no longer depends on what
//! they read. So memory does not grow with the age of a trigger, even if the trigger names another object after each
//! edit. Records of passes that are still running stay, because what such a pass writes may be what remains.

use std::collections::{BTreeMap, BTreeSet};

use ephor_expr::Str;
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::poison::PoisonMutex;
use ephor_runtime::policies::PolicyId;
use ephor_runtime::queue::Moment;

use super::entries::Entries;
use super::memory::State;
use crate::plan::ObjectId;
use crate::queue::{Task, WorkKey};

/// What an evaluation read: a kind, a namespace (empty: all) and a name (empty: all).
pub type Dependency = (GroupKind, Str, Str);

/// What all keys read.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    /// The number of the last read, or of the pass that began last.
    last: u64,
    /// Who read an object.
    readers: BTreeMap<Dependency, BTreeSet<WorkKey>>,
    /// What each key read, with the number of its last read.
    by_key: BTreeMap<WorkKey, BTreeMap<Dependency, u64>>,
    /// The passes that are running.
    passes: BTreeMap<WorkKey, Passes>,
    /// The kinds of these objects, each with the version to follow it in.
    kinds: BTreeMap<GroupKind, Str>,
    /// What global context entries answered.
    pub(super) entries: Entries,
}

/// Passes over one key, by the number that they began at.
#[derive(Debug, Default)]
struct Passes {
    running: BTreeSet<u64>,
    /// The last that began while one of these was running.
    youngest: u64,
}

impl Dependencies {
    /// The number of a read that happens now.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn begin(&mut self, key: &WorkKey) -> u64 {
        let number = self.next();
        let passes = self.passes.entry(key.clone()).or_default();
        passes.running.insert(number);
        passes.youngest = number;
        number
    }

    fn end(&mut self, key: &WorkKey, pass: u64) {
        if let Some(passes) = self.passes.get_mut(key) {
            passes.running.remove(&pass);
            if passes.running.is_empty() {
                self.passes.remove(key);
            }
        }
    }

    /// The number that the oldest running pass over a key began at.
    fn oldest_pass(&self, key: &WorkKey, pass: u64) -> u64 {
        self.passes.get(key).and_then(|passes| passes.running.first()).map_or(pass, |oldest| pass.min(*oldest))
    }

    /// Notes a read; whether it is the first of its kind.
    fn note(&mut self, key: &WorkKey, dependency: Dependency, api_version: &str) -> bool {
        let number = self.next();
        let first = self.kinds.insert(dependency.0.clone(), api_version.into()).is_none();
        self.readers.entry(dependency.clone()).or_default().insert(key.clone());
        self.by_key.entry(key.clone()).or_default().insert(dependency, number);
        first
    }

    /// Forgets what a key read before a number.
    fn forget_before(&mut self, key: &WorkKey, number: u64) {
        self.entries.forget(key, number);
        let Some(read) = self.by_key.get_mut(key) else { return };
        let gone: Vec<Dependency> = read.extract_if(.., |_, last| *last < number).map(|(what, _)| what).collect();
        if read.is_empty() {
            self.by_key.remove(key);
        }
        for dependency in gone {
            if let Some(readers) = self.readers.get_mut(&dependency) {
                readers.remove(key);
                if readers.is_empty() {
                    self.readers.remove(&dependency);
                }
            }
            if self.of_kind(&dependency.0).next().is_none() {
                self.kinds.remove(&dependency.0);
            }
        }
    }

    fn of_kind<'r>(&'r self, kind: &'r GroupKind) -> impl Iterator<Item = &'r BTreeSet<WorkKey>> {
        let first = (kind.clone(), Str::default(), Str::default());
        self.readers.range(first..).take_while(move |((of, ..), _)| of == kind).map(|(_, readers)| readers)
    }

    /// The kinds that were read, each with the version to follow it in.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&GroupKind, &Str)> {
        self.kinds.iter()
    }

    /// The keys of a policy that read something.
    pub(super) fn keys_of<'r>(&'r self, policy: &'r PolicyId) -> impl Iterator<Item = &'r WorkKey> {
        let first = WorkKey { policy: policy.clone(), trigger: Str::default() };
        self.by_key.range(first..).map(|(key, _)| key).take_while(move |key| key.policy == *policy)
    }

    /// The keys that read an object, by itself or in a list.
    pub(super) fn readers_of(&self, id: &ObjectId) -> impl Iterator<Item = &WorkKey> {
        let named = |namespace: &Str, name: &Str| (id.group_kind(), namespace.clone(), name.clone());
        let all = Str::default();
        let dependencies = [named(&id.namespace, &id.name), named(&id.namespace, &all), named(&all, &all)];
        dependencies.into_iter().filter_map(|dependency| self.readers.get(&dependency)).flatten()
    }
}

impl State {
    /// Registers that a key is about to read something. A change of it asks for the key again.
    pub fn depend(&mut self, key: &WorkKey, api_version: &str, kind: &str, namespace: &str, name: &str) {
        let dependency = (GroupKind::new(api_version, kind), Str::new(namespace), Str::new(name));
        if self.dependencies.note(key, dependency, api_version) {
            self.follow();
        }
    }

    /// Whether what was said about a key was said in view of an object.
    pub fn depends_on(&self, key: &WorkKey, id: &ObjectId) -> bool {
        let kind = id.group_kind();
        let read = self.dependencies.by_key.get(key).into_iter().flat_map(BTreeMap::keys);
        read.into_iter().any(|(of_kind, namespace, name)| {
            *of_kind == kind
                && (namespace.is_empty() || *namespace == id.namespace)
                && (name.is_empty() || *name == id.name)
        })
    }

    /// What a key was judged by.
    pub fn read_by(&self, key: &WorkKey) -> impl Iterator<Item = &Dependency> {
        self.dependencies.by_key.get(key).into_iter().flat_map(BTreeMap::keys)
    }

    /// Forgets what a key read before a pass that has judged all of its rules, except what a pass read that is older
    /// and still running.
    pub fn judged(&mut self, key: &WorkKey, pass: u64) {
        let oldest = self.dependencies.oldest_pass(key, pass);
        self.dependencies.forget_before(key, oldest);
    }

    /// Whether another pass over the key has begun since this one.
    pub fn is_overtaken(&self, key: &WorkKey, pass: u64) -> bool {
        self.dependencies.passes.get(key).is_some_and(|passes| passes.youngest > pass)
    }

    /// Forgets what a key read.
    pub(super) fn forget_reads(&mut self, key: &WorkKey) {
        self.dependencies.forget_before(key, u64::MAX);
    }

    /// Asks for all keys that read objects of a kind.
    pub(super) fn enqueue_readers(&mut self, kind: &GroupKind, now: Moment) {
        let readers: BTreeSet<&WorkKey> = self.dependencies.of_kind(kind).flatten().collect();
        for key in readers {
            self.queue.add(Task::Reconcile(key.clone()), now);
        }
    }
}

/// A pass over a key while it runs.
#[derive(Debug)]
pub struct Reading<'p> {
    state: &'p PoisonMutex<State>,
    key: &'p WorkKey,
    pass: u64,
}

impl<'p> Reading<'p> {
    /// Begins a pass.
    pub fn begin(state: &'p PoisonMutex<State>, key: &'p WorkKey) -> Self {
        let pass = state.lock().dependencies.begin(key);
        Self { state, key, pass }
    }

    /// The number that it began at.
    pub fn pass(&self) -> u64 {
        self.pass
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // A panic may be under way, which a second one would turn into an abort.
        if let Some(mut state) = self.state.lock_whole() {
            state.dependencies.end(self.key, self.pass);
        }
    }
}

#[cfg(test)]
mod tests {
    use ephor_expr::Value;

    use super::*;

    fn key(trigger: &str) -> WorkKey {
        WorkKey { policy: PolicyId::kyverno("", "p"), trigger: trigger.into() }
    }

    fn read(state: &mut State, key: &WorkKey, name: &str) {
        state.depend(key, "v1", "ConfigMap", "default", name);
    }

    fn names(state: &State, key: &WorkKey) -> String {
        state.read_by(key).map(|(_, _, name)| name.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// What passes do, in this order: `1+` begins pass 1, `1:a` reads `a` in it, `1!` judges all rules, `1-` ends it.
    fn play(acts: &str) -> String {
        let (mut state, key) = (State::default(), key("t"));
        let mut passes = BTreeMap::new();
        for act in acts.split_whitespace() {
            let (pass, what) = act.split_at(1);
            match what {
                "+" => {
                    passes.insert(pass, state.dependencies.begin(&key));
                }
                "!" => state.judged(&key, passes[pass]),
                "-" => state.dependencies.end(&key, passes[pass]),
                what => read(&mut state, &key, what.strip_prefix(':').unwrap()),
            }
        }
        names(&state, &key)
    }

    #[test]
    fn records_of_a_key_are_those_since_its_last_whole_pass_began() {
        let rows = [
            ("one pass", "1+ 1:a 1:b 1! 1-", "a b"),
            ("the next one reads something else", "1+ 1:a 1! 1- 2+ 2:b 2! 2-", "b"),
            ("or some of it again", "1+ 1:a 1:b 1! 1- 2+ 2:b 2! 2-", "b"),
            ("or nothing", "1+ 1:a 1! 1- 2+ 2! 2-", ""),
            ("until its end both count", "1+ 1:a 1! 1- 2+ 2:b", "a b"),
            ("one that does not judge all rules takes nothing away", "1+ 1:a 1! 1- 2+ 2:b 2-", "a b"),
            ("the one after it does", "1+ 1:a 1! 1- 2+ 2:b 2- 3+ 3:c 3! 3-", "c"),
            ("what an older one reads that is running stays", "1+ 1:a 2+ 2:b 2! 2-", "a b"),
            ("also what it reads later", "1+ 2+ 2:b 2! 2- 1:a", "a b"),
            ("and what a younger one has read", "1+ 1:a 2+ 2:b 2! 2- 1! 1-", "a b"),
            ("what came before both goes", "1+ 1:a 1! 1- 2+ 2:b 3+ 3:c 3! 3-", "b c"),
            ("after both a third counts alone", "1+ 1:a 2+ 2:b 2! 2- 1! 1- 3+ 3:c 3! 3-", "c"),
        ];
        for (what, acts, left) in rows {
            assert_eq!(play(acts), left, "{what}");
        }
    }

    #[test]
    fn records_of_other_keys_stay() {
        let mut state = State::default();
        let (one, other) = (key("one"), key("other"));
        read(&mut state, &other, "a");
        read(&mut state, &one, "a");
        let pass = state.dependencies.begin(&one);
        state.judged(&one, pass);
        assert_eq!((names(&state, &one), names(&state, &other)), (String::new(), "a".to_owned()));
        let id = ObjectId::new("v1", "ConfigMap", "default", "a");
        assert_eq!(state.dependencies.readers_of(&id).collect::<Vec<_>>(), [&other]);
    }

    #[test]
    fn a_kind_is_followed_as_long_as_a_record_is_about_it() {
        let (mut state, key) = (State::default(), key("t"));
        let pods = GroupKind::new("v1", "Pod");
        let pass = state.dependencies.begin(&key);
        state.depend(&key, "v1", "Pod", "default", "");
        state.judged(&key, pass);
        state.dependencies.end(&key, pass);
        assert!(state.watches().contains_key(&pods));
        let pass = state.dependencies.begin(&key);
        read(&mut state, &key, "a");
        assert!(state.watches().contains_key(&pods), "until its end the pass may fail");
        state.judged(&key, pass);
        assert_eq!(state.watches().into_keys().collect::<Vec<_>>(), [GroupKind::new("v1", "ConfigMap")]);
    }

    #[test]
    fn objects_of_a_kind_whose_watcher_never_began_are_forgotten_with_the_last_record() {
        let (mut state, key) = (State::default(), key("t"));
        let pass = state.dependencies.begin(&key);
        state.depend(&key, "v1", "Pod", "default", "a");
        let text = |text: &str| Value::from(text);
        let metadata = [("name", text("a")), ("namespace", text("default")), ("uid", text("u"))];
        state.note(
            &Value::from([("apiVersion", text("v1")), ("kind", text("Pod")), ("metadata", Value::from(metadata))]),
            0,
        );
        let known = |state: &State| state.index.of_kind(&GroupKind::new("v1", "Pod")).count();
        state.judged(&key, pass);
        assert!(state.watches().contains_key(&GroupKind::new("v1", "Pod")) && known(&state) == 1);
        state.dependencies.end(&key, pass);
        let pass = state.dependencies.begin(&key);
        state.judged(&key, pass);
        assert!(state.watches().is_empty() && known(&state) == 0);
    }

    #[test]
    fn a_pass_that_panics_is_over() {
        let (state, key) = (PoisonMutex::new(State::default()), key("t"));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _reading = Reading::begin(&state, &key);
            panic!("as asked")
        }));
        assert!(ended.is_err() && state.lock().dependencies.passes.is_empty());
    }
}
