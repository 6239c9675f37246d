//! Runs the rules of one policy for one trigger.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use ephor_cluster::query::Filter;
use ephor_cluster::{ErrorKind, LabelSelector};
use ephor_engine::outcome::{Outcome, Verdict};
use ephor_engine::policy::Operation;
use ephor_engine::redact::Redactor;
use ephor_expr::{Str, Value};
use ephor_runtime::kinds::GroupKind;
use ephor_runtime::update_request::ResourceSpec;

use super::context::{
    Done, Lookup, NAME_TAKEN_TIMEOUT, POLL_INTERVAL, ReconcileContext, ReconcileError, TriggerRequest,
};
use super::decide::{Activation, Decision, Inputs, Request, Requests, Trigger};
use super::judge::{Judged, View};
use crate::index::Seen;
use crate::plan::claim::{POLICY_NAME, POLICY_NAMESPACE};
use crate::plan::{Cause, ObjectId};
use crate::queue::WorkKey;
use crate::rules::{GenerateInfo, PolicyInfo};
use crate::state::is_too_large;
use crate::trigger::TriggerRef;
use crate::writer::{Note, Words};

/// The rules of one policy and one trigger.
pub(super) struct PolicyReconciler<'w, 'p> {
    pub(super) context: &'w ReconcileContext<'p>,
    pub(super) key: &'w WorkKey,
    pub(super) info: &'w PolicyInfo,
    pub(super) trigger: Option<TriggerRef>,
    /// The trigger as it is stored; `null` if it is gone.
    pub(super) object: Value,
    pub(super) request: Option<&'w TriggerRequest>,
    pub(super) forced: BTreeSet<Str>,
    pub(super) rendered: BTreeMap<ObjectId, Str>,
    /// Objects that were read or written for it.
    pub(super) met: BTreeMap<ObjectId, ResourceSpec>,
    pub(super) done: Done,
    /// Rules that the engine has judged.
    pub(super) verdicts: BTreeSet<Str>,
    /// Whether a rule that synchronizes goes on as before without a verdict.
    pub(super) unjudged: bool,
    pub(super) failure: Option<ReconcileError>,
    /// The values of Secrets that rules have read. What fails may quote them, in the words of an API server too.
    pub(super) secrets: Redactor,
    /// What the rule says that is carried out.
    pub(super) words: Words,
}

impl PolicyReconciler<'_, '_> {
    pub(super) fn run(&mut self, mut owned: Vec<ObjectId>) -> Result<(), ReconcileError> {
        owned.extend(self.unwatched(&owned)?);
        let by_rule = self.by_rule(&owned);
        // Rules that are gone: the document decides, not what could be compiled of it.
        let gone: Vec<(&Str, &Vec<ObjectId>)> =
            by_rule.iter().filter(|(rule, _)| !self.info.declared.contains(*rule)).collect();
        if !gone.is_empty() {
            let live = self.context.policy_document(self.key)?;
            let live = live.as_ref().and_then(|live| live.at(&["spec", "rules"])).and_then(Value::as_array);
            for (rule, ids) in gone {
                let back = live.unwrap_or_default().iter().any(|r| r.str_at(&["name"]) == Some(rule));
                for id in ids.iter().filter(|_| !back) {
                    self.done.changes += self.context.remove(self.key, id, Cause::RuleGone, None)?;
                }
            }
        }
        let Some(trigger) = self.trigger.clone() else {
            // The trigger is not known, so its rules cannot be evaluated.
            self.done.trigger_gone = true;
            return Ok(());
        };
        // What admission asks for it has seen: the filters have passed it.
        if self.request.is_none() && self.context.lock().hides(&trigger.api_version, &trigger.id()) {
            for rule in &self.info.generate {
                self.as_before(rule);
            }
            return Ok(());
        }
        let found = match self.find(&trigger) {
            // What a request brought along is enough.
            Err(ReconcileError::Failed(_)) if self.request.is_some_and(TriggerRequest::brings_its_object) => {
                Lookup::Gone
            }
            // What events are about need not be an object, nor of a kind that can be read.
            Err(ReconcileError::Failed(_))
                if self.is_served(&trigger) == Some(false) && owned.iter().all(|id| self.is_of_event(id)) =>
            {
                Lookup::Gone
            }
            Err(ReconcileError::Failed(message)) => return Err(ReconcileError::of_rule("", &trigger, &message)),
            found => found?,
        };
        if found == Lookup::NotPersisted {
            self.done.not_persisted = true;
            for rule in &self.info.generate {
                self.as_before(rule);
            }
            return Ok(());
        }
        self.done.trigger_gone = found == Lookup::Gone;
        if let Lookup::Live(object) = &found {
            self.object = object.clone();
        }
        let mut judged = BTreeMap::new();
        for rule in &self.info.generate {
            let none = Vec::new();
            let own = by_rule.get(&rule.name).unwrap_or(&none);
            if self.request.is_some_and(|request| request.alone && !request.rules.contains(&rule.name)) {
                self.as_before(rule);
                continue;
            }
            let result = self.rule(rule, own, &trigger, &found, &mut judged);
            match result {
                Ok(()) => {}
                Err(ReconcileError::LostLease) => return Err(ReconcileError::LostLease),
                Err(failure) => {
                    let failure = failure.redacted(&self.secrets);
                    // What the rule rendered before stays its own while it cannot be judged.
                    self.as_before(rule);
                    if let ReconcileError::Failed(message) = &failure {
                        let (policy, rule) = (self.key.policy.clone(), rule.name.clone());
                        let (trigger, message) = (Some(trigger.clone()), message.clone());
                        (self.context.env.observer)(&Note::Failed { policy, rule, trigger, message });
                    }
                    let failure = match failure {
                        // A request answers for the rules that it names.
                        ReconcileError::Failed(_)
                            if self.request.is_some_and(|request| !request.rules.contains(&rule.name)) =>
                        {
                            self.done.others_failed = true;
                            continue;
                        }
                        ReconcileError::Failed(message) => ReconcileError::of_rule(&rule.name, &trigger, &message),
                        failure => failure,
                    };
                    self.failure = Some(match self.failure.take() {
                        Some(known) => known.and(failure),
                        None => failure,
                    });
                }
            }
        }
        Ok(())
    }

