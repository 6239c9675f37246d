//! Admission requests: the `request` of an `AdmissionReview`, decoded once into shared values.
//!
//! The body is parsed once; `object`, `oldObject` and `options` are subtrees of that one tree, so that everything
//! behind shares them. Upstream's envelope rules: a body that is no review is one error, a review
//! without a request another, and the reply echoes `apiVersion` and `kind`.

use std::collections::BTreeMap;

use ephor_cluster::object::MAX_LEVELS;
use ephor_engine::matching::{Gvk, UserInfo};
use ephor_engine::policy::Operation;
use ephor_engine::review::{Effects, Mode, Review};
use ephor_expr::value::Path;
use ephor_expr::{Map, Str, Value};

use super::proof::Sender;

/// The bytes of a text that the answer repeats, or a log line tells: `apiVersion`, `kind`, `uid`. A UID has 36.
pub const ECHOED: usize = 1 << 10;

/// An `AdmissionReview` as it came.
#[derive(Debug, Clone)]
pub struct AdmissionReview {
    /// The version of the envelope, echoed in the reply.
    pub api_version: Str,
    /// The kind of the envelope, echoed in the reply.
    pub kind: Str,
    /// The request.
    pub request: AdmissionRequest,
}

/// One question of the API server. Cloning copies no object.
#[derive(Debug, Clone)]
pub struct AdmissionRequest {
    /// The id of the request; the reply repeats it.
    pub uid: Str,
    /// The kind of what was sent: of `pods/exec` `PodExecOptions`.
    pub kind: Gvk,
    /// The resource in the URL.
    pub resource: Gvr,
    /// The subresource, for example `exec`; empty for the object itself.
    pub sub_resource: Str,
    /// The kind that the client sent, before the API server converted it for the webhook.
    pub request_kind: Option<Gvk>,
    /// The resource that the client asked for.
    pub request_resource: Option<Gvr>,
    /// The subresource that the client asked for.
    pub request_sub_resource: Str,
    /// The object's name; may be empty on creation with `generateName`.
    pub name: Str,
    /// The object's namespace; empty for cluster-scoped kinds. Of a Namespace its own name.
    pub namespace: Str,
    /// What is done.
    pub operation: Operation,
    /// Who asks; roles are not known to the API server and are filled in later.
    pub user: UserInfo,
    /// The new object; null on DELETE.
    pub object: Value,
    /// The object before; null on CREATE.
    pub old_object: Value,
    /// Whether nothing is to be kept.
    pub dry_run: bool,
    /// `CreateOptions` and the like.
    pub options: Value,
    /// The whole `request`, as it came.
    pub document: Value,
    /// The bytes of the body it came in; 0 if it came in none.
    pub weight: usize,
    /// Who sent it.
    pub sender: Sender,
}

/// Group, version and URL name of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Gvr {
    /// The API group; empty for the core group.
    pub group: Str,
    /// The version.
    pub version: Str,
    /// The name in URLs, for example `pods`.
    pub resource: Str,
}

/// Why a body is no question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The body is not text.
    #[error("the body is not UTF-8")]
    NotText,
    /// The body is not JSON.
    #[error("the body is not JSON: {0}")]
    NotJson(#[from] ephor_expr::value::JsonError),
    /// The body is not a review, or a member has the wrong type.
    #[error("the body is not an AdmissionReview: {path}: expected {expected}")]
    Misfit {
        /// Where.
        path: Path,
        /// What belongs there.
        expected: &'static str,
    },
    /// There is no `request`.
    #[error("the review has no request")]
    NoRequest,
}

impl AdmissionReview {
    /// Reads a body, of which nothing tells who sent it. One that nests deeper than an API server reads is an error,
    /// which callers are to deny.
    pub fn parse(body: &[u8]) -> Result<Self, RequestError> {
        let text = std::str::from_utf8(body).map_err(|_| RequestError::NotText)?;
        let mut review = Self::of_value(&Value::from_json_nested(text, MAX_LEVELS)?)?;
        review.request.weight = body.len();
        review.request.sender = Sender::Unproven;
        Ok(review)
    }

    /// Reads a parsed document.
    pub fn of_value(document: &Value) -> Result<Self, RequestError> {
        let reader = Reader { value: document, path: Path::root() };
        if document.as_object().is_none() {
            return Err(reader.misfit("an object"));
        }
        let request = reader.child("request");
        if request.value.is_null() {
            return Err(RequestError::NoRequest);
        }
        Ok(Self {
            api_version: reader.echoed("apiVersion")?,
            kind: reader.echoed("kind")?,
            request: AdmissionRequest::read(&request)?,
        })
    }
}

impl AdmissionRequest {
    /// Reads a `request` that a host in this process made.
    pub fn of_value(document: &Value) -> Result<Self, RequestError> {
        Self::read(&Reader { value: document, path: Path::root() })
    }

