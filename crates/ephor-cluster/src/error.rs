//! What a cluster refuses, in the words of the API server.
//!
//! A failure is a Kubernetes `Status`: code, reason, message, details. Implementations for real clusters pass on
//! what they were answered ([`ClusterError::from_status`]); the in-memory one words its refusals alike, because
//! the messages end up in rule results.

use ephor_expr::{Map, Str, Value};

pub use crate::cause::Cause;
use crate::resource::Resource;

/// Why a cluster did not do what it was asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .0.message)]
pub struct ClusterError(Box<Status>);

#[derive(Debug, Clone, PartialEq)]
struct Status {
    kind: ErrorKind,
    code: u16,
    reason: Str,
    message: String,
    details: Option<Value>,
}

/// What a caller can do about a [`ClusterError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The object, kind or path does not exist.
    NotFound,
    /// An object of that name exists already.
    AlreadyExists,
    /// The object changed since it was read, or is not the one that was meant: read again and retry.
    Conflict,
    /// The request or the object in it is wrong; the same request will fail again.
    Invalid,
    /// The cluster does not allow it.
    Forbidden,
    /// The asked-for state is no longer known: list again.
    Gone,
    /// The cluster does not know how to do that.
    Unsupported,
    /// The cluster cannot answer now: try the same again later.
    Transient,
}

impl ClusterError {
    fn new(kind: ErrorKind, code: u16, reason: &str, message: String, details: Option<Value>) -> Self {
        Self(Box::new(Status { kind, code, reason: Str::new(reason), message, details }))
    }

