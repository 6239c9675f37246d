//! Watches over HTTP: one line of JSON for each event.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use ephor_cluster::raw::{self, Target};
use ephor_cluster::{Cluster, ClusterError, List, ListQuery, Watch, WatchEvent, WatchQuery};
use ephor_expr::{Map, Str, Value};
use ephor_runtime::cancellation::CancellationToken;
use futures::stream;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::reply::{Form, Reply, form, shaped};
use crate::table::TableColumns;

/// How often a quiet watch looks whether anybody still listens.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// A quiet watch tells how far the cluster has moved on this often.
const BOOKMARKS: Duration = Duration::from_secs(5);
/// How long a watch goes on when the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
/// How long it goes on at most, whatever the client says.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(24);
/// How many of the present objects are read at once.
const INITIAL_PAGE: usize = 500;
/// How many events wait for a slow reader.
const BACKLOG: usize = 64;
/// How long a reader may take nothing while the backlog is full. Then its watch ends, and it can start a new one.
const STALLED: Duration = Duration::from_secs(30);
/// How often a full backlog is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// A watch as it was asked for.
#[derive(Debug)]
pub struct WatchParameters {
    target: Target,
    query: WatchQuery,
    form: Form,
    /// The query of the URL.
    text: String,
}

impl WatchParameters {
    /// The watch that a request asks for, if it does.
    pub fn of(cluster: &dyn Cluster, parts: &Parts) -> Result<Option<Self>, ClusterError> {
        let text = parts.uri.query().unwrap_or_default();
        if parts.method != Method::GET {
            return Ok(None);
        }
        let Some(target) = raw::target(&*cluster.discovery()?, parts.uri.path()) else { return Ok(None) };
        let Some(query) = raw::watch(&target, text)? else { return Ok(None) };
        Ok(Some(Self { target, query, form: form(&parts.headers)?, text: text.to_owned() }))
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.text.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    fn timeout(&self) -> Duration {
        let seconds = self.parameter("timeoutSeconds").and_then(|text| text.parse().ok());
        seconds.filter(|seconds| *seconds > 0).map_or(DEFAULT_TIMEOUT, Duration::from_secs).min(LONGEST_TIMEOUT)
    }

    /// A page of the objects that come first.
    fn initial(&self, token: Option<Str>) -> ListQuery {
        let filter = self.query.filter.clone();
        ListQuery { filter, limit: INITIAL_PAGE, continue_token: token, ..ListQuery::default() }
    }

    /// Whether the present objects come first, with a mark at their end.
    fn wants_list(&self) -> bool {
        self.parameter("sendInitialEvents") == Some("true")
    }
}

/// Starts a watch; its events are the body. The permit is given back at its end.
pub fn respond(
    cluster: Arc<dyn Cluster>,
    columns: Arc<dyn TableColumns>,
    mut asked: WatchParameters,
    stop: CancellationToken,
    permit: OwnedSemaphorePermit,
) -> Response<Body> {
    let mut first = List::default();
    if asked.wants_list() {
        first = match cluster.list(&asked.target.resource, &asked.initial(None)) {
            Ok(list) => list,
            Err(error) => return Reply::error(&error).into_response(),
        };
        asked.query.resource_version = first.resource_version.clone();
    }
    let watch = match cluster.watch(&asked.target.resource, &asked.query) {
        Ok(watch) => watch,
        Err(error) => return Reply::error(&error).into_response(),
    };
    let (sender, receiver) = mpsc::channel(BACKLOG);
    let teller = EventWriter { cluster, columns, asked, sender, stop };
    // A thread of its own: a watch waits, and there may be hundreds. Its end is the end of one watch, and nothing else
    // relies on it, so it is not supervised.
    let spawned = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
        let _permit = permit;
        teller.run(watch, first);
    });
    if spawned.is_err() {
        return Reply::error(&ClusterError::unreachable("too many watches")).into_response();
    }
    let lines = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|line| (Ok::<Bytes, Infallible>(line), receiver))
    });
    let mut response = Response::new(Body::from_stream(lines));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

struct EventWriter {
    cluster: Arc<dyn Cluster>,
    columns: Arc<dyn TableColumns>,
    asked: WatchParameters,
    sender: mpsc::Sender<Bytes>,
    stop: CancellationToken,
}

/// The client has gone, or takes nothing.
struct Disconnected;

impl EventWriter {
    fn run(&self, mut watch: Box<dyn Watch>, first: List) {
        let _ = self.tell_all(&mut *watch, first);
    }

    fn tell_all(&self, watch: &mut dyn Watch, mut first: List) -> Result<(), Disconnected> {
        loop {
            for object in first.items {
                self.tell(&WatchEvent::Added(object))?;
            }
            let Some(token) = first.continue_token else { break };
            first = match self.cluster.list(&self.asked.target.resource, &self.asked.initial(Some(token))) {
                Ok(list) => list,
                Err(error) => return self.send("ERROR", error.status()),
            };
        }
        if self.asked.wants_list() {
            let annotations = Value::from([("k8s.io/initial-events-end", Value::from("true"))]);
            self.bookmark(&self.asked.query.resource_version, Some(annotations))?;
        }
        let until = Instant::now() + self.asked.timeout();
        let mut told = Instant::now();
        let mut pending: Option<Str> = None;
        while !self.stop.is_cancelled() && Instant::now() < until {
            match watch.next(POLL_INTERVAL) {
                Ok(Some(WatchEvent::Bookmark(version))) => pending = Some(version),
                Ok(Some(event)) => {
                    pending = None;
                    self.tell(&event)?;
                }
                Ok(None) if self.sender.is_closed() => return Err(Disconnected),
                Ok(None) => {}
                Err(error) => return self.send("ERROR", error.status()),
            }
            if told.elapsed() >= BOOKMARKS
                && let Some(version) = pending.take()
            {
                told = Instant::now();
                self.bookmark(&version, None)?;
            }
        }
        match pending {
            Some(version) => self.bookmark(&version, None),
            None => Ok(()),
        }
    }

    fn tell(&self, event: &WatchEvent) -> Result<(), Disconnected> {
        let (word, object) = match event {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Bookmark(version) => return self.bookmark(version, None),
        };
        let WatchParameters { target, form, text, .. } = &self.asked;
        self.send(word, shaped(&*self.columns, &target.resource, *form, text, object.clone()))
    }

    fn bookmark(&self, version: &Str, annotations: Option<Value>) -> Result<(), Disconnected> {
        let mut metadata = Map::from_iter([
            ("resourceVersion".into(), Value::from(version.clone())),
            ("creationTimestamp".into(), Value::Null),
        ]);
        if let Some(annotations) = annotations {
            metadata.insert("annotations", annotations);
        }
        let resource = &self.asked.target.resource;
        let object = Value::from([
            ("apiVersion", Value::from(resource.api_version())),
            ("kind", Value::from(resource.kind.clone())),
            ("metadata", Value::object(metadata)),
        ]);
        let WatchParameters { target, form, text, .. } = &self.asked;
        self.send("BOOKMARK", shaped(&*self.columns, &target.resource, *form, text, object))
    }

    fn send(&self, word: &str, object: Value) -> Result<(), Disconnected> {
        let mut line = Value::from([("object", object), ("type", Value::from(word))]).to_json();
        line.push('\n');
        let mut line = Bytes::from(line);
        let until = Instant::now() + STALLED;
        loop {
            match self.sender.try_send(line) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(unsent)) if !self.stop.is_cancelled() && Instant::now() < until => line = unsent,
                Err(_) => return Err(Disconnected),
            }
            self.stop.wait(RETRY_INTERVAL);
        }
    }
}
