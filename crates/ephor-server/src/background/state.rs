//! What the background controller knows and has to do: watch events and policies in, work out. No cluster, no clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ephor_cluster::Discovery;
use ephor_engine::matching::Gvk;
use ephor_expr::{Str, Value};

use super::index::{GroupKind, Index, Seen, Touched};
use super::queue::{Moment, Queue, Task, WorkKey};
use super::rules::{GenerateInfo, PolicyInfo, may_match, trigger_kinds};
use super::trigger::TriggerRef;
use crate::feed::Change;
use crate::plan::{ObjectId, Owner, Terms, Written};
use crate::policies::{PolicyKey, Snapshot};
use crate::update_request::{State as RequestState, UpdateRequest};

/// A kind to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// The `apiVersion` to read it in.
    pub api_version: Str,
    /// The kind.
    pub kind: Str,
    /// Whether all objects matter; else those that say they are downstreams.
    pub wide: bool,
}

/// An `UpdateRequest` that is not done.
#[derive(Debug, Clone)]
pub struct Pending {
    /// The object.
    pub object: Value,
    /// When it was first seen.
    pub since: Moment,
}

/// What an evaluation read: a kind, a namespace (empty: all) and a name (empty: all).
pub type Dependency = (GroupKind, Str, Str);

/// The state.
#[derive(Debug, Default)]
pub struct State {
    /// The policies.
    pub snapshot: Arc<Snapshot>,
    /// What of them matters.
    pub infos: BTreeMap<PolicyKey, Arc<PolicyInfo>>,
    /// What rules said that are gone.
    pub former: BTreeMap<(PolicyKey, Str), Terms>,
    /// What is known of the cluster.
    pub index: Index,
    /// What is to be done.
    pub queue: Queue,
    /// Requests that are not done, by name.
    pub requests: BTreeMap<Str, Pending>,
    /// Requests that are done: name and UID.
    pub finished: BTreeMap<Str, Str>,
    /// What each key's rules render, with the rule; synchronizing rules only.
    pub rendered: BTreeMap<WorkKey, BTreeMap<ObjectId, Str>>,
    wanted_by: BTreeMap<ObjectId, BTreeSet<WorkKey>>,
    depends: BTreeMap<Dependency, BTreeSet<WorkKey>>,
    dependencies: BTreeMap<WorkKey, BTreeSet<Dependency>>,
    /// What was written last.
    pub written: BTreeMap<ObjectId, Written>,
    /// Keys that an event has brought into force.
    pub forced: BTreeSet<WorkKey>,
    /// Triggers that were named, by UID.
    pub known: BTreeMap<Str, TriggerRef>,
    /// The last request of keys whose rules cannot be judged without.
    pub contexts: BTreeMap<WorkKey, Arc<UpdateRequest>>,
    /// Triggers that rules have acted for once, of policies that are not through: policy, generation, trigger.
    pub acted: BTreeSet<(PolicyKey, i64, Str)>,
    /// What fails, by policy and what it is about.
    pub failures: BTreeMap<PolicyKey, BTreeMap<Str, String>>,
    /// Kinds of downstreams and sources that turned up.
    learned: BTreeMap<GroupKind, Watch>,
    /// How often objects were put right lately.
    corrections: BTreeMap<ObjectId, (u32, Moment)>,
    /// What is served.
    pub discovery: Arc<Discovery>,
}

/// How many finished requests may wait for their end.
const MAX_FINISHED: usize = 100;
/// How long a finished request stays, in milliseconds.
const FINISHED_STAY: Moment = 10_000;
/// How many contexts of requests are kept.
const MAX_CONTEXTS: usize = 1000;
/// More corrections of one object than this within [`CORRECTION_SPAN`] mean that somebody else writes it too.
const MAX_CORRECTIONS: u32 = 5;
const CORRECTION_SPAN: Moment = 30_000;

impl State {
    /// Takes in what a feed says of a kind.
    pub fn observe(&mut self, kind: &GroupKind, wide: bool, change: Change, now: Moment) {
        for touched in self.index.apply(kind, wide, change) {
            self.touched(&touched, now);
        }
    }

