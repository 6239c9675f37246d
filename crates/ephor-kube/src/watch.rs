//! Watches of the API server: reconnects, timeouts and bookmarks.
//!
//! A server ends each watch after some minutes; here it goes on from the last version seen. Without a version to
//! start from, the present objects are listed page by page first, since a stream of them could not be resumed.
//! Nothing is read ahead of the reader but what the connection holds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ephor_cluster::object::MAX_LEVELS;
use ephor_cluster::{ClusterError, ErrorKind, List, ListQuery, Resource, Watch, WatchEvent, WatchQuery, object};
use ephor_expr::{Str, Value};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::exchange::Exchange;
use crate::options::ManagedFields;
use crate::page::{self, Page};
use crate::request::{JSON, Request, Target};

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// When the server is asked to end a stream.
const LIFE: Duration = Duration::from_mins(5);
/// How much later it is taken for dead.
const GRACE: Duration = Duration::from_secs(30);
/// A stream that lived shorter is not followed by the next one at once.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// How many objects are listed at once before the stream begins, and by lists that want all objects.
pub(crate) const PAGE: usize = 500;
/// The longest event, in bytes: far more than etcd keeps of one object.
const MAX_EVENT: usize = 32 << 20;

/// A watch that goes on.
pub(crate) struct KubeWatch {
    exchange: Arc<Exchange>,
    resource: Resource,
    query: WatchQuery,
    managed_fields: ManagedFields,
    stage: Stage,
    /// The version that all before has been reported of.
    version: Str,
    /// How many events could not be read.
    unread: u64,
}

enum Stage {
    /// Present objects are still to be reported; then the next page, if there is one.
    Listing {
        present: VecDeque<Value>,
        next: Option<Str>,
    },
    /// Between streams, not before that time.
    Between(Instant),
    Streaming(Stream),
    Over,
}

struct Stream {
    /// Taken while it is waited for.
    body: Option<Body>,
    buffer: Vec<u8>,
    /// As much of the buffer as has no line end.
    searched: usize,
    started: Instant,
}

impl KubeWatch {
    pub(crate) fn start(
        exchange: Arc<Exchange>,
        resource: Resource,
        query: WatchQuery,
        managed_fields: ManagedFields,
    ) -> Result<Self, ClusterError> {
        let version = query.resource_version.clone();
        let stage = Stage::Between(Instant::now());
        let mut watch = Self { exchange, resource, query, managed_fields, stage, version, unread: 0 };
        if matches!(watch.version.as_str(), "" | "0") {
            watch.list(None)?;
        } else {
            watch.connect()?;
        }
        Ok(watch)
    }

    fn list(&mut self, page: Option<Str>) -> Result<(), ClusterError> {
        let query = ListQuery {
            filter: self.query.filter.clone(),
            limit: PAGE,
            continue_token: page,
            metadata_only: self.query.metadata_only,
            ..ListQuery::default()
        };
        let list = list_page(&self.exchange, &self.resource, &query, self.managed_fields)?;
        self.version = list.resource_version;
        self.stage = Stage::Listing { present: list.items.into(), next: list.continue_token };
        Ok(())
    }

    fn connect(&mut self) -> Result<(), ClusterError> {
        let target = Target::collection(&self.resource, self.query.filter.namespace())?
            .filtered(&self.query.filter)
            .with("watch", "true")
            .with("resourceVersion", &self.version)
            .with("timeoutSeconds", &LIFE.as_secs().to_string())
            .with("allowWatchBookmarks", "true");
        let accept = if self.query.metadata_only { METADATA } else { JSON };
        let body = self.exchange.stream(&Request { accept, ..Request::get(target.into_text()) })?;
        self.stage =
            Stage::Streaming(Stream { body: Some(body), buffer: Vec::new(), searched: 0, started: Instant::now() });
        Ok(())
    }

