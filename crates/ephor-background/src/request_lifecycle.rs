//! The end of an `UpdateRequest`: its status is written, then it is deleted, or kept if a rule needs its data later.

use ephor_cluster::{DeleteOptions, ErrorKind, Resource};
use ephor_expr::{Map, Str, Value};
use ephor_runtime::content::set_entry;
use ephor_runtime::queue::Settled;
use ephor_runtime::update_request::{
    API_VERSION, AuthenticatedUser, KIND, LABEL_GIVEN_UP, LABEL_KEPT, RequestContext, State, UpdateRequest,
    UpdateRequestStatus,
};

use super::reconcile::{Lookup, ReconcileContext};
use super::requests::trigger_key;
use super::state::{GivenUp, Kept, LOOK_FOR_TRIGGER, Subject};
use super::trigger::admission_request;
use super::writer::WriteError;

impl ReconcileContext<'_> {
    /// Writes state, message and generated resources to a request's status in one write.
    pub(super) fn write_status(&self, object: &Value, status: &UpdateRequestStatus) -> Settled {
        let Ok(encoded) = ephor_expr::value::encode(status) else { return Settled::Done };
        if object.get("status").is_some_and(|known| *known == encoded) {
            return Settled::Done;
        }
        let mut after = object.clone();
        if let Some(members) = after.as_object_mut() {
            members.insert("status", encoded);
        }
        let result = self.requests_resource().and_then(|resource| self.env.records().update_status(&resource, after));
        self.settle_write(object, result)
    }

    /// Marks a request as given up. It stays as `Failed`, without what only a further try would read.
    pub(super) fn give_up(&self, object: &Value, request: &UpdateRequest) -> Settled {
        let mut short = request.clone();
        let context = &request.spec.context;
        let info = &context.admission_request_info;
        let username = context.user_info.user_info.username.clone();
        short.spec.context = RequestContext::default();
        short.spec.context.user_info.user_info = AuthenticatedUser { username, ..AuthenticatedUser::default() };
        short.spec.context.admission_request_info.operation =
            info.operation.or_else(|| admission_request(request).map(|admission| admission.operation));
        let Ok(short) = short.to_value() else { return Settled::Done };
        let mut after = object.clone();
        if let (Some(members), Some(spec)) = (after.as_object_mut(), short.get("spec")) {
            members.insert("spec", spec.clone());
        }
        set_entry(&mut after, "labels", LABEL_GIVEN_UP, Some("true"));
        let result = self.requests_resource().and_then(|resource| self.env.records().update(&resource, after));
        self.settle_write(object, result)
    }

    fn settle_write(&self, object: &Value, result: Result<Value, WriteError>) -> Settled {
        match result {
            Ok(stored) => {
                self.lock().request_seen(stored, self.now);
                Settled::Done
            }
            Err(WriteError::Lost(_)) => Settled::Done,
            // The watch brings the newer one.
            Err(error) if error.is(ErrorKind::NotFound) => {
                let name = Str::new(object.str_at(&["metadata", "name"]).unwrap_or_default());
                self.lock().requests.remove_pending(&name);
                Settled::Done
            }
            Err(error) if error.is(ErrorKind::Conflict) => {
                self.refresh(object);
                Settled::Later(100)
            }
            Err(_) => Settled::Failed,
        }
    }

    fn refresh(&self, object: &Value) {
        let name = object.str_at(&["metadata", "name"]).unwrap_or_default();
        let read = self
            .requests_resource()
            .and_then(|resource| Ok(self.env.get(&resource, Some(&self.env.namespace), name)?));
        match read {
            Ok(object) => self.lock().request_seen(object, self.now),
            Err(error) if error.is(ErrorKind::NotFound) => {
                self.lock().requests.remove_pending(name);
            }
            Err(_) => {}
        }
    }

    /// Deletes a finished request, or keeps it for rules that need its data to be evaluated.
    pub fn collect(&self, name: &Str) -> Settled {
        let (kept, finished, needed) = {
            let state = self.lock();
            if let Some(request) = state.requests.given_up(name).cloned() {
                drop(state);
                return self.collect_given_up(name, &request);
            }
            let finished = state.requests.finished(name).map(|finished| finished.uid.clone());
            (state.requests.kept(name).cloned(), finished, state.contexts.needs(name))
        };
        match (kept, finished) {
            (Some(kept), _) if needed && kept.says_failed => self.settle_kept(name),
            (Some(_), _) if needed => Settled::Done,
            (None, Some(_)) if needed => self.keep(name),
            (Some(Kept { uid, .. }), _) | (None, Some(uid)) => self.delete_request(name, &uid),
            (None, None) => Settled::Done,
        }
    }

    /// A kept request that says it failed says that it is done, unless its work fails again by now.
    fn settle_kept(&self, name: &Str) -> Settled {
        let read = self
            .requests_resource()
            .and_then(|resource| Ok(self.env.get(&resource, Some(&self.env.namespace), name)?));
        let object = match read {
            Ok(object) => object,
            Err(error) if error.is(ErrorKind::NotFound) => return Settled::Done,
            Err(_) => return Settled::Failed,
        };
        let Ok(request) = UpdateRequest::from_value(&object) else { return Settled::Done };
        let fails = {
            let failing = self.lock().failing(&request.policy_id());
            let triggers = request.spec.rule_context.iter().map(|context| trigger_key(&context.trigger));
            triggers.map(Subject::Trigger).any(|subject| failing.contains_key(&subject))
        };
        if fails || request.state() != State::Failed {
            return Settled::Done;
        }
        let retry_count = request.status.map_or(0, |status| status.retry_count);
        let status = UpdateRequestStatus { state: State::Completed, retry_count, ..UpdateRequestStatus::default() };
        self.write_status(&object, &status)
    }

    /// Takes a request away that was given up, once there is nothing left that it could be about.
    fn collect_given_up(&self, name: &Str, request: &GivenUp) -> Settled {
        let is_gone = |trigger| matches!(self.find(trigger), Ok(Lookup::Gone));
        let has_policy = self.lock().snapshot.policies.contains_key(&request.policy);
        let mut triggers = request.needed_triggers().peekable();
        let moot = !has_policy || triggers.peek().is_some() && triggers.all(is_gone);
        if moot || request.is_over(self.now) {
            return self.delete_request(name, &request.uid);
        }
        Settled::Later(LOOK_FOR_TRIGGER)
    }

    /// Labels a request as kept and drops data that no rule reads.
    pub(super) fn keep(&self, name: &Str) -> Settled {
        let result = self.requests_resource().and_then(|resource| {
            let mut object = self.env.get(&resource, Some(&self.env.namespace), name)?;
            set_entry(&mut object, "labels", LABEL_KEPT, Some("true"));
            // The object is read again when it counts.
            shorten(&mut object, "object");
            if !self.reads_old(&object) {
                shorten(&mut object, "oldObject");
            }
            self.env.records().update(&resource, object)
        });
        match result {
            Ok(stored) => {
                self.lock().request_seen(stored, self.now);
                Settled::Done
            }
            Err(WriteError::Lost(_)) => Settled::Done,
            Err(error) if error.is(ErrorKind::NotFound) => {
                let uid = self.lock().requests.uid(name).unwrap_or_default();
                self.deleted(name, &uid, Ok(()))
            }
            Err(error) if error.is(ErrorKind::Conflict) => Settled::Later(100),
            Err(_) => Settled::Failed,
        }
    }

    /// Whether a rule that a request is about looks at what was before, as far as is known.
    fn reads_old(&self, object: &Value) -> bool {
        let Ok(request) = UpdateRequest::from_value(object) else { return true };
        let info = self.lock().infos.get(&request.policy_id()).cloned();
        let mut rules = request.spec.rule_context.iter().map(|context| &context.rule);
        info.is_none_or(|info| rules.any(|rule| info.rule(rule).is_none_or(|rule| rule.traits.reads_old)))
    }

    /// Takes a request away that says nothing which was not done.
    pub(super) fn delete_done(&self, name: &Str, object: &Value) -> Settled {
        let text = |key: &str| Str::new(object.str_at(&["metadata", key]).unwrap_or_default());
        let (uid, resource_version) = (text("uid"), text("resourceVersion"));
        match self.try_delete(name, &DeleteOptions { uid, resource_version, ..DeleteOptions::default() }) {
            Err(error) if error.is(ErrorKind::Conflict) => {
                // It says something else now, or is another one.
                self.refresh(object);
                Settled::Later(100)
            }
            result => self.deleted(name, &text("uid"), result),
        }
    }

    fn delete_request(&self, name: &Str, uid: &Str) -> Settled {
        let result = self.try_delete(name, &DeleteOptions { uid: uid.clone(), ..DeleteOptions::default() });
        self.deleted(name, uid, result)
    }

    fn try_delete(&self, name: &Str, options: &DeleteOptions) -> Result<(), WriteError> {
        let resource = self.requests_resource()?;
        self.env.records().delete(&resource, name, options)
    }

    fn deleted(&self, name: &Str, uid: &Str, result: Result<(), WriteError>) -> Settled {
        match result {
            Ok(()) => {}
            Err(WriteError::Lost(_)) => return Settled::Done,
            // Gone, or another one of that name: not ours to take away.
            Err(error) if error.is(ErrorKind::NotFound) || error.is(ErrorKind::Conflict) => {}
            Err(_) => return Settled::Failed,
        }
        self.lock().request_taken(name, uid, self.now);
        Settled::Done
    }

    fn requests_resource(&self) -> Result<Resource, WriteError> {
        Ok(self.env.resource(API_VERSION, KIND)?)
    }
}

/// Leaves of an object of the request (`object`, `oldObject`) what tells it and its place among others: names and
/// version.
fn shorten(request: &mut Value, which: &'static str) {
    let path = ["spec", "context", "admissionRequestInfo", "admissionRequest"];
    let asked = path.iter().try_fold(request, |value, key| value.as_object_mut()?.get_mut(key));
    let Some(members) = asked.and_then(Value::as_object_mut) else { return };
    let Some(object) = members.get(which).filter(|object| object.get("metadata").is_some()) else { return };
    let part = |object: &Value, keys: &[&'static str]| -> Map {
        keys.iter().filter_map(|key| Some((Str::new_static(key), object.get(key)?.clone()))).collect()
    };
    let metadata = object.get("metadata").map(|m| part(m, &["name", "namespace", "uid", "resourceVersion"]));
    let mut short = part(object, &["apiVersion", "kind"]);
    short.insert("metadata", Value::from(metadata.unwrap_or_default()));
    members.insert(which, Value::from(short));
}