    /// There is no such object.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified_plural());
        Self::new(ErrorKind::NotFound, 404, "NotFound", message, details(resource, name))
    }

    /// The server serves nothing at that path.
    pub fn no_such_path() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::new(ErrorKind::NotFound, 404, "NotFound", message, Some(Value::object(Map::new())))
    }

    /// The server knows no such kind.
    pub fn no_such_kind(api_version: &str, kind: &str) -> Self {
        let message = format!("no matches for kind {kind:?} in version {api_version:?}");
        Self::new(ErrorKind::NotFound, 404, "NotFound", message, None)
    }

    /// There is an object of that name.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified_plural());
        Self::new(ErrorKind::AlreadyExists, 409, "AlreadyExists", message, details(resource, name))
    }

    /// The object is not in the state that the caller takes for granted.
    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified_plural());
        Self::new(ErrorKind::Conflict, 409, "Conflict", message, details(resource, name))
    }

    /// The object was changed since the caller read it.
    pub fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// The object breaks the rules of its kind.
    pub fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        let listed = match causes {
            [] => String::new(),
            [one] => format!(": {one}"),
            more => {
                let texts: Vec<_> = more.iter().map(Cause::to_string).collect();
                format!(": [{}]", texts.join(", "))
            }
        };
        let message = format!("{} {name:?} is invalid{listed}", resource.qualified_kind());
        let causes: Vec<Value> = causes.iter().map(Cause::value).collect();
        let mut detail = names(&resource.group, &resource.kind, name);
        if !causes.is_empty() {
            detail.insert("causes", causes);
        }
        Self::new(ErrorKind::Invalid, 422, "Invalid", message, Some(Value::object(detail)))
    }

    /// The request itself makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, 400, "BadRequest", message.into(), None)
    }

    /// The patch does not fit the object.
    pub fn unprocessable(why: impl Into<String>) -> Self {
        let cause =
            Value::from([("message", Value::from(why.into())), ("reason", Value::from("UnexpectedServerResponse"))]);
        let details = Value::from([("causes", Value::array(vec![cause]))]);
        let message = "the server rejected our request due to an error in our request".to_owned();
        Self::new(ErrorKind::Invalid, 422, "Invalid", message, Some(details))
    }

    /// Options that the server cannot work with.
    pub fn invalid_options(kind: &str, causes: &[Cause]) -> Self {
        let kind = Resource::guess("meta.k8s.io/v1", kind);
        Self::invalid(&kind, "", causes)
    }

    /// A server-side apply conflicts with other field managers.
    pub fn apply_conflict(message: &str, causes: &[Cause]) -> Self {
        let details = Value::from([("causes", Value::array(causes.iter().map(Cause::value).collect()))]);
        Self::new(ErrorKind::Conflict, 409, "Conflict", message.to_owned(), Some(details))
    }

    /// Admission refused the write: the code and the whole message are its own.
    pub fn denied(code: u16, reason: &str, message: impl Into<String>) -> Self {
        let kind = match code {
            404 => ErrorKind::NotFound,
            409 => ErrorKind::Conflict,
            401 | 403 => ErrorKind::Forbidden,
            500.. => ErrorKind::Transient,
            _ => ErrorKind::Invalid,
        };
        Self::new(kind, code, reason, message.into(), None)
    }

    /// The sandbox, or an offline host, has nothing that could do this.
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, 501, "NotImplemented", message.into(), None)
    }

    /// The cluster does not allow it.
    pub fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", resource.qualified_plural());
        Self::new(ErrorKind::Forbidden, 403, "Forbidden", message, details(resource, name))
    }

    /// A policy of the cluster does not allow it, for a reason that the policy may name; else it is `Invalid`.
    pub fn denied_for(resource: &Resource, name: &str, why: &str, reason: Option<&str>) -> Self {
        let (kind, code, reason) = match reason {
            Some("Unauthorized") => (ErrorKind::Forbidden, 401, "Unauthorized"),
            Some("Forbidden") => (ErrorKind::Forbidden, 403, "Forbidden"),
            Some("RequestEntityTooLarge") => (ErrorKind::Invalid, 413, "RequestEntityTooLarge"),
            _ => (ErrorKind::Invalid, 422, "Invalid"),
        };
        let message = format!("{} {name:?} is forbidden: {why}", resource.qualified_plural());
        let mut details = names(&resource.group, &resource.plural, name);
        details.insert("causes", vec![Value::from([("message", Value::from(why))])]);
        Self::new(kind, code, reason, message, Some(Value::object(details)))
    }

    /// A `MutatingAdmissionPolicy` fails: the message is `why` alone, and the code 403 whatever the reason is.
    pub fn refused_by_policy(resource: &Resource, name: &str, why: String, reason: &'static str) -> Self {
        let mut details = names(&resource.group, &resource.plural, name);
        details.insert("causes", vec![Value::from([("message", Value::from(why.as_str()))])]);
        Self::new(ErrorKind::Forbidden, 403, reason, why, Some(Value::object(details)))
    }

    /// The state that was asked for is forgotten.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Gone, 410, "Expired", message.into(), None)
    }

    /// The resource has no such action.
    pub fn method_not_supported(resource: &Resource, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {:?}", resource.qualified_plural());
        Self::new(ErrorKind::Unsupported, 405, "MethodNotAllowed", message, details(resource, ""))
    }

    /// The path has no such method.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self::new(ErrorKind::Unsupported, 405, "MethodNotAllowed", message, None)
    }

    /// The body is of a form that the cluster cannot read.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, 415, "UnsupportedMediaType", message.into(), None)
    }

    /// The cluster cannot answer now.
    pub fn timeout(message: &str) -> Self {
        Self::new(ErrorKind::Transient, 504, "Timeout", format!("Timeout: {message}"), None)
    }

    /// The cluster cannot be reached.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Transient, 503, "ServiceUnavailable", message.into(), None)
    }

    /// Reads a Kubernetes `Status` with which a server refused; `code` is that of the HTTP answer and counts when
    /// the document has none.
    pub fn from_status(status: &Value, code: u16) -> Self {
        let code = status.get("code").and_then(Value::as_i64).and_then(|c| u16::try_from(c).ok()).unwrap_or(code);
        let reason = status.str_at(&["reason"]).unwrap_or_default();
        let kind = match (code, reason) {
            (404, _) => ErrorKind::NotFound,
            (409, "AlreadyExists") => ErrorKind::AlreadyExists,
            (409, _) => ErrorKind::Conflict,
            (401 | 403, _) => ErrorKind::Forbidden,
            (410, _) => ErrorKind::Gone,
            (405 | 406 | 415 | 501, _) => ErrorKind::Unsupported,
            (429 | 500.., _) => ErrorKind::Transient,
            _ => ErrorKind::Invalid,
        };
        let message = status.str_at(&["message"]).map_or_else(
            || format!("the server responded with the status code {code} but did not return more information"),
            str::to_owned,
        );
        Self::new(kind, code, reason, message, status.get("details").cloned())
    }

    /// What a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The HTTP status code that goes with it.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// The machine-readable reason, for example `NotFound` or `Expired`.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The Kubernetes `Status` document, as an API server answers it.
    pub fn status(&self) -> Value {
        let mut status = Map::from_iter([
            (Str::new("apiVersion"), Value::from("v1")),
            (Str::new("code"), Value::from(i64::from(self.0.code))),
            (Str::new("kind"), Value::from("Status")),
            (Str::new("message"), Value::from(self.0.message.as_str())),
            (Str::new("metadata"), Value::object(Map::new())),
            (Str::new("reason"), Value::from(self.0.reason.clone())),
            (Str::new("status"), Value::from("Failure")),
        ]);
        if let Some(details) = &self.0.details {
            status.insert("details", details.clone());
        }
        Value::object(status)
    }
}