    fn read(reader: &Reader<'_>) -> Result<Self, RequestError> {
        if reader.value.as_object().is_none() {
            return Err(reader.misfit("an object"));
        }
        let operation = Operation::parse(&reader.text("operation")?)
            .ok_or_else(|| reader.child("operation").misfit("CREATE, UPDATE, DELETE or CONNECT"))?;
        Ok(Self {
            uid: reader.echoed("uid")?,
            kind: reader.child("kind").gvk()?.unwrap_or_default(),
            resource: reader.child("resource").gvr()?.unwrap_or_default(),
            sub_resource: reader.text("subResource")?,
            request_kind: reader.child("requestKind").gvk()?,
            request_resource: reader.child("requestResource").gvr()?,
            request_sub_resource: reader.text("requestSubResource")?,
            name: reader.text("name")?,
            namespace: reader.text("namespace")?,
            operation,
            user: reader.child("userInfo").user()?,
            object: reader.object("object")?,
            old_object: reader.object("oldObject")?,
            dry_run: match reader.child("dryRun").value {
                Value::Null => false,
                Value::Bool(dry_run) => *dry_run,
                _ => return Err(reader.child("dryRun").misfit("a boolean")),
            },
            options: reader.object("options")?,
            document: reader.value.clone(),
            weight: 0,
            sender: Sender::ApiServer,
        })
    }

    /// The object that the request is about: the old one on DELETE, else the new one.
    pub fn subject(&self) -> &Value {
        if self.operation == Operation::Delete { &self.old_object } else { &self.object }
    }

    /// The object's namespace; empty for a Namespace, although the API server calls its own name its namespace.
    pub fn object_namespace(&self) -> &Str {
        static NONE: Str = Str::new_static("");
        let of_namespace = self.resource.resource == "namespaces" && self.resource.group.is_empty();
        if of_namespace { &NONE } else { &self.namespace }
    }

    /// The object's name: the request's, else the one in the object (of a `generateName`, once it is chosen).
    pub fn object_name(&self) -> &str {
        if self.name.is_empty() { self.subject().str_at(&["metadata", "name"]).unwrap_or_default() } else { &self.name }
    }

    /// The engine's review of this request. `gvk` is the kind of the resource in the URL (of `pods/exec`: Pod), `user`
    /// the user with the roles that were found.
    pub fn review(&self, gvk: Gvk, user: UserInfo, now: jiff::Timestamp, seed: u64) -> Review {
        Review {
            gvk,
            subresource: self.sub_resource.clone(),
            name: Str::new(self.object_name()),
            namespace: self.object_namespace().clone(),
            operation: self.operation,
            object: self.object.clone(),
            old_object: self.old_object.clone(),
            user: Some(user),
            attributes: self.attributes(),
            namespace_labels: None,
            now,
            seed,
            mode: Mode::Admission,
            effects: if self.dry_run { Effects::DryRun } else { Effects::Real },
            given: None,
        }
    }

