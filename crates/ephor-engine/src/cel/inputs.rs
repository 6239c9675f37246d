//! What expressions read of one request, in the form that Kubernetes gives it.

use std::cell::OnceCell;

use ephor_expr::cel::library::Attributes;
use ephor_expr::cel::{EvalError, Val};
use ephor_expr::jmespath::Runtime as _;
use ephor_expr::{Map, Str, Value};

use crate::fetch::{Fact, Fetch};
use crate::review::{Review, user_value};
use crate::scope::{Answer, World};

/// The values of `object`, `oldObject`, `request` and `namespaceObject` for one review. They are borrowed from it, or
/// made when an expression reads them first.
#[derive(Debug)]
pub struct Inputs<'e> {
    pub(super) review: &'e Review,
    pub(super) world: &'e World<'e>,
    request: OnceCell<Value>,
    request_with_objects: OnceCell<Value>,
    namespace: OnceCell<Value>,
}

impl<'e> Inputs<'e> {
    /// What expressions read of `review`. They ask `world` for the rest.
    pub fn new(review: &'e Review, world: &'e World<'e>) -> Self {
        Self {
            review,
            world,
            request: OnceCell::new(),
            request_with_objects: OnceCell::new(),
            namespace: OnceCell::new(),
        }
    }

    /// The present.
    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.world.now()
    }

    /// `request`.
    pub(super) fn request(&self) -> &Value {
        self.request.get_or_init(|| Value::object(request(self.review)))
    }

    /// `request` of `policies.kyverno.io`, which holds the objects too.
    pub(super) fn request_with_objects(&self) -> &Value {
        self.request_with_objects.get_or_init(|| {
            let mut request = request(self.review);
            request.insert("object", self.review.object.clone());
            request.insert("oldObject", self.review.old_object.clone());
            Value::object(request)
        })
    }

    /// `namespaceObject`: the Namespace of the object, null if it has none.
    pub(super) fn namespace(&self) -> Result<Val<'_>, EvalError> {
        if self.review.namespace.is_empty() || self.review.gvk.is_namespace() {
            return Ok(Val::Null);
        }
        if let Some(known) = self.namespace.get() {
            return Ok(Val::from_json(known));
        }
        let name = &self.review.namespace;
        let found = match self.world.ask(Fetch::Namespace { name: name.clone() }) {
            Answer::Pending => return Err(EvalError::Pending),
            Answer::Known(Fact::Found(found)) => found.clone(),
            Answer::Known(Fact::Missing) => return Err(EvalError::Other(format!("namespaces \"{name}\" not found"))),
            Answer::Known(Fact::NotFound(reason) | Fact::Failed(reason) | Fact::Unavailable(reason)) => {
                return Err(EvalError::Other(format!("namespace `{name}`: {reason}")));
            }
            Answer::Refused(reason) => return Err(EvalError::Other(reason)),
        };
        let found = match &self.review.namespace_labels {
            Some(labels) if found.at(&["metadata", "labels"]).is_none() => with_labels(found, labels),
            _ => found,
        };
        Ok(Val::from_json(self.namespace.get_or_init(|| found)))
    }

    /// `authorizer.requestResource`: the resource of the request.
    pub(crate) fn request_resource(&self) -> Attributes {
        let request = self.request();
        let text = |keys: &[&str]| request.str_at(keys).unwrap_or_default().to_owned();
        Attributes {
            group: text(&["resource", "group"]),
            version: text(&["resource", "version"]),
            resource: text(&["resource", "resource"]),
            subresource: text(&["subResource"]),
            namespace: text(&["namespace"]),
            name: text(&["name"]),
            ..Attributes::default()
        }
    }
}

fn with_labels(mut namespace: Value, labels: &Value) -> Value {
    if let Some(metadata) = namespace.as_object_mut().and_then(|map| map.get_mut("metadata")?.as_object_mut()) {
        metadata.insert("labels", labels.clone());
    }
    namespace
}

/// `request`: what an admission request says, without the objects. Empty members are left out, as in the JSON form that
/// Kubernetes converts.
fn request(review: &Review) -> Map {
    let given = |key: &str| review.attributes.get(key).filter(|value| !value.is_null()).cloned();
    let gvk = &review.gvk;
    let names = |last: &'static str, name: &str| {
        Value::from(
            [("group", gvk.group.as_str()), ("version", gvk.version.as_str()), (last, name)]
                .map(|(key, text)| (key, Value::from(Str::new(text)))),
        )
    };
    let mut request = Map::new();
    request.insert("uid", given("uid").unwrap_or_else(|| Value::from("")));
    let kind = given("kind").unwrap_or_else(|| names("kind", &gvk.kind));
    let resource = given("resource").unwrap_or_else(|| names("resource", &plural(&gvk.kind)));
    request.insert("requestKind", given("requestKind").unwrap_or_else(|| kind.clone()));
    request.insert("requestResource", given("requestResource").unwrap_or_else(|| resource.clone()));
    request.insert("kind", kind);
    request.insert("resource", resource);
    let namespace = if gvk.is_namespace() { &review.name } else { &review.namespace };
    for (key, text) in [
        ("subResource", &review.subresource),
        ("requestSubResource", &review.subresource),
        ("name", &review.name),
        ("namespace", namespace),
    ] {
        if !text.is_empty() {
            request.insert(key, text.clone());
        }
    }
    request.insert("operation", review.operation.as_str());
    request.insert("userInfo", review.user.as_ref().map(user_value).unwrap_or_default());
    request.insert("dryRun", given("dryRun").unwrap_or(Value::Bool(false)));
    request.insert("options", given("options").unwrap_or_default());
    request
}

/// The resource of a kind whose request does not name it, by the rule that Kubernetes guesses by.
pub(crate) fn plural(kind: &str) -> Str {
    let lower = kind.to_lowercase();
    match lower.strip_suffix('y') {
        _ if lower.ends_with("endpoints") => lower.into(),
        _ if lower.ends_with('s') => Str::from(lower + "es"),
        Some(stem) => format!("{stem}ies").into(),
        None => Str::from(lower + "s"),
    }
}
