//! References to triggers, and the reviews that they are evaluated in.

use std::fmt;
use std::hash::{Hash, Hasher};

use ephor_engine::matching::Gvk;
use ephor_engine::policy::Operation;
use ephor_engine::review::{Mode, Review};
use ephor_expr::{Map, Str, Value};
use ephor_runtime::decision::AdmissionRequest;
use ephor_runtime::update_request::{ResourceSpec, UpdateRequest};
use rustc_hash::FxHasher;

use super::index::Seen;
use crate::plan::{Claim, ObjectId};

/// Where a trigger is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TriggerRef {
    /// Its API version.
    pub api_version: Str,
    /// Its kind.
    pub kind: Str,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: Str,
    /// Its name; empty if only the UID is known.
    pub name: Str,
    /// Its UID.
    pub uid: Str,
}

impl TriggerRef {
    /// The trigger that is known of the cluster.
    pub fn of_seen(seen: &Seen) -> Self {
        Self {
            api_version: seen.api_version.clone(),
            kind: seen.id.kind.clone(),
            namespace: seen.id.namespace.clone(),
            name: seen.id.name.clone(),
            uid: seen.uid.clone(),
        }
    }

    /// The trigger that a downstream claims.
    pub fn of_claim(claim: &Claim) -> Self {
        Self {
            api_version: claim.trigger_api_version.clone(),
            kind: claim.trigger_kind.clone(),
            namespace: claim.trigger_namespace.clone(),
            name: claim.annotation.as_ref().map(|annotation| annotation.trigger.clone()).unwrap_or_default(),
            uid: claim.owner.trigger.clone(),
        }
    }

    /// The trigger that a request names.
    pub fn of_spec(spec: &ResourceSpec) -> Self {
        Self {
            api_version: spec.api_version.clone(),
            kind: spec.kind.clone(),
            namespace: spec.namespace.clone(),
            name: spec.name.clone(),
            uid: spec.uid.clone(),
        }
    }

    /// Its identity.
    pub fn id(&self) -> ObjectId {
        ObjectId::new(&self.api_version, &self.kind, &self.namespace, &self.name)
    }

    /// The trigger that an object is.
    pub fn of_object(object: &Value) -> Self {
        Self::of_spec(&ResourceSpec::of_object(object))
    }
}

/// Kind, namespace and name; the UID where no name is known.
impl fmt::Display for TriggerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, uid, .. } = self;
        let slash = if namespace.is_empty() { "" } else { "/" };
        let name = if name.is_empty() { uid } else { name };
        write!(f, "{kind} {namespace}{slash}{name}")
    }
}

/// The review of an existing trigger, without a user. It equals that of admission, so that both render the same.
pub fn review_of_existing(object: &Value, operation: Operation, policy_uid: &str, now: jiff::Timestamp) -> Review {
    let mut review = Review::of_object(object.clone(), now);
    review.mode = Mode::Admission;
    review.operation = operation;
    if operation == Operation::Update {
        review.old_object = object.clone();
    }
    // The API server calls a Namespace's own name its namespace.
    if review.gvk.is_namespace() {
        review.namespace = review.name.clone();
    }
    review.attributes = attributes(&review.gvk, &review.name);
    review.seed = seed(policy_uid, object.str_at(&["metadata", "uid"]).unwrap_or_default());
    review
}

fn attributes(gvk: &Gvk, name: &Str) -> Map {
    let kind = Value::from([
        ("group", Value::from(gvk.group.clone())),
        ("version", Value::from(gvk.version.clone())),
        ("kind", Value::from(gvk.kind.clone())),
    ]);
    Map::from_iter([
        (Str::new_static("kind"), kind.clone()),
        (Str::new_static("requestKind"), kind),
        (Str::new_static("name"), Value::from(name.clone())),
    ])
}

/// A seed that is the same for the same things.
pub fn seed(first: &str, second: &str) -> u64 {
    let mut hasher = FxHasher::default();
    (first, second).hash(&mut hasher);
    hasher.finish()
}

/// The admission request in an `UpdateRequest`, if there is one that can be read.
pub fn admission_request(request: &UpdateRequest) -> Option<AdmissionRequest> {
    let info = &request.spec.context.admission_request_info;
    let mut document = info.admission_request.clone();
    if document.str_at(&["operation"]).is_none_or(str::is_empty) {
        let operation = info.operation?;
        document.as_object_mut()?.insert("operation", operation.as_str());
    }
    // Upstream writes what is not there as an empty object.
    let members = document.as_object_mut()?;
    for key in ["object", "oldObject"] {
        if members.get(key).and_then(Value::as_object).is_some_and(Map::is_empty) {
            members.remove(key);
        }
    }
    AdmissionRequest::of_value(&document).ok()
}

/// The review of an admission request about `trigger`, with `object` and `old_object` as they count now. Time and seed
/// are the request's own, so that every try renders the same.
pub fn review_of_request(
    request: &UpdateRequest,
    asked: &AdmissionRequest,
    trigger: &TriggerRef,
    object: Value,
    old_object: Value,
    now: jiff::Timestamp,
) -> Review {
    let gvk = Gvk::new(&trigger.api_version, &trigger.kind);
    let user = (&request.spec.context.user_info).into();
    let made = request.metadata.creation_timestamp.parse().unwrap_or(now);
    let mut review = asked.review(gvk, user, made, seed(&request.metadata.uid, &request.spec.policy));
    review.object = object;
    review.old_object = old_object;
    if review.name.is_empty() {
        review.name = trigger.name.clone();
    }
    if review.namespace.is_empty() {
        review.namespace = if review.gvk.is_namespace() { review.name.clone() } else { trigger.namespace.clone() };
    }
    review
}