    /// Takes in an object that was read or written.
    pub fn note(&mut self, object: &Value, now: Moment) {
        if let Some(touched) = self.index.note(Seen::of(object), object) {
            self.touched(&touched, now);
        }
    }

    /// Takes in an object that was written by this controller: nobody need look at it again because of that.
    pub fn note_own(&mut self, sent: &Value, stored: &Value, now: Moment) {
        self.written.insert(ObjectId::of(stored), Written::new(sent, stored));
        if let Some(touched) = self.index.note(Seen::of(stored), stored) {
            self.touched_as_input(&touched, now);
        }
    }

    fn touched(&mut self, touched: &Touched, now: Moment) {
        let Some(seen) = touched.seen().cloned() else { return };
        let appeared = touched.before.is_none() || touched.after.is_none();
        if touched.after.is_none() {
            self.written.remove(&seen.id);
        }
        if touched.content_changed() {
            let owners = [&touched.before, &touched.after].into_iter().flatten().filter_map(Seen::owner);
            let owners: Vec<WorkKey> = owners.map(key_of).collect();
            for key in owners {
                self.queue.add(Task::Reconcile(key), now);
            }
        }
        if appeared || touched.content_changed() {
            for key in self.wanted_by.get(&seen.id).cloned().unwrap_or_default() {
                self.queue.add(Task::Reconcile(key), now);
            }
        }
        self.touched_as_input(touched, now);
    }

    /// An object as trigger, as source, as namespace.
    fn touched_as_input(&mut self, touched: &Touched, now: Moment) {
        let Some(seen) = touched.seen().cloned() else { return };
        let kind = GroupKind::of(&seen.id);
        let keys = self.keys_of_trigger(&seen);
        let name = |namespace: &str, name: &str| (kind.clone(), Str::new(namespace), Str::new(name));
        let dependencies = [name(&seen.id.namespace, &seen.id.name), name(&seen.id.namespace, ""), name("", "")];
        let dependents = dependencies.iter().filter_map(|dependency| self.depends.get(dependency)).flatten();
        let keys: BTreeSet<WorkKey> = keys.into_iter().chain(dependents.cloned()).collect();
        for key in keys {
            self.queue.add(Task::Reconcile(key), now);
        }
        if touched.relabelled()
            && self.infos.values().any(|info| info.generate.iter().any(|r| r.traits.namespace_selector))
        {
            self.queue.add(Task::Relabelled(seen.id.name), now);
        }
    }

    fn keys_of_trigger(&self, seen: &Seen) -> Vec<WorkKey> {
        let gvk = gvk_of(seen);
        let infos = self.infos.values().filter(|info| info.sees(&seen.id.namespace));
        infos
            .filter(|info| {
                info.generate.iter().any(|rule| {
                    rule.terms.synchronize && may_match(rule.kinds.as_deref(), &gvk) && self.in_force(info, rule, seen)
                })
            })
            .map(|info| WorkKey { policy: info.key.clone(), trigger: seen.uid.clone() })
            .collect()
    }

    /// Whether a synchronizing rule is bound to look after a trigger, without being asked. It is for triggers that
    /// came after it, for those that it made something for, and for all if it says so.
    pub fn in_force(&self, info: &PolicyInfo, rule: &GenerateInfo, seen: &Seen) -> bool {
        let key = WorkKey { policy: info.key.clone(), trigger: seen.uid.clone() };
        let owns = || {
            let (namespace, name) = label_parts(&info.key);
            !self.index.owned(namespace, name, &seen.uid).is_empty()
        };
        // What it rendered once it goes on with, also when somebody has deleted that.
        if self.forced.contains(&key) || self.contexts.contains_key(&key) || self.rendered.contains_key(&key) {
            return true;
        }
        // What this controller made is no trigger, unless the rule says that it is.
        if rule.traits.skips_own && seen.downstream.is_some() {
            return owns();
        }
        rule.terms.existing || (!info.since.is_empty() && seen.created > info.since) || owns()
    }

