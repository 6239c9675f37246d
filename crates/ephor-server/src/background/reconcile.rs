//! What the generate rules of one policy want for one trigger, made good.
//!
//! The same way for watch events, requests and existing triggers: the live trigger is judged by the whole policy, each
//! rule's objects are planned against the live ones, and what a synchronizing rule owns and does not want any more
//! goes. Nothing here depends on what has happened, only on what is; requests add who asked and what was before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ephor_cluster::query::Filter;
use ephor_cluster::{ClusterError, ErrorKind, LabelSelector};
use ephor_engine::fetch::{Fact, Fetch};
use ephor_engine::gate::AllowedFetch;
use ephor_engine::outcome::{Outcome, Phase, Verdict};
use ephor_engine::policy::Operation;
use ephor_engine::review::Review;
use ephor_expr::{Str, Value};

use super::index::GroupKind;
use super::queue::{Moment, Task, WorkKey};
use super::rules::{GenerateInfo, PolicyInfo};
use super::state::{Standing, State, label_parts};
use super::trigger::{TriggerRef, admission_request, review_of_existing, review_of_request};
use super::writer::{Env, Note, WriteError};
use crate::admission::AdmissionRequest;
use crate::facts::{Answers, evaluate, labels_of};
use crate::plan::claim::{CLONE_SOURCE, POLICY_NAME, POLICY_NAMESPACE};
use crate::plan::content::{essence, fingerprint, set_meta, with_books_of};
use crate::plan::{
    Action, Cause, Change, Claim, ObjectId, Owner, Reason, Removal, Terms, Wanted, plan_downstream, plan_removal,
};
use crate::update_request::{ResourceSpec, UpdateRequest};

/// Why work is not done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It is too early: again after that many milliseconds.
    #[error("waiting: {1}")]
    Later(Moment, String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// Another replica leads.
    #[error("leadership is lost")]
    Lost,
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Lost(_) => Self::Lost,
            WriteError::Cluster(error) => error.into(),
        }
    }
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Done {
    /// Objects that the rules want and that exist.
    pub generated: Vec<ResourceSpec>,
    /// How many changes were made.
    pub changes: usize,
    /// Whether the trigger is gone.
    pub trigger_gone: bool,
}

/// A request behind the work.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The request.
    pub request: Arc<UpdateRequest>,
    /// What admission was asked; `None` for requests without.
    pub admission: Option<AdmissionRequest>,
    /// The rules it is about.
    pub rules: BTreeSet<Str>,
    /// Those of them that shall let go of what they made.
    pub released: BTreeSet<Str>,
    /// How long ago it was first seen, in milliseconds.
    pub age: Moment,
}

impl Asked {
    /// Whether what it is about came with it and is no stored object.
    fn brings_its_object(&self) -> bool {
        let admission = self.admission.as_ref();
        admission.is_some_and(|a| a.operation == Operation::Connect || !a.sub_resource.is_empty())
    }
}

/// How long a request waits for what it is about to come true: it is written before the API server stores the object.
pub const PATIENCE: Moment = 3_000;
const LOOK_AGAIN: Moment = 200;
/// How often a change is planned anew when the object has changed meanwhile.
const TRIES: usize = 4;

/// A trigger, as it is found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// It is there.
    Live(Value),
    /// It is gone, or about to go.
    Gone,
}

/// One piece of work at hand.
pub struct Pass<'p> {
    /// What to work with.
    pub env: &'p Env,
    /// What is known.
    pub state: &'p Mutex<State>,
    /// When this is.
    pub now: Moment,
    /// The same as the engine has it.
    pub clock: jiff::Timestamp,
}

struct Recorder<'r, 'p> {
    pass: &'r Pass<'p>,
    key: &'r WorkKey,
}

impl Answers for Recorder<'_, '_> {
    fn answer(&self, fetch: &AllowedFetch) -> Fact {
        // Registered first: what changes after the answer makes the key run again.
        match fetch.fetch() {
            Fetch::Object { api_version, kind, namespace, name } => {
                let mut state = self.pass.lock();
                state.depend(self.key, api_version, kind, namespace, name);
                let id = ObjectId::new(api_version, kind, namespace, name);
                if state.index.is_wide(&GroupKind::of(&id))
                    && let Some(object) = state.index.find(&id).and_then(|seen| state.index.recent.get(seen))
                {
                    return Fact::Found(object);
                }
            }
            Fetch::Objects { api_version, kind, namespace } => {
                self.pass.lock().depend(self.key, api_version, kind, namespace, "");
            }
            Fetch::NamespaceLabels { name } => {
                let state = self.pass.lock();
                let id = ObjectId::new("v1", "Namespace", "", name);
                if let Some(object) = state.index.find(&id).and_then(|seen| state.index.recent.get(seen)) {
                    return Fact::Found(labels_of(&object));
                }
            }
            _ => {}
        }
        let fact = self.pass.env.answers.answer(fetch);
        if let (Fetch::Object { .. }, Fact::Found(object)) = (fetch.fetch(), &fact) {
            self.pass.lock().note(object, self.pass.now);
        }
        fact
    }
}

