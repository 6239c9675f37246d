//! Evaluates the policy for a trigger, and records what the evaluation reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ephor_cluster::raw;
use ephor_engine::evaluation::Evaluation;
use ephor_engine::fetch::{Fact, Fetch, Merger};
use ephor_engine::gate::AllowedFetch;
use ephor_engine::outcome::{Outcome, Phase};
use ephor_engine::policy::{HttpMethod, Operation};
use ephor_engine::review::Review;
use ephor_expr::{Str, Value};
use ephor_runtime::facts::{Answers, labels_of};
use ephor_runtime::redact::Learning;
use ephor_runtime::update_request::UpdateRequest;

use super::context::{ReconcileContext, TriggerRequest};
use super::reconciler::PolicyReconciler;
use crate::plan::{ObjectId, OwnershipAnnotation};
use crate::queue::WorkKey;
use crate::trigger::{TriggerRef, admission_request, review_of_request};

/// Answers the questions of one evaluation, and registers what its key was judged by.
struct Recorder<'r, 'p> {
    context: &'r ReconcileContext<'p>,
    /// `None` for a policy without rules that synchronize: a change of what they read asks for nothing.
    key: Option<&'r WorkKey>,
    /// Whether the evaluation answers a request.
    once: bool,
}

impl Recorder<'_, '_> {
    /// Registers a question before it is asked, so that no change after the answer is missed.
    fn register(&self, fetch: &Fetch) {
        let Some(key) = self.key else { return };
        let mut state = self.context.lock();
        match fetch {
            Fetch::Object { api_version, kind, namespace, name } => {
                state.depend(key, api_version, kind, namespace, name);
            }
            Fetch::Objects { api_version, kind, namespace } => state.depend(key, api_version, kind, namespace, ""),
            Fetch::Namespace { name } => state.depend(key, "v1", "Namespace", "", name),
            Fetch::ConfigMap { namespace, name } => state.depend(key, "v1", "ConfigMap", namespace, name),
            Fetch::Api { method: HttpMethod::Get, path, .. } => {
                if let Some(target) = raw::target(&state.discovery, &path.without_query()) {
                    let text = |part: &Option<String>| part.clone().unwrap_or_default();
                    let (namespace, name) = (text(&target.namespace), text(&target.name));
                    let api_version = target.resource.api_version();
                    state.depend(key, &api_version, &target.resource.kind, &namespace, &name);
                }
            }
            _ => {}
        }
    }

    /// What the index knows without a question to the cluster.
    fn known(&self, fetch: &Fetch) -> Option<Value> {
        // Watches lag. A late answer is corrected when the change arrives, but a request is judged only once.
        if self.once {
            return None;
        }
        let state = self.context.lock();
        let recent = |id: &ObjectId| state.index.find(id).and_then(|seen| state.index.recent.get(seen));
        match fetch {
            Fetch::Object { api_version, kind, namespace, name } => {
                let id = ObjectId::new(api_version, kind, namespace, name);
                recent(&id).filter(|_| state.index.is_wide(&id.group_kind()))
            }
            Fetch::NamespaceLabels { name } => {
                recent(&ObjectId::new("v1", "Namespace", "", name)).map(|namespace| labels_of(&namespace))
            }
            _ => None,
        }
    }
}

impl Answers for Recorder<'_, '_> {
    fn answer(&self, fetch: &AllowedFetch) -> Fact {
        self.register(fetch.fetch());
        if let Some(known) = self.known(fetch.fetch()) {
            self.context.env.answers.overhear(fetch.fetch(), &known);
            return Fact::Found(known);
        }
        let fact = self.context.env.answers.answer(fetch);
        match (fetch.fetch(), &fact, self.key) {
            (Fetch::Object { .. }, Fact::Found(object), _) => self.context.lock().note(object, self.context.now),
            (Fetch::Global { .. }, said, Some(key)) => {
                self.context.lock().heard_of_entry(key, fetch, said, self.context.now);
            }
            _ => {}
        }
        fact
    }

    fn context_limit(&self) -> u64 {
        self.context.env.answers.context_limit()
    }

    fn merger(&self) -> Option<Arc<dyn Merger>> {
        self.context.env.answers.merger()
    }

