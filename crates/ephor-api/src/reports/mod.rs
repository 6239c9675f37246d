//! The extension API server of policy reports: answers requests out of [`ServedReports`].
//!
//! Reports can only be read. A request to write is refused before its body is read, so no body is read at all. An
//! [`Access`] decides on each request before anything is looked up; only the probes of the kubelet are open to all.

mod list;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use ephor_cluster::raw::{self, RawRequest, Target};
use ephor_cluster::{Cluster, ClusterError, Resource};
use ephor_expr::{Str, Value};
use ephor_reports::served::ServedReports;
use ephor_runtime::CancellationToken;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::list::PagedList;
use crate::column::Column;
use crate::openapi;
use crate::reply::{Form, Reply, form, shaped};
use crate::table::{self, TableColumns};
use crate::watch::{self, WatchParameters};

/// What a request wants to do, as `SubjectAccessReview` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Attributes {
    /// Read reports.
    Resource {
        /// `get`, `list` or `watch`, or the verb of a write.
        verb: &'static str,
        /// The group.
        group: Str,
        /// The version.
        version: Str,
        /// The plural.
        resource: Str,
        /// The namespace; empty for all.
        namespace: Str,
        /// The name; empty for all.
        name: Str,
    },
    /// Any other path: discovery and documents.
    Path {
        /// The verb: the method in lower case.
        verb: &'static str,
        /// The path.
        path: Str,
    },
}

/// Decides who may make a request.
pub trait Access: Send + Sync + 'static {
    /// Refuses a request that its sender may not make. May wait for the cluster.
    fn check(&self, request: &Parts, attributes: &Attributes) -> Result<(), ClusterError>;
}

/// How much is done at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Requests in work that are no watches. Others are answered 429.
    pub requests: usize,
    /// Watches. Each is a thread.
    pub watches: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: 64, watches: 500 }
    }
}

struct Served {
    reports: ServedReports,
    access: Arc<dyn Access>,
    is_ready: Box<dyn Fn() -> bool + Send + Sync>,
    requests: Arc<Semaphore>,
    watches: Arc<Semaphore>,
    stop: CancellationToken,
}

/// The API. Until `is_ready`, reports are not served: a list that lacks some would be taken for the whole. `stop` ends
/// the watches.
pub fn router(
    reports: ServedReports,
    access: Arc<dyn Access>,
    is_ready: impl Fn() -> bool + Send + Sync + 'static,
    limits: Limits,
    stop: &CancellationToken,
) -> Router {
    Router::new().fallback(handle).with_state(Arc::new(Served {
        reports,
        access,
        is_ready: Box::new(is_ready),
        requests: Arc::new(Semaphore::new(limits.requests)),
        watches: Arc::new(Semaphore::new(limits.watches)),
        stop: stop.clone(),
    }))
}

async fn handle(State(served): State<Arc<Served>>, request: Request) -> Response<Body> {
    // The body is dropped unread.
    let (parts, _) = request.into_parts();
    let overloaded = || Reply::error(&ClusterError::denied(429, "TooManyRequests", "too many requests"));
    let Ok(permit) = Arc::clone(&served.requests).try_acquire_owned() else { return overloaded().into_response() };
    let answered = tokio::task::spawn_blocking(move || {
        // The panic hook has logged where.
        catch_unwind(AssertUnwindSafe(|| served.respond(&parts, permit))).unwrap_or_else(|_| {
            Ok(Reply::error(&ClusterError::denied(500, "InternalError", "internal error")).into_response())
        })
    });
    match answered.await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => Reply::error(&error).into_response(),
        Err(_) => Reply::error(&ClusterError::denied(500, "InternalError", "internal error")).into_response(),
    }
}

