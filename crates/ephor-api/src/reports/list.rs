//! Lists without a limit: read in pages, and sent as they are read.
//!
//! A report is much smaller in memory than as a document, so a list of all of them is never held whole. All pages show
//! the state of the first. If that state is forgotten before the last page, the connection breaks, and the client
//! asks again.

use std::io;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};
use ephor_cluster::raw::{RawRequest, Target};
use ephor_cluster::{Cluster as _, ClusterError, object};
use ephor_expr::Value;
use ephor_reports::served::ServedReports;
use futures::stream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::ReportColumns;
use crate::reply::{Form, Reply, shaped};

/// How many reports are documents at once.
const PAGE: usize = 500;
/// How many pages wait for a slow reader.
const BACKLOG: usize = 2;

/// A list that is sent page by page.
pub(super) struct PagedList {
    reports: ServedReports,
    target: Target,
    path: String,
    /// The parameters, but for those about pages.
    query: String,
    form: Form,
}

impl PagedList {
    /// The list that a request asks for, unless it asks for one object or for a short page.
    pub(super) fn of(reports: &ServedReports, target: &Target, path: &str, query: &str, form: Form) -> Option<Self> {
        let limit = parameter(query, "limit").map_or(Some(0), |limit| limit.parse::<usize>().ok());
        if target.name.is_some() || limit.is_none_or(|limit| (1..=PAGE).contains(&limit)) {
            return None;
        }
        let others = query.split('&').filter(|pair| !pair.starts_with("limit=") && !pair.starts_with("continue="));
        Some(Self {
            reports: reports.clone(),
            target: target.clone(),
            path: path.to_owned(),
            query: others.collect::<Vec<_>>().join("&"),
            form,
        })
    }

    /// The answer. The permit is given back when all is sent. `token` is where the list begins.
    pub(super) fn respond(
        self,
        token: Option<&str>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Response<Body>, ClusterError> {
        let first = self.page(token)?;
        if next(&first).is_none() {
            return Ok(Reply::json(StatusCode::OK, &first).into_response());
        }
        let (sender, receiver) = mpsc::channel(BACKLOG);
        // Its end is the end of one answer, and nothing else relies on it, so it is not supervised.
        let spawned = std::thread::Builder::new().name("list".to_owned()).spawn(move || {
            let _permit = permit;
            // A reader that has gone wants no more.
            let _ = self.send(first, &sender);
        });
        if spawned.is_err() {
            return Err(ClusterError::unreachable("too many lists"));
        }
        let chunks = stream::unfold(receiver, |mut receiver: mpsc::Receiver<io::Result<Bytes>>| async move {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        let mut response = Response::new(Body::from_stream(chunks));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        Ok(response)
    }

    fn send(
        &self,
        first: Value,
        sender: &mpsc::Sender<io::Result<Bytes>>,
    ) -> Result<(), mpsc::error::SendError<io::Result<Bytes>>> {
        let (mut page, key) = (first, if self.form == Form::Table { "rows" } else { "items" });
        let mut text = String::new();
        loop {
            let token = next(&page).map(str::to_owned);
            let items = page.as_object_mut().and_then(|page| page.remove(key)).unwrap_or_default();
            if text.is_empty() {
                object::unset(&mut page, "continue");
                object::unset(&mut page, "remainingItemCount");
                let head = page.to_json();
                text = format!("{},\"{key}\":[", head.strip_suffix('}').unwrap_or(&head));
            } else {
                text.clear();
                text.push(',');
            }
            let items: Vec<String> = items.as_array().unwrap_or_default().iter().map(Value::to_json).collect();
            text.push_str(&items.join(","));
            if token.is_none() {
                text.push_str("]}");
            }
            sender.blocking_send(Ok(Bytes::from(text.clone())))?;
            let Some(token) = token else { return Ok(()) };
            page = match self.page(Some(&token)) {
                Ok(page) => page,
                Err(error) => return sender.blocking_send(Err(io::Error::other(error))),
            };
        }
    }

    fn page(&self, token: Option<&str>) -> Result<Value, ClusterError> {
        let token = token.map_or_else(String::new, |token| format!("&continue={token}"));
        let query = format!("{}&limit={PAGE}{token}", self.query);
        let answer = self.reports.raw(&RawRequest::get(format!("{}?{query}", self.path)))?;
        Ok(shaped(&ReportColumns, &self.target.resource, self.form, &query, answer))
    }
}

fn next(page: &Value) -> Option<&str> {
    page.str_at(&["metadata", "continue"]).filter(|token| !token.is_empty())
}

/// A parameter of a query, as it is written.
pub(super) fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