    /// Takes in the policies as they are now.
    pub fn observe_policies(&mut self, snapshot: Arc<Snapshot>, now: Moment) {
        let exceptions_changed = !Arc::ptr_eq(&snapshot.exceptions, &self.snapshot.exceptions);
        let old = std::mem::take(&mut self.infos);
        for (key, policy) in &snapshot.policies {
            let same = |info: &&Arc<PolicyInfo>| {
                let program = match (&info.program, &policy.program) {
                    (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                    (None, None) => true,
                    _ => false,
                };
                program && info.generation == policy.generation() && info.uid == policy.uid()
            };
            let info = old.get(key).filter(same).cloned().or_else(|| {
                let mut info = PolicyInfo::of(policy)?;
                if info.since.is_empty() {
                    // Nobody says when the policy changed: it was before now.
                    info.since = time_text(now);
                }
                Some(Arc::new(info))
            });
            if let Some(info) = info {
                self.infos.insert(key.clone(), info);
            }
        }
        self.snapshot = snapshot;
        let keys: BTreeSet<PolicyKey> = old.keys().chain(self.infos.keys()).cloned().collect();
        for key in keys {
            let (before, after) = (old.get(&key), self.infos.get(&key).cloned());
            let unchanged = matches!((before, &after), (Some(a), Some(b)) if Arc::ptr_eq(a, b));
            if unchanged && !exceptions_changed {
                continue;
            }
            for rule in before.iter().flat_map(|info| &info.generate) {
                self.former.insert((key.clone(), rule.name.clone()), rule.terms.clone());
            }
            for rule in after.iter().flat_map(|info| &info.generate) {
                self.former.remove(&(key.clone(), rule.name.clone()));
            }
            if after.is_none() {
                self.failures.remove(&key);
            }
            self.enqueue_policy(&key, now);
            if after.as_ref().is_some_and(|info| info.once_for_existing()) && !unchanged {
                self.queue.add(Task::Existing(key), now);
            }
        }
    }

    /// Asks for everything that a policy may have to do with.
    pub fn enqueue_policy(&mut self, key: &PolicyKey, now: Moment) {
        let (namespace, name) = label_parts(key);
        let mut triggers: BTreeSet<Str> = self.index.triggers_of(namespace, name).into_iter().collect();
        let from = WorkKey { policy: key.clone(), trigger: Str::default() };
        triggers
            .extend(self.rendered.range(from..).take_while(|(k, _)| k.policy == *key).map(|(k, _)| k.trigger.clone()));
        if let Some(info) = self.infos.get(key) {
            let kinds: Vec<GroupKind> = self.index.kinds().cloned().collect();
            for rule in info.generate.iter().filter(|rule| rule.terms.synchronize) {
                for kind in &kinds {
                    let seen = self.index.of_kind(kind).filter(|seen| {
                        may_match(rule.kinds.as_deref(), &gvk_of(seen))
                            && info.sees(&seen.id.namespace)
                            && self.in_force(info, rule, seen)
                    });
                    triggers.extend(seen.map(|seen| seen.uid.clone()));
                }
            }
        }
        for trigger in triggers {
            self.queue.add(Task::Reconcile(WorkKey { policy: key.clone(), trigger }), now);
        }
    }

    /// Asks for everything once more.
    pub fn enqueue_all(&mut self, now: Moment) {
        let mut keys: BTreeSet<PolicyKey> = self.infos.keys().cloned().collect();
        keys.extend(self.index.policies().into_iter().map(|(namespace, name)| policy_key(&namespace, &name)));
        for key in keys {
            self.enqueue_policy(&key, now);
        }
    }

    /// Takes in what a feed says of `UpdateRequest`s.
    pub fn observe_requests(&mut self, change: Change, now: Moment) {
        match change {
            Change::Reset(objects) => {
                let names: BTreeSet<Str> = objects.iter().map(name_of).collect();
                let known: Vec<Str> = self.requests.keys().chain(self.finished.keys()).cloned().collect();
                for name in known.into_iter().filter(|name| !names.contains(name)) {
                    self.request_gone(&name);
                }
                for object in objects {
                    self.request_seen(object, now);
                }
            }
            Change::Set(object) => self.request_seen(object, now),
            Change::Gone(object) => self.request_gone(&name_of(&object)),
        }
    }

    fn request_gone(&mut self, name: &Str) {
        self.requests.remove(name);
        self.finished.remove(name);
        for task in [Task::Request(name.clone()), Task::Collect(name.clone())] {
            self.queue.forget(&task);
        }
    }

    /// Takes in a request as it is now.
    pub fn request_seen(&mut self, object: Value, now: Moment) {
        let name = name_of(&object);
        let uid = Str::new(object.str_at(&["metadata", "uid"]).unwrap_or_default());
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
                let since = self.requests.get(&name).map_or(now, |pending| pending.since);
                // Its writer and this controller both touch it: what is known of it must not go backwards.
                let older = |a: &Value, b: &Value| version_of(a) < version_of(b);
                if self.requests.get(&name).is_some_and(|known| older(&object, &known.object)) {
                    return;
                }
                let retries = object.at(&["status", "retryCount"]).and_then(Value::as_i64).unwrap_or(0);
                self.requests.insert(name.clone(), Pending { object, since });
                if state == RequestState::Failed {
                    let pause = super::requests::retry_pause(retries);
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

    /// Registers that a key has read something, before it does.
    pub fn depend(&mut self, key: &WorkKey, api_version: &str, kind: &str, namespace: &str, name: &str) {
        let dependency = (GroupKind::new(api_version, kind), Str::new(namespace), Str::new(name));
        self.learn(api_version, kind, true);
        self.depends.entry(dependency.clone()).or_default().insert(key.clone());
        self.dependencies.entry(key.clone()).or_default().insert(dependency);
    }

    /// Begins to follow a kind that turned up.
    pub fn learn(&mut self, api_version: &str, kind: &str, wide: bool) {
        let watch = Watch { api_version: api_version.into(), kind: kind.into(), wide };
        let known = self.learned.entry(GroupKind::new(api_version, kind)).or_insert_with(|| watch);
        known.wide |= wide;
    }

    /// Sets what the synchronizing rules of a key render; gives back what they do not render any more.
    pub fn set_rendered(&mut self, key: &WorkKey, rendered: BTreeMap<ObjectId, Str>) -> Vec<ObjectId> {
        let old = self.rendered.remove(key).unwrap_or_default();
        for id in rendered.keys() {
            self.wanted_by.entry(id.clone()).or_default().insert(key.clone());
        }
        let lost: Vec<ObjectId> = old.into_keys().filter(|id| !rendered.contains_key(id)).collect();
        for id in &lost {
            if let Some(keys) = self.wanted_by.get_mut(id) {
                keys.remove(key);
                if keys.is_empty() {
                    self.wanted_by.remove(id);
                }
            }
        }
        if !rendered.is_empty() {
            self.rendered.insert(key.clone(), rendered);
        }
        lost
    }

    /// Another key that wants an object.
    pub fn others_wanting(&self, id: &ObjectId, key: &WorkKey) -> Vec<WorkKey> {
        self.wanted_by.get(id).into_iter().flatten().filter(|other| *other != key).cloned().collect()
    }

    /// Whether the owner that an object claims looks after it, as far as is known.
    pub fn stands(&self, owner: &Owner, id: &ObjectId) -> Standing {
        let key = key_of(owner);
        let Some(info) = self.infos.get(&key.policy) else { return Standing::Fallen };
        if !info.rule(&owner.rule).is_some_and(|rule| rule.terms.synchronize) {
            return Standing::Fallen;
        }
        if self.rendered.get(&key).is_some_and(|rendered| rendered.contains_key(id)) {
            Standing::Firm
        } else if self.queue.holds(&Task::Reconcile(key)) {
            Standing::Open
        } else {
            Standing::Fallen
        }
    }

    /// Forgets what a key depended on, before it is judged anew.
    pub fn clear_dependencies(&mut self, key: &WorkKey) {
        for dependency in self.dependencies.remove(key).unwrap_or_default() {
            if let Some(keys) = self.depends.get_mut(&dependency) {
                keys.remove(key);
                if keys.is_empty() {
                    self.depends.remove(&dependency);
                }
            }
        }
    }

    /// Notes that an object is put right once more; whether that has happened too often lately.
    pub fn is_contested(&mut self, id: &ObjectId, now: Moment) -> bool {
        if self.corrections.len() > 4096 {
            self.corrections.retain(|_, (_, since)| now.saturating_sub(*since) < CORRECTION_SPAN);
        }
        let (count, since) = self.corrections.entry(id.clone()).or_insert((0, now));
        if now.saturating_sub(*since) > CORRECTION_SPAN {
            (*count, *since) = (0, now);
        }
        *count += 1;
        *count > MAX_CORRECTIONS
    }

    /// Notes what became of something that a policy wants.
    pub fn set_failure(&mut self, policy: &PolicyKey, what: &str, failure: Option<String>, now: Moment) {
        let known = self.failures.get(policy).and_then(|failures| failures.get(what));
        if known == failure.as_ref() {
            return;
        }
        match failure {
            Some(message) => {
                self.failures.entry(policy.clone()).or_default().insert(what.into(), message);
            }
            None => {
                if let Some(failures) = self.failures.get_mut(policy) {
                    failures.remove(what);
                }
            }
        }
        self.queue.add(Task::Report(policy.clone()), now);
    }

    /// The kinds to follow.
    pub fn watches(&self) -> BTreeMap<GroupKind, Watch> {
        let mut watches = BTreeMap::new();
        let mut add = |api_version: &Str, kind: &Str, wide: bool| {
            let watch = Watch { api_version: api_version.clone(), kind: kind.clone(), wide };
            watches.entry(GroupKind::new(api_version, kind)).or_insert_with(|| watch).wide |= wide;
        };
        for info in self.infos.values() {
            for rule in info.generate.iter().filter(|rule| rule.terms.synchronize) {
                for (api_version, kind) in trigger_kinds(rule.kinds.as_deref(), &self.discovery) {
                    add(&api_version, &kind, true);
                }
                for (api_version, kind) in &rule.downstream_kinds {
                    if let Some(api_version) = self.completed(api_version, kind) {
                        add(&api_version, kind, rule.copies);
                    }
                }
            }
            if info.generate.iter().any(|rule| rule.traits.namespace_selector) {
                add(&Str::new_static("v1"), &Str::new_static("Namespace"), true);
            }
        }
        for watch in self.learned.values() {
            add(&watch.api_version, &watch.kind, watch.wide);
        }
        watches
    }

    /// The version of a kind that is written without, if only one group serves it.
    pub fn completed(&self, api_version: &Str, kind: &str) -> Option<Str> {
        if !api_version.is_empty() {
            return Some(api_version.clone());
        }
        let mut served = self.discovery.with_kind(kind);
        let first = served.next()?;
        served.all(|other| other.group == first.group).then(|| first.api_version())
    }
}

/// How sure an owner's claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It renders the object.
    Firm,
    /// It has not been judged yet.
    Open,
    /// It does not want the object any more.
    Fallen,
}

/// The key of an owner.
pub fn key_of(owner: &Owner) -> WorkKey {
    WorkKey { policy: policy_key(&owner.policy_namespace, &owner.policy), trigger: owner.trigger.clone() }
}

/// The key of a policy, from labels.
pub fn policy_key(namespace: &str, name: &str) -> PolicyKey {
    PolicyKey { namespace: Some(Str::new(namespace)).filter(|ns| !ns.is_empty()), name: name.into() }
}

/// Namespace (empty for none) and name of a policy, as labels have them.
pub fn label_parts(key: &PolicyKey) -> (&str, &str) {
    (key.namespace.as_deref().unwrap_or_default(), &key.name)
}

/// A moment as Kubernetes writes times.
fn time_text(moment: Moment) -> Str {
    let time = i64::try_from(moment).ok().and_then(|moment| jiff::Timestamp::from_millisecond(moment).ok());
    time.unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

fn gvk_of(seen: &Seen) -> Gvk {
    Gvk::new(&seen.api_version, &seen.id.kind)
}

fn name_of(object: &Value) -> Str {
    Str::new(object.str_at(&["metadata", "name"]).unwrap_or_default())
}

fn version_of(object: &Value) -> u64 {
    object.str_at(&["metadata", "resourceVersion"]).and_then(|version| version.parse().ok()).unwrap_or(u64::MAX)
}