    /// A rule that is not judged, or fails, goes on wanting what it wanted.
    fn as_before(&mut self, rule: &GenerateInfo) {
        self.unjudged |= rule.terms.synchronize && !self.verdicts.contains(&rule.name);
        let before = self.context.lock().ownership.rendered(self.key).cloned().unwrap_or_default();
        self.rendered.extend(before.into_iter().filter(|(_, name)| *name == rule.name));
    }

    /// Downstreams of kinds that cannot be watched (yet): asked for.
    pub(super) fn unwatched(&self, known: &[ObjectId]) -> Result<Vec<ObjectId>, ReconcileError> {
        let mut found = Vec::new();
        let synchronizing = self.info.generate.iter().filter(|rule| rule.terms.synchronize);
        let kinds: BTreeSet<(Str, Str)> = synchronizing.flat_map(|rule| rule.downstream_kinds.clone()).collect();
        for (api_version, kind) in kinds {
            let group_kind = GroupKind::new(&api_version, &kind);
            let api_version = {
                let state = self.context.lock();
                if state.index.is_synced(&group_kind) {
                    continue;
                }
                state.completed(&api_version, &kind)
            };
            let Some(api_version) = api_version else { continue };
            let resource = match self.context.env.resource(&api_version, &kind) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                resource => resource?,
            };
            let WorkKey { policy, trigger: uid } = self.key;
            let (namespace, name) = (policy.namespace_label(), &policy.name);
            let text =
                format!("{POLICY_NAME}={name},{POLICY_NAMESPACE}={namespace},generate.kyverno.io/trigger-uid={uid}");
            let Ok(labels) = LabelSelector::parse(&text) else { continue };
            let filter = Filter { labels, ..Filter::default() };
            for object in self.context.env.list(&resource, &filter)? {
                self.context.lock().note(&object, self.context.now);
                let id = ObjectId::of(&object);
                if !known.contains(&id) {
                    found.push(id);
                }
            }
        }
        Ok(found)
    }

    pub(super) fn by_rule(&self, owned: &[ObjectId]) -> BTreeMap<Str, Vec<ObjectId>> {
        let state = self.context.lock();
        let mut by_rule: BTreeMap<Str, Vec<ObjectId>> = BTreeMap::new();
        for id in owned {
            if let Some(owner) = state.index.find(id).and_then(|seen| seen.owner()) {
                by_rule.entry(owner.rule.clone()).or_default().push(id.clone());
            }
        }
        by_rule
    }

    /// The trigger, once the API server has stored what the request announces.
    pub(super) fn find(&self, trigger: &TriggerRef) -> Result<Lookup, ReconcileError> {
        match self.request.and_then(|request| Some((request, request.admission.as_ref()?))) {
            Some((request, admission)) => {
                if admission.operation == Operation::Create
                    && self.info.only_synchronizes()
                    && let Some(told) = self.context.told_of(trigger, request.age)?
                {
                    return Ok(told);
                }
                self.context.find_after(trigger, &request.update_request, admission, request.age)
            }
            None => self.context.find(trigger),
        }
    }

    /// Decides what a rule does for the trigger and does it.
    pub(super) fn rule(
        &mut self,
        rule: &GenerateInfo,
        own: &[ObjectId],
        trigger: &TriggerRef,
        found: &Lookup,
        judged: &mut BTreeMap<View, Judged>,
    ) -> Result<(), ReconcileError> {
        // The downstream of an event stays unchanged: it follows neither a live trigger nor another event.
        let (of_events, followed): (Vec<ObjectId>, Vec<ObjectId>) =
            own.iter().cloned().partition(|id| self.is_of_event(id));
        let request = self.request.filter(|request| request.rules.contains(&rule.name));
        let inputs = self.inputs(rule, &followed, found, request);
        let decision = inputs.decide();
        if !rule.terms.synchronize {
            self.update_annotation(rule, own)?;
        }
        if decision == Decision::Ignore {
            return Ok(());
        }
        self.hold(rule, &of_events)?;
        match decision {
            Decision::Ignore | Decision::Keep => Ok(()),
            Decision::UpdateAnnotations => self.update_annotation(rule, &followed),
            Decision::Remove(cause) => self.remove_all(rule, &followed, cause),
            Decision::FailRequest => Err(ReconcileError::TriggerNotFound(trigger.clone())),
            Decision::Evaluate { remember } => {
                let superseded = remember && request.is_some_and(|request| !self.remember(rule, request));
                self.evaluate(rule, &followed, trigger, found, &inputs, superseded, judged)
            }
        }
    }

    /// What the decision about a rule depends on.
    fn inputs(
        &self,
        rule: &GenerateInfo,
        own: &[ObjectId],
        found: &Lookup,
        request: Option<&TriggerRequest>,
    ) -> Inputs {
        let activation = match found {
            _ if self.forced.contains(&rule.name) => Activation::Forced,
            Lookup::Live(object) if self.in_force(rule, own, object) => Activation::Active,
            _ => Activation::Inactive,
        };
        let request = request.map(|request| Request {
            operation: request.admission.as_ref().map(|admission| admission.operation),
            subresource: request.admission.as_ref().is_some_and(|admission| !admission.sub_resource.is_empty()),
            released: request.released.contains(&rule.name),
            announced: request.precedes_its_object(),
        });
        Inputs {
            synchronize: rule.terms.synchronize,
            traits: rule.traits,
            activation,
            owns: !own.is_empty(),
            trigger: match found {
                Lookup::Live(_) => Trigger::Live,
                Lookup::Gone => Trigger::Gone,
                Lookup::NotPersisted => Trigger::NotPersisted,
            },
            request,
        }
    }

    /// Stores a request for later evaluations of a rule. Returns `false` if a newer one is stored.
    fn remember(&self, rule: &GenerateInfo, request: &TriggerRequest) -> bool {
        let mut state = self.context.lock();
        if is_too_large(rule, &request.update_request) {
            // It counts for this evaluation. Later ones have no request and leave what there is.
            state.forget_contexts(self.key, |other| other != rule.name, self.context.now);
            return true;
        }
        state.remember(self.key, &rule.name, &request.update_request, self.context.now)
    }

    /// Evaluates a rule and applies the outcome.
    #[expect(clippy::too_many_arguments, reason = "the second half of `rule`")]
    fn evaluate(
        &mut self,
        rule: &GenerateInfo,
        own: &[ObjectId],
        trigger: &TriggerRef,
        found: &Lookup,
        inputs: &Inputs,
        superseded: bool,
        judged: &mut BTreeMap<View, Judged>,
    ) -> Result<(), ReconcileError> {
        let object = if let Lookup::Live(object) = found { object.clone() } else { Value::Null };
        let stored = rule.terms.synchronize && !object.is_null();
        let remembered = self.context.lock().contexts.get(self.key, &rule.name).filter(|_| stored).cloned();
        let made = own.iter().find_map(|id| self.operation_of(id));
        let view = inputs.view(Requests {
            superseded,
            remembered: remembered.as_ref().map(|request| request.metadata.name.clone()),
            made_by_update: made.as_deref() == Some(Operation::Update.as_str()),
        });
        let Some(view) = view else { return self.update_annotation(rule, own) };
        let request = self.request.filter(|_| view == View::Request);
        let judged = match judged.entry(view) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => {
                let found = self.judge(request, trigger, &object, free.key(), remembered);
                free.insert(found)
            }
        };
        self.verdicts.insert(rule.name.clone());
        let Judged { outcomes, operation, subresource } = &*judged;
        let Some(outcome) = outcomes.get(&rule.name) else {
            return self.remove_all(rule, own, Cause::TriggerUnmatched);
        };
        self.apply(rule, own, trigger, &(*operation, subresource.clone()), outcome, request)
    }

    /// Creates, updates or removes the downstreams of a rule as its outcome says.
    fn apply(
        &mut self,
        rule: &GenerateInfo,
        own: &[ObjectId],
        trigger: &TriggerRef,
        made_by: &(Operation, Str),
        outcome: &Outcome,
        request: Option<&TriggerRequest>,
    ) -> Result<(), ReconcileError> {
        let detail = outcome.detail.as_deref();
        self.words = Words::of(&self.key.policy, outcome);
        let excepted = detail.is_some_and(|detail| !detail.exceptions.is_empty());
        match outcome.verdict {
            // With an exception, the downstreams stay as they are, whatever its result counts as.
            Verdict::Pass | Verdict::Skip if excepted => {
                self.hold(rule, own)?;
                // Admission knew no exception. The one in the store may have been deleted since. For policies of
                // `policies.kyverno.io` it asks all the same, so that a report says what was excepted.
                let outdated = request.is_some_and(|request| {
                    !self.key.policy.kind.is_of_cel()
                        && request.admission.is_some()
                        && !request.released.contains(&rule.name)
                        && request.age < NAME_TAKEN_TIMEOUT
                });
                if outdated {
                    let reason = "an exception holds that admission did not know".to_owned();
                    return Err(ReconcileError::RetryAfter(POLL_INTERVAL, reason));
                }
                if request.is_some() && self.key.policy.kind.is_of_cel() {
                    (self.context.env.observer)(&Note::Excepted {
                        policy: self.key.policy.clone(),
                        rule: rule.name.clone(),
                        trigger: trigger.clone(),
                        verdict: outcome.verdict,
                        words: std::mem::take(&mut self.words),
                    });
                }
                Ok(())
            }
            Verdict::Pass => {
                let wanted = detail.map(|d| d.generated.as_slice()).unwrap_or_default();
                self.want(rule, own, trigger, made_by, wanted, &[])
            }
            Verdict::Error => {
                if let Some(incomplete) = detail.and_then(|d| d.incomplete.as_ref()) {
                    let unsourced: Vec<ObjectId> = incomplete
                        .unsourced
                        .iter()
                        .map(|u| ObjectId::new(&u.api_version, &u.kind, &u.namespace, &u.name))
                        .collect();
                    self.want(rule, own, trigger, made_by, &incomplete.generated, &unsourced)?;
                }
                Err(ReconcileError::Failed(outcome.message.to_string()))
            }
            // Keep downstreams that the conditions read. Otherwise the rule would create and delete them in a loop.
            Verdict::Skip => {
                let (read, rest): (Vec<ObjectId>, Vec<ObjectId>) = {
                    let state = self.context.lock();
                    own.iter().cloned().partition(|id| state.depends_on(self.key, id))
                };
                self.hold(rule, &read)?;
                self.remove_all(rule, &rest, Cause::TriggerUnmatched)
            }
            _ => self.remove_all(rule, own, Cause::TriggerUnmatched),
        }
    }

    /// Whether a trigger's kind is served; `None` if discovery fails.
    fn is_served(&self, trigger: &TriggerRef) -> Option<bool> {
        match self.context.env.resource(&trigger.api_version, &trigger.kind) {
            Ok(_) => Some(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Some(false),
            Err(_) => None,
        }
    }

    pub(super) fn in_force(&self, rule: &GenerateInfo, own: &[ObjectId], object: &Value) -> bool {
        !own.is_empty()
            || self.forced.contains(&rule.name)
            || self.context.lock().in_force(self.info, rule, &Seen::of(object))
    }
}