/// What a policy's rules made of a trigger.
struct Judged {
    outcomes: BTreeMap<Str, Outcome>,
    operation: Operation,
}

impl Pass<'_> {
    /// The state, for a moment.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes good what a policy wants for a trigger.
    pub fn reconcile(&self, key: &WorkKey, asked: Option<&Asked>) -> Result<Done, Failure> {
        let (info, owned, trigger, forced) = {
            let state = self.lock();
            let (namespace, name) = label_parts(&key.policy);
            let owned = state.index.owned(namespace, name, &key.trigger);
            let info = state.infos.get(&key.policy).cloned();
            let trigger = Self::locate(&state, key, info.as_deref(), &owned, asked);
            (info, owned, trigger, state.forced.contains(key))
        };
        let Some(info) = info else { return self.without_policy(key, &owned) };
        if info.program.is_none() {
            // A policy that is refused says nothing, so that nothing is done on its account.
            return Ok(Done::default());
        }
        let mut work = Work {
            pass: self,
            key,
            info: &info,
            trigger,
            asked,
            forced,
            rendered: BTreeMap::new(),
            done: Done::default(),
            failure: None,
        };
        work.run(owned)?;
        let Work { rendered, done, failure, .. } = work;
        let mut state = self.lock();
        for id in state.set_rendered(key, rendered) {
            for other in state.others_wanting(&id, key) {
                state.queue.add(Task::Reconcile(other), self.now);
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        state.forced.remove(key);
        state.known.remove(&key.trigger);
        if done.trigger_gone {
            state.clear_dependencies(key);
            state.contexts.remove(key);
        }
        Ok(done)
    }

    fn locate(
        state: &State,
        key: &WorkKey,
        info: Option<&PolicyInfo>,
        owned: &[ObjectId],
        asked: Option<&Asked>,
    ) -> Option<TriggerRef> {
        if let Some(asked) = asked {
            let context = asked.request.spec.rule_context.iter().find(|context| context.trigger.uid == key.trigger);
            if let Some(context) = context {
                return Some(TriggerRef::of_spec(&context.trigger));
            }
        }
        if info.is_some()
            && let Some(seen) = state.index.with_uid(state.index.kinds(), &key.trigger)
        {
            return Some(TriggerRef::of_seen(seen));
        }
        let claimed = owned.iter().filter_map(|id| state.index.find(id)?.downstream.as_ref());
        state
            .known
            .get(&key.trigger)
            .cloned()
            .or_else(|| claimed.map(|d| TriggerRef::of_claim(&d.claim)).max_by_key(|trigger| !trigger.name.is_empty()))
    }

    /// The live trigger.
    pub fn find(&self, trigger: &TriggerRef) -> Result<Found, Failure> {
        let id = ObjectId::new(&trigger.api_version, &trigger.kind, &trigger.namespace, &trigger.name);
        if !trigger.name.is_empty() {
            let recent = {
                let state = self.lock();
                let seen = state.index.find(&id).filter(|seen| seen.uid == trigger.uid);
                seen.filter(|_| state.index.is_wide(&GroupKind::of(&id))).and_then(|seen| state.index.recent.get(seen))
            };
            if let Some(object) = recent {
                return Ok(found(object));
            }
            let Some(object) = self.env.read(&trigger.api_version, &id)? else { return Ok(Found::Gone) };
            if !trigger.uid.is_empty() && object.str_at(&["metadata", "uid"]) != Some(&*trigger.uid) {
                return Ok(Found::Gone);
            }
            self.lock().note(&object, self.now);
            return Ok(found(object));
        }
        // Made by upstream, which notes no names: looked for by UID.
        let resource = self.env.resource(&trigger.api_version, &trigger.kind)?;
        let filter = Filter { namespace: Some(trigger.namespace.clone()), ..Filter::default() };
        let (objects, _) = crate::feed::list(&*self.env.cluster, &resource, &filter)?;
        let with_uid = objects.into_iter().find(|o| o.str_at(&["metadata", "uid"]) == Some(&*trigger.uid));
        Ok(with_uid.map_or(Found::Gone, found))
    }

    /// The policy is not among those that are known: whether that is true is asked before anything goes.
    fn without_policy(&self, key: &WorkKey, owned: &[ObjectId]) -> Result<Done, Failure> {
        if !owned.is_empty() && self.policy_document(key)?.is_some() {
            let known = self.lock().snapshot.policies.contains_key(&key.policy);
            // It is there but has no rules of this sort any more; or it came a moment ago.
            if !known {
                return Err(Failure::Later(LOOK_AGAIN, format!("policy {} is not known yet", key.policy)));
            }
        }
        let mut done = Done::default();
        for id in owned {
            done.changes += self.remove(key, id, Cause::PolicyGone, None)?;
        }
        let mut state = self.lock();
        state.clear_dependencies(key);
        state.contexts.remove(key);
        state.known.remove(&key.trigger);
        for id in state.set_rendered(key, BTreeMap::new()) {
            for other in state.others_wanting(&id, key) {
                state.queue.add(Task::Reconcile(other), self.now);
            }
        }
        done.trigger_gone = true;
        Ok(done)
    }

    pub(super) fn policy_document(&self, key: &WorkKey) -> Result<Option<Value>, Failure> {
        let kind = if key.policy.namespace.is_some() { "Policy" } else { "ClusterPolicy" };
        let namespace = key.policy.namespace.as_deref().unwrap_or_default();
        let id = ObjectId::new("kyverno.io/v1", kind, namespace, &key.policy.name);
        match self.env.read("kyverno.io/v1", &id) {
            Ok(found) => Ok(found),
            // Not even the kind is served: nothing can be said about the policy.
            Err(error) => Err(error.into()),
        }
    }

    /// Takes away an object that a key owns, if it may; how many changes that took.
    fn remove(&self, key: &WorkKey, id: &ObjectId, cause: Cause, terms: Option<&Terms>) -> Result<usize, Failure> {
        for _ in 0..TRIES {
            let (api_version, rendered, others) = {
                let state = self.lock();
                let version = state.index.find(id).map(|seen| seen.api_version.clone());
                let rendered = state.rendered.get(key).is_some_and(|rendered| rendered.contains_key(id));
                (version, rendered, state.others_wanting(id, key))
            };
            let Some(api_version) = api_version else { return Ok(0) };
            let Some(live) = self.env.read(&api_version, id)? else {
                self.forget(id);
                return Ok(0);
            };
            let Some(claim) = Claim::of(&live).filter(|claim| super::state::key_of(&claim.owner) == *key) else {
                self.lock().note(&live, self.now);
                return Ok(0);
            };
            let former = self.lock().former.get(&(key.policy.clone(), claim.owner.rule.clone())).cloned();
            let removal = Removal {
                live: &live,
                claim: &claim,
                cause,
                terms: terms.or(former.as_ref()),
                rendered,
                recorded: false,
            };
            let Some(change) = plan_removal(&removal) else { return Ok(0) };
            if !others.is_empty() {
                // Somebody else wants it: it changes hands instead.
                let mut state = self.lock();
                for other in others {
                    state.queue.add(Task::Reconcile(other), self.now);
                }
                return Ok(0);
            }
            match self.env.apply(&change) {
                Ok(stored) => {
                    match stored {
                        Some(stored) => self.lock().note(&stored, self.now),
                        None => self.forget_object(id, &live),
                    }
                    self.tell(&key.policy, &claim.owner.rule, &change, live);
                    return Ok(1);
                }
                Err(error) if error.is(ErrorKind::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::Failed(format!("{id} changes all the time")))
    }

    fn tell(&self, policy: &crate::policies::PolicyKey, rule: &str, change: &Change, object: Value) {
        let change = Box::new(change.clone());
        (self.env.observer)(&Note::Changed { policy: policy.clone(), rule: rule.into(), change, object });
    }

    fn forget(&self, id: &ObjectId) {
        let mut state = self.lock();
        let uid = state.index.find(id).map(|seen| seen.uid.clone());
        if let Some(uid) = uid {
            state.index.lose(&GroupKind::of(id), &uid);
        }
        state.written.remove(id);
    }

    /// After a deletion: the object may still be there, held by finalizers; the watch will tell.
    fn forget_object(&self, id: &ObjectId, live: &Value) {
        let held = live.at(&["metadata", "finalizers"]).and_then(Value::as_array).is_some_and(|f| !f.is_empty());
        if !held {
            self.forget(id);
        }
    }
}

fn found(object: Value) -> Found {
    let going = object.str_at(&["metadata", "deletionTimestamp"]).is_some();
    if going { Found::Gone } else { Found::Live(object) }
}

/// The rules of one policy and one trigger.
struct Work<'w, 'p> {
    pass: &'w Pass<'p>,
    key: &'w WorkKey,
    info: &'w PolicyInfo,
    trigger: Option<TriggerRef>,
    asked: Option<&'w Asked>,
    forced: bool,
    rendered: BTreeMap<ObjectId, Str>,
    done: Done,
    failure: Option<Failure>,
}

impl Work<'_, '_> {
    fn run(&mut self, mut owned: Vec<ObjectId>) -> Result<(), Failure> {
        owned.extend(self.unwatched(&owned)?);
        let by_rule = self.by_rule(&owned);
        // Rules that are gone: the document decides, not what could be compiled of it.
        let gone: Vec<(&Str, &Vec<ObjectId>)> =
            by_rule.iter().filter(|(rule, _)| !self.info.declared.contains(*rule)).collect();
        if !gone.is_empty() {
            let live = self.pass.policy_document(self.key)?;
            let live = live.as_ref().and_then(|live| live.at(&["spec", "rules"])).and_then(Value::as_array);
            for (rule, ids) in gone {
                let back = live.unwrap_or_default().iter().any(|r| r.str_at(&["name"]) == Some(rule));
                for id in ids.iter().filter(|_| !back) {
                    self.done.changes += self.pass.remove(self.key, id, Cause::RuleGone, None)?;
                }
            }
        }
        let Some(trigger) = self.trigger.clone() else {
            // Nobody knows what it was: nothing can be said about it.
            self.done.trigger_gone = true;
            return Ok(());
        };
        let found = match self.find(&trigger) {
            // What a request brought along is enough.
            Err(Failure::Failed(_)) if self.asked.is_some_and(Asked::brings_its_object) => Found::Gone,
            found => found?,
        };
        self.done.trigger_gone = found == Found::Gone;
        let mut judged = [None, None];
        for rule in &self.info.generate {
            let none = Vec::new();
            let own = by_rule.get(&rule.name).unwrap_or(&none);
            let result = self.rule(rule, own, &trigger, &found, &mut judged);
            match result {
                Ok(()) => {}
                Err(Failure::Lost) => return Err(Failure::Lost),
                Err(failure) => {
                    // What the rule rendered before stays its own while it cannot be judged.
                    let before = self.pass.lock().rendered.get(self.key).cloned().unwrap_or_default();
                    self.rendered.extend(before.into_iter().filter(|(_, name)| *name == rule.name));
                    if let Failure::Failed(message) = &failure {
                        let (policy, rule) = (self.key.policy.clone(), rule.name.clone());
                        (self.pass.env.observer)(&Note::Failed { policy, rule, message: message.clone() });
                    }
                    self.failure.get_or_insert(match failure {
                        Failure::Failed(message) => Failure::Failed(format!("rule {}: {message}", rule.name)),
                        failure => failure,
                    });
                }
            }
        }
        Ok(())
    }

    /// Downstreams of kinds that cannot be watched (yet): asked for.
    fn unwatched(&self, known: &[ObjectId]) -> Result<Vec<ObjectId>, Failure> {
        let mut found = Vec::new();
        let synchronizing = self.info.generate.iter().filter(|rule| rule.terms.synchronize);
        let kinds: BTreeSet<(Str, Str)> = synchronizing.flat_map(|rule| rule.downstream_kinds.clone()).collect();
        for (api_version, kind) in kinds {
            let group_kind = GroupKind::new(&api_version, &kind);
            let api_version = {
                let state = self.pass.lock();
                if state.index.is_synced(&group_kind) {
                    continue;
                }
                state.completed(&api_version, &kind)
            };
            let Some(api_version) = api_version else { continue };
            let Ok(resource) = self.pass.env.resource(&api_version, &kind) else { continue };
            let (namespace, name) = label_parts(&self.key.policy);
            let uid = &self.key.trigger;
            let text =
                format!("{POLICY_NAME}={name},{POLICY_NAMESPACE}={namespace},generate.kyverno.io/trigger-uid={uid}");
            let Ok(labels) = LabelSelector::parse(&text) else { continue };
            let filter = Filter { labels, ..Filter::default() };
            let (objects, _) = crate::feed::list(&*self.pass.env.cluster, &resource, &filter)?;
            for object in objects {
                self.pass.lock().note(&object, self.pass.now);
                let id = ObjectId::of(&object);
                if !known.contains(&id) {
                    found.push(id);
                }
            }
        }
        Ok(found)
    }

    fn by_rule(&self, owned: &[ObjectId]) -> BTreeMap<Str, Vec<ObjectId>> {
        let state = self.pass.lock();
        let mut by_rule: BTreeMap<Str, Vec<ObjectId>> = BTreeMap::new();
        for id in owned {
            if let Some(owner) = state.index.find(id).and_then(|seen| seen.owner()) {
                by_rule.entry(owner.rule.clone()).or_default().push(id.clone());
            }
        }
        by_rule
    }

    /// The trigger, and whether what a request says about it has come true.
    fn find(&self, trigger: &TriggerRef) -> Result<Found, Failure> {
        let found = self.pass.find(trigger)?;
        let Some((asked, admission)) = self.asked.and_then(|asked| Some((asked, asked.admission.as_ref()?))) else {
            return Ok(found);
        };
        if !admission.sub_resource.is_empty() || asked.age >= PATIENCE {
            return Ok(found);
        }
        let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).map(Str::new);
        let early = match (&found, admission.operation) {
            (Found::Gone, Operation::Create) | (Found::Live(_), Operation::Delete) => true,
            // The object as it was before the request: it is not stored yet, or never will be.
            (Found::Live(live), Operation::Update) => {
                !admission.old_object.is_null() && version(live) == version(&admission.old_object)
            }
            _ => false,
        };
        if early {
            return Err(Failure::Later(LOOK_AGAIN, "the request has not come true yet".to_owned()));
        }
        Ok(found)
    }

    fn rule(
        &mut self,
        rule: &GenerateInfo,
        own: &[ObjectId],
        trigger: &TriggerRef,
        found: &Found,
        judged: &mut [Option<Judged>; 2],
    ) -> Result<(), Failure> {
        let mut asked = self.asked.filter(|asked| asked.rules.contains(&rule.name));
        let operation = asked.and_then(|asked| Some(asked.admission.as_ref()?.operation));
        let payload = asked.and_then(|asked| asked.admission.as_ref()).filter(|admission| {
            matches!(admission.operation, Operation::Delete | Operation::Connect) || !admission.sub_resource.is_empty()
        });
        if operation == Some(Operation::Delete) && matches!(found, Found::Live(_)) {
            // It was not deleted after all.
            asked = None;
        }
        if !rule.terms.synchronize {
            self.restamp(rule, own)?;
            if asked.is_none() && !(self.forced && rule.traits.namespace_selector) {
                return Ok(());
            }
        }
        let released = asked.is_some_and(|asked| asked.released.contains(&rule.name));
        if released && !rule.terms.synchronize {
            return Ok(());
        }
        if released && rule.traits.event_bound {
            return self.remove_all(rule, own, Cause::TriggerUnmatched);
        }
        let object = match found {
            Found::Gone if payload.is_some() && !released => Value::Null,
            Found::Gone => {
                if rule.terms.synchronize {
                    let made_by_end =
                        |id: &ObjectId| self.operation_of(id).is_some_and(|o| o == "DELETE" || o == "CONNECT");
                    let own: Vec<ObjectId> =
                        own.iter().filter(|id| !rule.traits.on_delete && !made_by_end(id)).cloned().collect();
                    return self.remove_all(rule, &own, Cause::TriggerGone);
                }
                return match operation {
                    Some(Operation::Create | Operation::Update) => {
                        Err(Failure::Failed(format!("trigger {} {} is not there", trigger.kind, trigger.name)))
                    }
                    _ => Ok(()),
                };
            }
            Found::Live(object) => object.clone(),
        };
        if asked.is_none() && !self.in_force(rule, own, &object) {
            return Ok(());
        }
        // What a request alone can tell is judged by the last one.
        let remembered = rule.traits.event_bound.then(|| self.pass.lock().contexts.get(self.key).cloned()).flatten();
        if asked.is_none() && rule.traits.event_bound && remembered.is_none() {
            return Ok(());
        }
        if rule.terms.synchronize && rule.traits.unstable && !own.is_empty() {
            // Rendered once: another rendering would be another object.
            for id in own {
                self.rendered.insert(id.clone(), rule.name.clone());
                self.record(id);
            }
            return Ok(());
        }
        // What was made once is judged as it was made then, whatever request comes later.
        if rule.terms.synchronize && !rule.traits.event_bound && !own.is_empty() && !object.is_null() {
            asked = None;
        }
        let [by_request, by_itself] = judged;
        let slot = if asked.is_some() { by_request } else { by_itself };
        if slot.is_none() {
            let made = own.iter().find_map(|id| self.operation_of(id));
            *slot = Some(self.judge(asked, trigger, &object, made.as_deref(), remembered));
        }
        let Some(Judged { outcomes, operation }) = slot.as_ref() else { return Ok(()) };
        let operation = *operation;
        let Some(outcome) = outcomes.get(&rule.name) else {
            return self.remove_all(rule, own, Cause::TriggerUnmatched);
        };
        let detail = outcome.detail.as_deref();
        match outcome.verdict {
            Verdict::Pass => {
                let wanted = detail.map(|d| d.generated.as_slice()).unwrap_or_default();
                self.want(rule, own, trigger, operation, wanted, &[])
            }
            Verdict::Error => match detail.and_then(|d| d.incomplete.as_ref()) {
                Some(incomplete) => {
                    let unsourced: Vec<ObjectId> = incomplete
                        .unsourced
                        .iter()
                        .map(|u| ObjectId::new(&u.api_version, &u.kind, &u.namespace, &u.name))
                        .collect();
                    self.want(rule, own, trigger, operation, &incomplete.generated, &unsourced)?;
                    Err(Failure::Failed(outcome.message.to_string()))
                }
                None => Err(Failure::Failed(outcome.message.to_string())),
            },
            // An exception keeps things as they are.
            Verdict::Skip if detail.is_some_and(|d| !d.exceptions.is_empty()) => {
                self.rendered.extend(own.iter().map(|id| (id.clone(), rule.name.clone())));
                Ok(())
            }
            _ => self.remove_all(rule, own, Cause::TriggerUnmatched),
        }
    }

    fn in_force(&self, rule: &GenerateInfo, own: &[ObjectId], object: &Value) -> bool {
        !own.is_empty() || self.forced || self.pass.lock().in_force(self.info, rule, &super::index::Seen::of(object))
    }

    fn judge(
        &self,
        asked: Option<&Asked>,
        trigger: &TriggerRef,
        object: &Value,
        made: Option<&str>,
        remembered: Option<Arc<UpdateRequest>>,
    ) -> Judged {
        let review = self.review(asked, trigger, object, made, remembered);
        let operation = review.operation;
        let exceptions = Arc::clone(&self.pass.lock().snapshot.exceptions);
        let recorder = Recorder { pass: self.pass, key: self.key };
        let done = evaluate(&self.info.set, &exceptions, review, Phase::Generate, &recorder);
        Judged { outcomes: done.outcomes.into_iter().map(|o| (o.rule.clone(), o)).collect(), operation }
    }

    fn review(
        &self,
        asked: Option<&Asked>,
        trigger: &TriggerRef,
        object: &Value,
        made: Option<&str>,
        remembered: Option<Arc<UpdateRequest>>,
    ) -> Review {
        let asked = asked.and_then(|asked| Some((Arc::clone(&asked.request), asked.admission.clone()?)));
        let remembered = || remembered.and_then(|request| Some((Arc::clone(&request), admission_request(&request)?)));
        if let Some((request, admission)) = asked.or_else(remembered) {
            let subresource = !admission.sub_resource.is_empty();
            let (new, old) = match admission.operation {
                _ if subresource => (admission.object.clone(), admission.old_object.clone()),
                Operation::Create => (object.clone(), Value::Null),
                Operation::Update => (object.clone(), admission.old_object.clone()),
                Operation::Delete => (Value::Null, admission.old_object.clone()),
                Operation::Connect => (admission.object.clone(), Value::Null),
            };
            return review_of_request(&request, &admission, trigger, new, old, self.pass.clock);
        }
        let operation =
            made.and_then(Operation::parse).filter(|o| *o == Operation::Update).unwrap_or(Operation::Create);
        review_of_existing(object, operation, &self.info.uid, self.pass.clock)
    }

    /// What the request was that an owned object was made by.
    fn operation_of(&self, id: &ObjectId) -> Option<Str> {
        let state = self.pass.lock();
        let downstream = state.index.find(id)?.downstream.as_ref()?;
        Some(downstream.claim.stamp.as_ref()?.operation.clone())
    }

    fn remove_all(&mut self, rule: &GenerateInfo, own: &[ObjectId], cause: Cause) -> Result<(), Failure> {
        for id in own {
            self.done.changes += self.pass.remove(self.key, id, cause, Some(&rule.terms))?;
        }
        Ok(())
    }

    /// Tells objects of a rule that does not synchronize any more that they are on their own.
    fn restamp(&mut self, rule: &GenerateInfo, own: &[ObjectId]) -> Result<(), Failure> {
        for id in own {
            let (api_version, differs) = {
                let state = self.pass.lock();
                let Some(seen) = state.index.find(id) else { continue };
                let stamp = seen.downstream.as_ref().and_then(|d| d.claim.stamp.as_ref());
                (seen.api_version.clone(), stamp.is_some_and(|s| s.synchronize || s.orphan != rule.terms.orphan))
            };
            if !differs {
                continue;
            }
            let Some(live) = self.pass.env.read(&api_version, id)? else { continue };
            let Some(claim) = Claim::of(&live) else { continue };
            let wanted = Wanted {
                id: id.clone(),
                object: live.clone(),
                form: claim.stamp.as_ref().map_or(ephor_engine::outcome::Form::Data, |stamp| stamp.form),
                owner: claim.owner,
            };
            if let Some(change) = plan_downstream(&rule.terms, &wanted, Some(&live), None) {
                if let Some(stored) = self.pass.env.apply(&change)? {
                    self.pass.lock().note(&stored, self.pass.now);
                    self.pass.tell(&self.key.policy, &rule.name, &change, stored);
                }
                self.done.changes += 1;
            }
        }
        Ok(())
    }

    /// Makes good what a rule renders; `unsourced` are objects that lack their source.
    fn want(
        &mut self,
        rule: &GenerateInfo,
        own: &[ObjectId],
        trigger: &TriggerRef,
        operation: Operation,
        rendered: &[ephor_engine::outcome::Downstream],
        unsourced: &[ObjectId],
    ) -> Result<(), Failure> {
        let (policy_namespace, policy) = label_parts(&self.key.policy);
        let owner = Owner {
            policy_namespace: policy_namespace.into(),
            policy: policy.into(),
            rule: rule.name.clone(),
            trigger: self.key.trigger.clone(),
        };
        let mut first_failure = None;
        let mut wanted_ids = BTreeSet::new();
        for downstream in rendered {
            let object = self.complete(&downstream.object)?;
            let wanted =
                Wanted::new(object, downstream.form, owner.clone(), &rule.terms, &trigger.name, operation.as_str());
            // Of elements or rules that render the same object, the first counts.
            let taken = self.rendered.get(&wanted.id).is_some_and(|by| *by != rule.name);
            if !wanted_ids.insert(wanted.id.clone()) || taken {
                continue;
            }
            if rule.terms.synchronize {
                self.rendered.insert(wanted.id.clone(), rule.name.clone());
            }
            match self.ensure(rule, &wanted) {
                Ok(()) => {
                    self.record(&wanted.id);
                    if let Some(source) = downstream.source.as_ref().filter(|_| rule.terms.synchronize) {
                        self.mark_source(source);
                    }
                }
                Err(Failure::Lost) => return Err(Failure::Lost),
                Err(failure) => {
                    first_failure.get_or_insert(failure);
                }
            }
        }
        for id in own.iter().filter(|id| !wanted_ids.contains(*id)) {
            let cause = if unsourced.contains(id) { Cause::SourceGone } else { Cause::NoLongerRendered };
            self.done.changes += self.pass.remove(self.key, id, cause, Some(&rule.terms))?;
        }
        first_failure.map_or(Ok(()), Err)
    }

    /// The object with what only discovery knows: its group, and whether it lives in a namespace.
    fn complete(&self, rendered: &Value) -> Result<Value, Failure> {
        let mut object = rendered.clone();
        let text = |key: &str| Str::new(rendered.str_at(&[key]).unwrap_or_default());
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let Some(completed) = self.pass.lock().completed(&api_version, &kind) else {
            return Err(Failure::Failed(format!("kind {kind} is served by several groups or none: set `apiVersion`")));
        };
        if api_version.is_empty()
            && let Some(members) = object.as_object_mut()
        {
            members.insert("apiVersion", completed.clone());
        }
        let resource = self.pass.env.resource(&completed, &kind)?;
        let namespace = rendered.str_at(&["metadata", "namespace"]).unwrap_or_default();
        let own = self.key.policy.namespace.as_deref();
        if resource.namespaced && namespace.is_empty() {
            set_meta(&mut object, "namespace", Some(own.unwrap_or("default").into()));
        } else if !resource.namespaced {
            set_meta(&mut object, "namespace", None);
        }
        // INVARIANT: a Policy writes into its own namespace and nowhere else.
        if let Some(own) = own
            && object.str_at(&["metadata", "namespace"]) != Some(own)
        {
            return Err(Failure::Failed(format!(
                "a Policy of namespace `{own}` generates objects of that namespace only"
            )));
        }
        Ok(object)
    }

    /// Makes one object exist as it is wanted.
    fn ensure(&mut self, rule: &GenerateInfo, wanted: &Wanted) -> Result<(), Failure> {
        let api_version = wanted.object.str_at(&["apiVersion"]).unwrap_or_default();
        let mut live: Option<Value> = None;
        if let Some(settled) = self.known(rule, wanted) {
            if settled {
                return Ok(());
            }
            live = self.pass.env.read(api_version, &wanted.id)?;
        }
        for _ in 0..TRIES {
            if let Some(live) = &live
                && rule.terms.synchronize
                && let Some(claim) = Claim::of(live).filter(|claim| super::state::key_of(&claim.owner) != *self.key)
            {
                match self.pass.lock().stands(&claim.owner, &wanted.id) {
                    // Several triggers can want the same object; the first that has it keeps it.
                    Standing::Firm => return Ok(()),
                    Standing::Open => {
                        return Err(Failure::Later(
                            5 * LOOK_AGAIN,
                            format!("{} belongs to another trigger", wanted.id),
                        ));
                    }
                    Standing::Fallen => {}
                }
            }
            let written = self.pass.lock().written.get(&wanted.id).cloned();
            let Some(change) = plan_downstream(&rule.terms, wanted, live.as_ref(), written.as_ref()) else {
                if let Some(live) = &live {
                    self.pass.lock().note(live, self.pass.now);
                }
                return Ok(());
            };
            if change.reason == Reason::Differs && self.pass.lock().is_contested(&wanted.id, self.pass.now) {
                return Err(Failure::Failed(format!("{} is changed again and again by somebody else", wanted.id)));
            }
            match self.pass.env.apply(&change) {
                Ok(stored) => {
                    if let Some(stored) = stored {
                        let sent = match &change.action {
                            Action::Replace { before, .. } => with_books_of(&wanted.object, before),
                            _ => wanted.object.clone(),
                        };
                        self.pass.lock().note_own(&sent, &stored, self.pass.now);
                        self.pass.tell(&self.key.policy, &rule.name, &change, stored);
                    }
                    self.done.changes += 1;
                    return Ok(());
                }
                Err(error) if error.is(ErrorKind::AlreadyExists) || error.is(ErrorKind::Conflict) => {
                    live = self.pass.env.read(api_version, &wanted.id)?;
                }
                Err(error) if error.is(ErrorKind::NotFound) && live.is_some() => live = None,
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failure::Failed(format!("{} changes all the time", wanted.id)))
    }

    /// What is known of a wanted object: whether it is settled; `None` if it is not known to exist.
    fn known(&self, rule: &GenerateInfo, wanted: &Wanted) -> Option<bool> {
        let state = self.pass.lock();
        let seen = state.index.find(&wanted.id)?;
        if !state.index.is_synced(&GroupKind::of(&wanted.id)) {
            return Some(false);
        }
        if seen.terminating {
            return Some(true);
        }
        let Some(downstream) = &seen.downstream else { return Some(!rule.terms.synchronize) };
        if downstream.claim.owner != wanted.owner || !rule.terms.synchronize {
            return Some(false);
        }
        let sent = fingerprint(&essence(&wanted.object));
        let as_written =
            state.written.get(&wanted.id).is_some_and(|w| w.stored == downstream.essence && w.sent == sent);
        Some(as_written || downstream.essence == sent)
    }

    /// Adds an object to what the request made.
    fn record(&mut self, id: &ObjectId) {
        let state = self.pass.lock();
        let seen = state.index.find(id);
        let spec = ResourceSpec {
            api_version: seen.map(|seen| seen.api_version.clone()).unwrap_or_default(),
            kind: id.kind.clone(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            uid: seen.map(|seen| seen.uid.clone()).unwrap_or_default(),
        };
        drop(state);
        self.done.generated.push(spec);
    }

    /// Marks an object as one that others are copied from, as upstream does: its admission looks for the mark. What is
    /// lost without it is made good by watching, so that a failure is only logged.
    fn mark_source(&self, source: &Value) {
        if source.at(&["metadata", "labels", CLONE_SOURCE]).is_some() {
            return;
        }
        let text = |keys: &[&str]| source.at(keys).cloned().unwrap_or_default();
        let id = ObjectId::of(source);
        let metadata = Value::from([
            ("labels", Value::from([(CLONE_SOURCE, Value::from(""))])),
            ("resourceVersion", text(&["metadata", "resourceVersion"])),
            ("uid", text(&["metadata", "uid"])),
        ]);
        let patch = ephor_cluster::Patch::merge(Value::from([("metadata", metadata)]));
        let result = (self.pass.env.fence)().map_err(WriteError::from).and_then(|()| {
            let resource = self.pass.env.resource(source.str_at(&["apiVersion"]).unwrap_or_default(), &id.kind)?;
            Ok(self.pass.env.cluster.patch(&resource, id.namespace(), &id.name, &patch, &Env::options())?)
        });
        match result {
            Ok(stored) => self.pass.lock().note(&stored, self.pass.now),
            Err(error) => tracing::debug!(source = %id, %error, "the source could not be marked"),
        }
    }
}
