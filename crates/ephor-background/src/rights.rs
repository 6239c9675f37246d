//! Checks that the user of a request has the permission for what the request says.
//!
//! The admission port answers every client unless client certificates are required, so an `UpdateRequest` may stem from
//! a review that no API server sent, in the name of a user who never asked. Before a request is carried out, the API
//! server is asked whether that user may do it at all (`SubjectAccessReview`); whether it was done is what the live
//! trigger tells ([`ReconcileContext::find_after`]). What follows from watches needs neither.
//!
//! This is no proof of who asked. The groups are those of the review, and the API server takes them as true: a caller
//! that claims a group with the right passes. Only client certificates on the admission port refuse such a review.

use std::collections::BTreeMap;

use ephor_engine::policy::Operation;
use ephor_expr::{Map, Str, Value};
use ephor_runtime::decision::AdmissionRequest;
use ephor_runtime::queue::Moment;
use ephor_runtime::update_request::{AuthenticatedUser, UpdateRequest};

use super::reconcile::{ReconcileContext, ReconcileError};
use super::trigger::admission_request;

/// How long a right that was found counts, in milliseconds: bursts of requests of one user ask once.
const CACHE_TTL: Moment = 10_000;
/// How many rights are remembered.
const MOST: usize = 1_000;

/// Rights that were found lately, by the question.
#[derive(Debug, Default)]
pub struct Rights(BTreeMap<String, Moment>);

impl Rights {
    fn has(&self, question: &str, now: Moment) -> bool {
        self.0.get(question).is_some_and(|since| now.saturating_sub(*since) < CACHE_TTL)
    }

    fn add(&mut self, question: String, now: Moment) {
        if self.0.len() >= MOST {
            self.0.retain(|_, since| now.saturating_sub(*since) < CACHE_TTL);
        }
        if self.0.len() < MOST {
            self.0.insert(question, now);
        }
    }
}

impl ReconcileContext<'_> {
    /// Whether the user of a request may do what it says. A request that no user stands behind was made by a policy,
    /// and says nothing about users that a rule could go by.
    pub(super) fn is_permitted(&self, request: &UpdateRequest) -> Result<bool, ReconcileError> {
        let Some(admission) = admission_request(request) else { return Ok(true) };
        let user = &request.spec.context.user_info.user_info;
        if user.username.is_empty() && user.groups.is_empty() {
            return Ok(true);
        }
        // Most rights are not about one object, and asked without its name they cover the next request too.
        let name = if admission.operation == Operation::Create { "" } else { admission.object_name() };
        let names = if name.is_empty() { &[""][..] } else { &["", name] };
        for name in names {
            for verb in verbs(admission.operation) {
                if self.may(question(user, &admission, verb, name))? {
                    return Ok(true);
                }
            }
        }
        tracing::warn!(
            request = %request.metadata.name,
            user = %user.username,
            operation = admission.operation.as_str(),
            resource = %admission.resource.resource,
            sub_resource = %admission.sub_resource,
            namespace = %admission.namespace,
            name,
            "a request is dropped: its user has no right to what it says was done"
        );
        Ok(false)
    }

    fn may(&self, question: Value) -> Result<bool, ReconcileError> {
        let key = question.to_json();
        if self.lock().rights.has(&key, self.now) {
            return Ok(true);
        }
        let allowed = self.env.is_allowed(question)?;
        if allowed {
            self.lock().rights.add(key, self.now);
        }
        Ok(allowed)
    }
}

/// The verbs of requests that an API server admits as this operation: one of them is enough.
fn verbs(operation: Operation) -> &'static [&'static str] {
    match operation {
        Operation::Create => &["create"],
        Operation::Update => &["update", "patch"],
        Operation::Delete => &["delete", "deletecollection"],
        Operation::Connect => &["create", "get", "update", "patch", "delete"],
    }
}