    fn secrets(&self, fetch: &Fetch, answer: &Value) -> Option<Value> {
        self.context.env.answers.secrets(fetch, answer)
    }
}

/// As what a trigger is judged. Rules that see it in the same way share what the engine says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum View {
    /// With the data of the current request.
    Request,
    /// As the last request had it; its name.
    Remembered(Str),
    /// As the creation of the object: its request is not known, or its downstream was made by a creation.
    Created,
    /// As an object that was updated: what there is was made so.
    Updated,
}

/// What a policy's rules made of a trigger.
pub(super) struct Judged {
    pub(super) outcomes: BTreeMap<Str, Outcome>,
    pub(super) operation: Operation,
    pub(super) subresource: Str,
}

impl PolicyReconciler<'_, '_> {
    pub(super) fn judge(
        &mut self,
        asked: Option<&TriggerRequest>,
        trigger: &TriggerRef,
        object: &Value,
        view: &View,
        remembered: Option<Arc<UpdateRequest>>,
    ) -> Judged {
        let once = asked.is_some_and(|asked| asked.admission.is_some());
        let review = self.review(asked, trigger, object, view, remembered);
        let (operation, subresource) = (review.operation, review.subresource.clone());
        let exceptions = Arc::clone(&self.context.lock().snapshot.exceptions);
        let recorder = Recorder { context: self.context, key: self.info.synchronizes().then_some(self.key), once };
        let begun = Instant::now();
        let evaluation = Evaluation::new(&self.info.set, &exceptions, review.clone(), Phase::Generate);
        let answers = Learning::new(&recorder, std::mem::take(&mut self.secrets));
        answers.learn([&review.object, &review.old_object]);
        let mut done = self.context.env.evaluate(evaluation, &answers);
        answers.redact_outcomes(&mut done.outcomes);
        self.secrets = answers.into_secrets();
        if let Some(program) = &self.info.program {
            self.context.env.metrics.background_judged(program, &review, &done.outcomes, begun.elapsed());
        }
        Judged { outcomes: done.outcomes.into_iter().map(|o| (o.rule.clone(), o)).collect(), operation, subresource }
    }

    pub(super) fn review(
        &self,
        asked: Option<&TriggerRequest>,
        trigger: &TriggerRef,
        object: &Value,
        view: &View,
        remembered: Option<Arc<UpdateRequest>>,
    ) -> Review {
        let asked = asked.and_then(|asked| Some((Arc::clone(&asked.update_request), asked.admission.clone()?)));
        let remembered = || remembered.and_then(|request| Some((Arc::clone(&request), admission_request(&request)?)));
        if let Some((request, admission)) = asked.or_else(remembered) {
            let subresource = !admission.sub_resource.is_empty();
            let (new, old) = match admission.operation {
                _ if subresource => (admission.object.clone(), admission.old_object.clone()),
                Operation::Create => (object.clone(), Value::Null),
                // What was before is kept for rules that look at it.
                Operation::Update if admission.old_object.get("kind").is_none() => (object.clone(), object.clone()),
                Operation::Update => (object.clone(), admission.old_object.clone()),
                Operation::Delete => (Value::Null, admission.old_object.clone()),
                Operation::Connect => (admission.object.clone(), Value::Null),
            };
            return review_of_request(&request, &admission, trigger, new, old, self.context.clock);
        }
        let operation = if *view == View::Updated { Operation::Update } else { Operation::Create };
        self.context.review_of(object, operation, &self.info.uid)
    }

    /// What the request was that an owned object was made by.
    pub(super) fn operation_of(&self, id: &ObjectId) -> Option<Str> {
        self.annotation_of(id).map(|annotation| annotation.operation)
    }

    /// Whether an event made an owned object.
    pub(super) fn is_of_event(&self, id: &ObjectId) -> bool {
        self.annotation_of(id).is_some_and(|annotation| annotation.is_of_event())
    }

    fn annotation_of(&self, id: &ObjectId) -> Option<OwnershipAnnotation> {
        let state = self.context.lock();
        state.index.find(id)?.downstream.as_ref()?.claim.annotation.clone()
    }
}