    /// The meaning of a line; `None` if it has none for the reader.
    ///
    /// A line that cannot be read is passed over: what is known about its object stays as it is, and the events of
    /// other objects arrive. To end the watch would list and watch again, and meet the same object each time.
    fn event(&mut self, line: &[u8]) -> Result<Option<WatchEvent>, ClusterError> {
        let event = match std::str::from_utf8(line).map_err(|error| error.to_string()).and_then(read_event) {
            Ok(event) => event,
            Err(error) => {
                self.unread += 1;
                tracing::warn!(kind = %self.resource.kind, error, unread = self.unread, "an event is skipped");
                return Ok(None);
            }
        };
        let mut object = event.get("object").cloned().unwrap_or_default();
        let kind = event.str_at(&["type"]).map(str::to_owned).unwrap_or_default();
        drop(event);
        if kind == "ERROR" {
            return Err(ClusterError::from_status(&object, 500));
        }
        let version = Str::new(object::text(&object, "resourceVersion"));
        if !version.is_empty() {
            self.version = version.clone();
        }
        shape(&mut object, &self.resource, self.managed_fields);
        if self.query.metadata_only {
            object = object::metadata_of(&object);
        }
        Ok(match kind.as_str() {
            "ADDED" => Some(WatchEvent::Added(object)),
            "MODIFIED" => Some(WatchEvent::Modified(object)),
            "DELETED" => Some(WatchEvent::Deleted(object)),
            "BOOKMARK" if self.query.bookmarks => Some(WatchEvent::Bookmark(version)),
            _ => None,
        })
    }

    /// The next event; `None` if there is none by `until`.
    fn advance(&mut self, until: Instant) -> Result<Option<WatchEvent>, ClusterError> {
        loop {
            match &mut self.stage {
                Stage::Over => return Err(ClusterError::unreachable("the watch is over")),
                Stage::Listing { present, next } => {
                    if let Some(object) = present.pop_front() {
                        return Ok(Some(WatchEvent::Added(object)));
                    }
                    match next.take() {
                        Some(page) => self.list(Some(page))?,
                        None => self.stage = Stage::Between(Instant::now()),
                    }
                }
                Stage::Between(earliest) => {
                    let wait = earliest.saturating_duration_since(Instant::now());
                    let left = until.saturating_duration_since(Instant::now());
                    std::thread::sleep(wait.min(left));
                    if wait > left {
                        return Ok(None);
                    }
                    self.connect()?;
                }
                Stage::Streaming(stream) => {
                    if let Some(line) = stream.line()? {
                        match self.event(&line)? {
                            Some(event) => return Ok(Some(event)),
                            None => continue,
                        }
                    }
                    let left = until.saturating_duration_since(Instant::now());
                    match stream.read(&self.exchange, left)? {
                        Read::Nothing if left.is_zero() || until <= Instant::now() => return Ok(None),
                        Read::More | Read::Nothing => {}
                        Read::End => {
                            let pause = if stream.started.elapsed() < SHORT_LIFE { SHORT_LIFE } else { Duration::ZERO };
                            self.stage = Stage::Between(Instant::now() + pause);
                        }
                    }
                }
            }
        }
    }
}

impl Watch for KubeWatch {
    fn next(&mut self, wait: Duration) -> Result<Option<WatchEvent>, ClusterError> {
        let now = Instant::now();
        let until = now.checked_add(wait).unwrap_or(now + LIFE);
        self.advance(until).inspect_err(|_| self.stage = Stage::Over)
    }
}

enum Read {
    More,
    Nothing,
    End,
}

impl Stream {
    /// The next whole line.
    fn line(&mut self) -> Result<Option<Vec<u8>>, ClusterError> {
        while self.searched == 0 && self.buffer.first() == Some(&b'\n') {
            self.buffer.remove(0);
        }
        let Some(end) = self.buffer.iter().skip(self.searched).position(|b| *b == b'\n') else {
            self.searched = self.buffer.len();
            if self.searched > MAX_EVENT {
                return Err(ClusterError::unreachable(format!("an event is larger than {MAX_EVENT} bytes")));
            }
            return Ok(None);
        };
        let rest = self.buffer.split_off(self.searched + end + 1);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        self.searched = 0;
        line.pop();
        Ok(Some(line))
    }