/// The review that asks: about the resource that the client named, as the API server's authorizer saw it.
fn question(user: &AuthenticatedUser, admission: &AdmissionRequest, verb: &str, name: &str) -> Value {
    let (resource, subresource) = match &admission.request_resource {
        Some(resource) => (resource, &admission.request_sub_resource),
        None => (&admission.resource, &admission.sub_resource),
    };
    // The right to create a Namespace is no right inside of it, although admission calls its name its namespace.
    let creates_namespace = admission.operation == Operation::Create && subresource.is_empty();
    let namespace = if creates_namespace { admission.object_namespace() } else { &admission.namespace };
    let mut attributes = Map::new();
    for (key, text) in [
        ("group", resource.group.as_str()),
        ("name", name),
        ("namespace", namespace),
        ("resource", &resource.resource),
        ("subresource", subresource),
        ("verb", verb),
        ("version", &resource.version),
    ] {
        if !text.is_empty() {
            attributes.insert(key, text);
        }
    }
    let mut spec = Map::new();
    spec.insert("resourceAttributes", attributes);
    spec.insert("user", user.username.clone());
    spec.insert("groups", user.groups.clone());
    if !user.uid.is_empty() {
        spec.insert("uid", user.uid.clone());
    }
    if !user.extra.is_empty() {
        let extra: Map = user.extra.iter().map(|(key, values)| (key.clone(), Value::from(values.clone()))).collect();
        spec.insert("extra", extra);
    }
    Value::from([
        (Str::new_static("apiVersion"), Value::from("authorization.k8s.io/v1")),
        (Str::new_static("kind"), Value::from("SubjectAccessReview")),
        (Str::new_static("spec"), spec.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &str) -> String {
        let admission = AdmissionRequest::of_value(&Value::from_json(request).unwrap()).unwrap();
        let user = AuthenticatedUser { username: "ann".into(), groups: vec!["dev".into()], ..Default::default() };
        let verb = verbs(admission.operation)[0];
        let question = question(&user, &admission, verb, admission.object_name());
        question.at(&["spec", "resourceAttributes"]).unwrap().to_json()
    }

    #[test]
    fn the_question_is_what_the_authorizer_was_asked() {
        for (request, want) in [
            (
                r#"{"operation":"DELETE","namespace":"a","name":"p","resource":{"group":"","version":"v1","resource":"pods"}}"#,
                r#"{"name":"p","namespace":"a","resource":"pods","verb":"delete","version":"v1"}"#,
            ),
            (
                r#"{"operation":"CREATE","namespace":"n","name":"n","resource":{"version":"v1","resource":"namespaces"}}"#,
                r#"{"name":"n","resource":"namespaces","verb":"create","version":"v1"}"#,
            ),
            (
                r#"{"operation":"UPDATE","namespace":"n","name":"n","resource":{"version":"v1","resource":"namespaces"}}"#,
                r#"{"name":"n","namespace":"n","resource":"namespaces","verb":"update","version":"v1"}"#,
            ),
            (
                r#"{"operation":"CONNECT","namespace":"a","name":"p","subResource":"exec",
                    "resource":{"version":"v1","resource":"pods"}}"#,
                r#"{"name":"p","namespace":"a","resource":"pods","subresource":"exec","verb":"create","version":"v1"}"#,
            ),
            (
                r#"{"operation":"UPDATE","namespace":"a","name":"d","resource":{"group":"apps","version":"v1","resource":"deployments"},
                    "requestResource":{"group":"extensions","version":"v1beta1","resource":"deployments"}}"#,
                r#"{"group":"extensions","name":"d","namespace":"a","resource":"deployments","verb":"update","version":"v1beta1"}"#,
            ),
        ] {
            assert_eq!(asked(request), want, "{request}");
        }
    }

    #[test]
    fn rights_are_remembered_for_a_while_and_not_without_end() {
        let mut rights = Rights::default();
        for i in 0..2 * MOST {
            rights.add(i.to_string(), 0);
        }
        assert_eq!(rights.0.len(), MOST);
        assert!(rights.has("0", CACHE_TTL - 1) && !rights.has("0", CACHE_TTL));
        rights.add("new".to_owned(), CACHE_TTL);
        assert_eq!(rights.0.len(), 1);
    }
}
