//! The `UpdateRequest`s that admission would write for a change. They may include more rules than match: the controller
//! evaluates them again.

use ephor_engine::matching::Gvk;
use ephor_engine::policy::Operation;
use ephor_expr::{Map, Value};
use ephor_runtime::config::Config;
use ephor_runtime::update_request::{RequestType, ResourceSpec, RuleContext, UpdateRequest};
use ephor_runtime::watcher::StoreEvent;

use crate::plan::ObjectId;
use crate::rules::{PolicyInfo, may_match};

/// An object before and after; one of them is `null` if there is none.
pub(super) struct Event {
    pub(super) before: Value,
    pub(super) after: Value,
}

impl Event {
    /// The object that it is about.
    pub(super) fn subject(&self) -> &Value {
        if self.after.is_null() { &self.before } else { &self.after }
    }

    /// The event that a watcher would report.
    pub(super) fn change(&self) -> StoreEvent {
        let gone = self.after.is_null();
        if gone { StoreEvent::Delete(self.before.clone()) } else { StoreEvent::Apply(self.after.clone()) }
    }

    /// Whether admission would show it to no policy.
    pub(super) fn is_hidden(&self, config: &Config) -> bool {
        let id = ObjectId::of(self.subject());
        let gvk = Gvk::new(self.subject().str_at(&["apiVersion"]).unwrap_or_default(), &id.kind);
        config.resource_filters.drops(&gvk, "", &id.namespace, &id.name)
    }

    fn operation(&self) -> Operation {
        match (self.before.is_null(), self.after.is_null()) {
            (true, _) => Operation::Create,
            (false, false) => Operation::Update,
            (false, true) => Operation::Delete,
        }
    }

    /// The requests for a policy.
    pub(super) fn requests(&self, info: &PolicyInfo) -> Vec<UpdateRequest> {
        let trigger = ResourceSpec::of_object(self.subject());
        let gvk = Gvk::new(&trigger.api_version, &trigger.kind);
        if !info.sees(&trigger.namespace) {
            return Vec::new();
        }
        let mut requests = Vec::new();
        let generate = info.generate.iter().filter(|rule| may_match(rule.kinds.as_deref(), &gvk));
        // The controller finds released downstreams without a request. Only rules that match DELETE need one.
        let generate = generate.filter(|rule| self.operation() != Operation::Delete || rule.traits.on_delete);
        let contexts: Vec<RuleContext> = generate
            .map(|rule| RuleContext {
                rule: rule.name.clone(),
                synchronize: rule.terms.synchronize,
                trigger: trigger.clone(),
                ..RuleContext::default()
            })
            .collect();
        if !contexts.is_empty() {
            let mut request = self.request(info, RequestType::generate(info.key.kind));
            request.spec.rule_context = contexts;
            requests.push(request);
        }
        for rule in info.mutate.iter().filter(|rule| may_match(rule.kinds.as_deref(), &gvk)) {
            let mut request = self.request(info, RequestType::Mutate);
            request.spec.rule = rule.name.clone();
            request.spec.resource = trigger.clone();
            requests.push(request);
        }
        requests
    }

    fn request(&self, info: &PolicyInfo, sort: RequestType) -> UpdateRequest {
        let subject = self.subject();
        let text = |key: &str| subject.str_at(&["metadata", key]).unwrap_or_default();
        let mut admission = Map::new();
        admission.insert("operation", self.operation().as_str());
        admission.insert("uid", text("uid"));
        for (key, object) in [("object", &self.after), ("oldObject", &self.before)] {
            if !object.is_null() {
                admission.insert(key, object.clone());
            }
        }
        for key in ["name", "namespace"] {
            admission.insert(key, text(key));
        }
        let mut request = UpdateRequest::default();
        request.metadata.namespace = "kyverno".into();
        request.spec.request_type = Some(sort);
        request.spec.policy = info.key.to_string().into();
        let asked = &mut request.spec.context.admission_request_info;
        asked.admission_request = admission.into();
        asked.operation = Some(self.operation());
        request
    }
}