    /// Reads what has arrived, or arrives in time.
    fn read(&mut self, exchange: &Exchange, wait: Duration) -> Result<Read, ClusterError> {
        let Some(mut body) = self.body.take() else { return Ok(Read::End) };
        // A server that is gone without a word does not end its streams.
        let dead = (LIFE + GRACE).saturating_sub(self.started.elapsed());
        if dead.is_zero() {
            return Ok(Read::End);
        }
        let wait = wait.min(dead);
        let (body, frame) = exchange
            .background
            .wait(async move {
                let frame = tokio::time::timeout(wait, body.frame()).await;
                (body, frame)
            })
            .ok_or_else(|| ClusterError::unreachable("the watch broke down"))?;
        Ok(match frame {
            Err(_) => {
                self.body = Some(body);
                Read::Nothing
            }
            Ok(Some(Ok(frame))) => {
                self.body = Some(body);
                if let Some(bytes) = frame.data_ref() {
                    self.buffer.extend_from_slice(bytes);
                }
                Read::More
            }
            // However a stream ends, the next one says whether the server is still there.
            Ok(None | Some(Err(_))) => Read::End,
        })
    }
}

/// An event: JSON, with an object in it unless it is the error that ends a stream.
fn read_event(line: &str) -> Result<Value, String> {
    let event = Value::from_json_nested(line, MAX_LEVELS).map_err(|error| error.to_string())?;
    match event.get("object") {
        Some(Value::Object(_)) => Ok(event),
        _ if event.str_at(&["type"]) == Some("ERROR") => Ok(event),
        _ => Err("there is no object in it".to_owned()),
    }
}

/// One page of a list.
pub(crate) fn list_page(
    exchange: &Exchange,
    resource: &Resource,
    query: &ListQuery,
    managed_fields: ManagedFields,
) -> Result<List, ClusterError> {
    let mut target = Target::collection(resource, query.filter.namespace())?.filtered(&query.filter);
    if query.limit > 0 {
        target = target.with("limit", &query.limit.to_string());
    }
    if let Some(token) = &query.continue_token {
        target = target.with("continue", token);
    }
    let accept = if query.metadata_only { METADATA_LIST } else { JSON };
    let text = exchange.text(&Request { accept, ..Request::get(target.into_text()) })?;
    let Page { document, items, unreadable } = page::read(&text, query.on_unreadable)?;
    let text = |key: &str| document.str_at(&["metadata", key]).map(Str::new).filter(|t| !t.is_empty());
    let mut list = List {
        resource_version: text("resourceVersion").unwrap_or_default(),
        continue_token: text("continue"),
        remaining: document
            .at(&["metadata", "remainingItemCount"])
            .and_then(Value::as_i64)
            .and_then(|n| usize::try_from(n).ok()),
        items,
        unreadable,
    };
    for item in &mut list.items {
        shape(item, resource, managed_fields);
        // A server that does not know how to leave the rest out sends it all.
        if query.metadata_only {
            *item = object::metadata_of(item);
        }
    }
    Ok(list)
}

/// Makes what a server sent the object that callers get: with `apiVersion` and `kind`, which lists leave out and
/// metadata alone does not have.
pub(crate) fn shape(object: &mut Value, resource: &Resource, managed_fields: ManagedFields) {
    if let Some(members) = object.as_object_mut() {
        let partial = members.get("kind").and_then(Value::as_str) == Some("PartialObjectMetadata");
        if partial || !members.contains_key("kind") {
            members.insert("apiVersion", resource.api_version());
            members.insert("kind", resource.kind.clone());
        }
    }
    if managed_fields == ManagedFields::Dropped {
        object::unset(object, "managedFields");
    }
}

/// Whether to begin a list anew: its pages are no longer known.
pub(crate) fn begins_anew(error: &ClusterError) -> bool {
    error.kind() == ErrorKind::Gone
}