impl Served {
    fn respond(&self, parts: &Parts, permit: OwnedSemaphorePermit) -> Result<Response<Body>, ClusterError> {
        let path = parts.uri.path();
        match path {
            "/healthz" | "/livez" | "/health/liveness" => return Ok(Reply::text("ok").into_response()),
            "/readyz" | "/health/readiness" => {
                let ready = (self.is_ready)();
                return if ready { Ok(Reply::text("ok").into_response()) } else { Err(not_ready()) };
            }
            _ => {}
        }
        let discovery = self.reports.discovery()?;
        let target = raw::target(&discovery, path);
        let watched = WatchParameters::of(&self.reports, parts);
        let wants_watch = matches!(watched, Ok(Some(_)));
        self.access.check(parts, &attributes(parts, target.as_ref(), wants_watch))?;
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(match target {
                Some(target) => ClusterError::method_not_supported(&target.resource, verb_of(&parts.method, true)),
                None => ClusterError::method_not_allowed(),
            });
        }
        if target.is_some() && !(self.is_ready)() {
            return Err(not_ready());
        }
        if let Some(asked) = watched? {
            let too_many = |_| ClusterError::denied(429, "TooManyRequests", "too many watches");
            let permit = Arc::clone(&self.watches).try_acquire_owned().map_err(too_many)?;
            let cluster: Arc<dyn Cluster> = Arc::new(self.reports.clone());
            return Ok(watch::respond(cluster, Arc::new(ReportColumns), asked, self.stop.clone(), permit));
        }
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let paged = match &target {
            Some(target) => PagedList::of(&self.reports, target, path, query, form(&parts.headers)?),
            None => None,
        };
        match paged {
            Some(list) => list.respond(list::parameter(query, "continue"), permit),
            None => self.read(parts, target.as_ref()).map(Reply::into_response),
        }
    }

    fn read(&self, parts: &Parts, target: Option<&Target>) -> Result<Reply, ClusterError> {
        let form = form(&parts.headers)?;
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let discovery = self.reports.discovery()?;
        if let Some(rest) = path.strip_prefix("/openapi/") {
            let document = openapi::document(&discovery, rest).ok_or_else(ClusterError::no_such_path)?;
            return Ok(Reply::json(StatusCode::OK, &document));
        }
        if path == "/apis" && form == Form::Aggregated {
            return Ok(Reply::aggregated_discovery(&discovery, false));
        }
        let asked = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
        let answer = self.reports.raw(&RawRequest::get(asked))?;
        let answer = match target {
            Some(target) => shaped(&ReportColumns, &target.resource, form, query, answer),
            None => answer,
        };
        Ok(Reply::json(StatusCode::OK, &answer))
    }
}

fn not_ready() -> ClusterError {
    ClusterError::denied(503, "ServiceUnavailable", "the reports are not complete yet")
}

/// What a request wants to do.
fn attributes(parts: &Parts, target: Option<&Target>, wants_watch: bool) -> Attributes {
    let Some(target) = target else {
        return Attributes::Path { verb: verb_of(&parts.method, false), path: parts.uri.path().into() };
    };
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    let verb = match (&target.name, is_read) {
        (_, true) if wants_watch => "watch",
        (None, true) => "list",
        (None, false) if parts.method == Method::DELETE => "deletecollection",
        _ => verb_of(&parts.method, true),
    };
    let text = |text: &Option<String>| Str::new(text.as_deref().unwrap_or_default());
    Attributes::Resource {
        verb,
        group: target.resource.group.clone(),
        version: target.resource.version.clone(),
        resource: target.resource.plural.clone(),
        namespace: text(&target.namespace),
        name: text(&target.name),
    }
}

fn verb_of(method: &Method, of_objects: bool) -> &'static str {
    match *method {
        Method::POST if of_objects => "create",
        Method::PUT if of_objects => "update",
        Method::GET | Method::HEAD => "get",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "options",
    }
}

/// The columns of reports, as their definitions declare them.
#[derive(Debug)]
pub struct ReportColumns;

const COLUMNS: [(&str, &str, &str); 8] = [
    ("Kind", "string", ".scope.kind"),
    ("Name", "string", ".scope.name"),
    ("Pass", "integer", ".summary.pass"),
    ("Fail", "integer", ".summary.fail"),
    ("Warn", "integer", ".summary.warn"),
    ("Error", "integer", ".summary.error"),
    ("Skip", "integer", ".summary.skip"),
    ("Age", "date", ".metadata.creationTimestamp"),
];

/// The columns in the form of a definition.
fn declared() -> Vec<Value> {
    let text = |text: &'static str| Value::from(text);
    COLUMNS
        .map(|(name, kind, path)| Value::from([("jsonPath", text(path)), ("name", text(name)), ("type", text(kind))]))
        .into()
}

impl TableColumns for ReportColumns {
    fn columns(&self, _: &Resource) -> Vec<Column> {
        table::custom(Some(&declared()))
    }
}

#[cfg(test)]
mod tests;