/// `details` of most refusals: the object's group, plural and name.
#[expect(clippy::unnecessary_wraps, reason = "spares every caller the `Some`")]
fn details(resource: &Resource, name: &str) -> Option<Value> {
    Some(Value::object(names(&resource.group, &resource.plural, name)))
}

fn names(group: &str, kind: &str, name: &str) -> Map {
    [("group", group), ("kind", kind), ("name", name)]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(key, text)| (Str::new(key), Value::from(text)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::Discovery;

    #[test]
    fn refusals_use_the_words_of_the_api_server() {
        let discovery = Discovery::kubernetes();
        let config_map = discovery.find("v1", "ConfigMap").unwrap();
        let deployment = discovery.find("apps/v1", "Deployment").unwrap();
        let causes = [Cause::required("metadata.name", "name or generateName is required")];
        let two = [Cause::invalid("a", "x\"", "no"), Cause::forbidden("b", "never")];
        for (error, kind, code, message) in [
            (ClusterError::not_found(config_map, "x"), ErrorKind::NotFound, 404, r#"configmaps "x" not found"#),
            (ClusterError::not_found(deployment, "x"), ErrorKind::NotFound, 404, r#"deployments.apps "x" not found"#),
            (
                ClusterError::already_exists(deployment, "x"),
                ErrorKind::AlreadyExists,
                409,
                r#"deployments.apps "x" already exists"#,
            ),
            (
                ClusterError::modified(config_map, "x"),
                ErrorKind::Conflict,
                409,
                r#"Operation cannot be fulfilled on configmaps "x": the object has been modified; please apply your changes to the latest version and try again"#,
            ),
            (
                ClusterError::invalid(config_map, "", &causes),
                ErrorKind::Invalid,
                422,
                r#"ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required"#,
            ),
            (
                ClusterError::invalid(deployment, "x", &two),
                ErrorKind::Invalid,
                422,
                r#"Deployment.apps "x" is invalid: [a: Invalid value: "x\"": no, b: Forbidden: never]"#,
            ),
            (
                ClusterError::no_such_kind("g/v1", "K"),
                ErrorKind::NotFound,
                404,
                r#"no matches for kind "K" in version "g/v1""#,
            ),
        ] {
            assert_eq!((error.kind(), error.code(), error.to_string().as_str()), (kind, code, message));
        }
    }

    #[test]
    fn a_status_document_survives_the_way_there_and_back() {
        let discovery = Discovery::kubernetes();
        let resource = discovery.find("apps/v1", "Deployment").unwrap();
        let error = ClusterError::already_exists(resource, "web");
        assert_eq!(
            error.status().to_json(),
            r#"{"apiVersion":"v1","code":409,"details":{"group":"apps","kind":"deployments","name":"web"},"kind":"Status","message":"deployments.apps \"web\" already exists","metadata":{},"reason":"AlreadyExists","status":"Failure"}"#
        );
        assert_eq!(ClusterError::from_status(&error.status(), 500), error);
    }

    #[test]
    fn an_answer_without_status_is_judged_by_its_code() {
        for (code, kind) in [
            (403, ErrorKind::Forbidden),
            (410, ErrorKind::Gone),
            (429, ErrorKind::Transient),
            (503, ErrorKind::Transient),
            (415, ErrorKind::Unsupported),
            (400, ErrorKind::Invalid),
        ] {
            assert_eq!(ClusterError::from_status(&Value::Null, code).kind(), kind, "{code}");
        }
    }
}