    /// Members of `request` that expressions can read besides those that the engine sets itself.
    fn attributes(&self) -> Map {
        let members = self.document.as_object().into_iter().flat_map(Map::iter);
        members
            .filter(|(key, _)| !matches!(key.as_str(), "object" | "oldObject" | "userInfo" | "operation"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}

/// A member of the review and where it stands.
struct Reader<'v> {
    value: &'v Value,
    path: Path,
}

impl<'v> Reader<'v> {
    fn misfit(&self, expected: &'static str) -> RequestError {
        RequestError::Misfit { path: self.path.clone(), expected }
    }

    fn child(&self, key: &'static str) -> Reader<'v> {
        let path = if self.path.is_root() { Path::root().key(key) } else { self.path.key(key) };
        Reader { value: self.value.get(key).unwrap_or(&Value::Null), path }
    }

    /// A text member; missing and null are empty.
    fn text(&self, key: &'static str) -> Result<Str, RequestError> {
        match self.value.get(key) {
            None | Some(Value::Null) => Ok(Str::default()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(self.child(key).misfit("a string")),
        }
    }

    /// A text member that the answer repeats.
    fn echoed(&self, key: &'static str) -> Result<Str, RequestError> {
        let text = self.text(key)?;
        if text.len() > ECHOED { Err(self.child(key).misfit("at most 1024 bytes")) } else { Ok(text) }
    }

    /// An object member or null.
    fn object(&self, key: &'static str) -> Result<Value, RequestError> {
        match self.value.get(key) {
            None | Some(Value::Null) => Ok(Value::Null),
            Some(object @ Value::Object(_)) => Ok(object.clone()),
            Some(_) => Err(self.child(key).misfit("an object")),
        }
    }

    fn is_object(&self) -> Result<bool, RequestError> {
        match self.value {
            Value::Null => Ok(false),
            Value::Object(_) => Ok(true),
            _ => Err(self.misfit("an object")),
        }
    }

    fn gvk(&self) -> Result<Option<Gvk>, RequestError> {
        if !self.is_object()? {
            return Ok(None);
        }
        Ok(Some(Gvk { group: self.text("group")?, version: self.text("version")?, kind: self.text("kind")? }))
    }

    fn gvr(&self) -> Result<Option<Gvr>, RequestError> {
        if !self.is_object()? {
            return Ok(None);
        }
        Ok(Some(Gvr { group: self.text("group")?, version: self.text("version")?, resource: self.text("resource")? }))
    }

    fn texts(&self) -> Result<Vec<Str>, RequestError> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(items) => items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text.clone()),
                    _ => Err(self.misfit("an array of strings")),
                })
                .collect(),
            _ => Err(self.misfit("an array of strings")),
        }
    }

    fn user(&self) -> Result<UserInfo, RequestError> {
        if !self.is_object()? {
            return Ok(UserInfo::default());
        }
        let extra = self.child("extra");
        let mut attributes = BTreeMap::new();
        if extra.is_object()? {
            for (key, value) in extra.value.as_object().into_iter().flat_map(Map::iter) {
                let values = Reader { value, path: extra.path.key(key.clone()) };
                attributes.insert(key.clone(), values.texts()?);
            }
        }
        Ok(UserInfo {
            username: self.text("username")?,
            uid: self.text("uid")?,
            groups: self.child("groups").texts()?,
            extra: attributes,
            roles: Vec::new(),
            cluster_roles: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVIEW: &str = r#"{
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
            "subResource": "scale",
            "requestKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "name": "web", "namespace": "prod", "operation": "UPDATE",
            "userInfo": {"username": "alice", "uid": "7", "groups": ["dev"], "extra": {"scopes": ["a", "b"]}},
            "object": {"spec": {"replicas": 3}}, "oldObject": {"spec": {"replicas": 1}},
            "dryRun": true, "options": {"kind": "UpdateOptions"}
        }
    }"#;

    #[test]
    fn a_review_is_read_with_all_its_members() {
        let review = AdmissionReview::parse(REVIEW.as_bytes()).unwrap();
        assert_eq!((review.api_version.as_str(), review.kind.as_str()), ("admission.k8s.io/v1", "AdmissionReview"));
        let request = review.request;
        assert_eq!(request.kind, Gvk::new("autoscaling/v1", "Scale"));
        assert_eq!(request.resource.resource, "deployments");
        assert_eq!((request.sub_resource.as_str(), request.operation), ("scale", Operation::Update));
        assert_eq!((request.user.username.as_str(), request.user.extra["scopes"].len()), ("alice", 2));
        assert!(request.dry_run && request.request_resource.is_none());

        let gvk = Gvk::new("apps/v1", "Deployment");
        let review = request.review(gvk.clone(), request.user.clone(), jiff::Timestamp::UNIX_EPOCH, 1);
        assert_eq!((review.gvk, review.subresource.as_str()), (gvk, "scale"));
        let keys: Vec<_> = review.attributes.keys().map(Str::as_str).collect();
        assert_eq!(
            keys,
            ["dryRun", "kind", "name", "namespace", "options", "requestKind", "resource", "subResource", "uid"]
        );
        assert_eq!(review.object.at(&["spec", "replicas"]), Some(&Value::Int(3)));
    }

    #[test]
    fn a_body_that_is_no_review_says_why() {
        for (body, error) in [
            ("[]", "the body is not an AdmissionReview: : expected an object"),
            ("{}", "the review has no request"),
            (r#"{"request":null}"#, "the review has no request"),
            (r#"{"request":7}"#, "the body is not an AdmissionReview: request: expected an object"),
            (
                r#"{"request":{"operation":"PATCH"}}"#,
                "the body is not an AdmissionReview: request.operation: expected CREATE, UPDATE, DELETE or CONNECT",
            ),
            (
                r#"{"request":{"operation":"CREATE","userInfo":{"groups":[1]}}}"#,
                "the body is not an AdmissionReview: request.userInfo.groups: expected an array of strings",
            ),
            (
                r#"{"request":{"operation":"CREATE","object":"x"}}"#,
                "the body is not an AdmissionReview: request.object: expected an object",
            ),
        ] {
            assert_eq!(AdmissionReview::parse(body.as_bytes()).unwrap_err().to_string(), error, "{body}");
        }
        assert!(matches!(AdmissionReview::parse(b"{"), Err(RequestError::NotJson(_))));
        assert_eq!(AdmissionReview::parse(b"\xff").unwrap_err(), RequestError::NotText);
    }
}
