//! Sends requests and retries transient failures where a retry is safe.

use std::time::{Duration, Instant};

use ephor_cluster::object::MAX_LEVELS;
use ephor_cluster::{Backoff, ClusterError};
use ephor_expr::Value;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_util::client::legacy;
use kube::Client;
use kube::client::Body;

use crate::limit::Bucket;
use crate::options::{ConnectOptions, Limits};
use crate::request::{Repeat, Request};
use crate::runtime::Background;

/// The first pause before another attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause, also when the server wants a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How much of an error response is read for the message.
const MAX_ERROR: usize = 1 << 20;

/// The way to the server.
pub(crate) struct Exchange {
    pub(crate) background: Background,
    client: Client,
    bucket: Option<Bucket>,
    attempts: u32,
    attempts_to_write: u32,
    limits: Limits,
}

/// Why there is no answer, or none worth having.
enum Failure {
    /// The request did not reach the server.
    NotSent(String),
    /// It is not known whether the server carried out the request.
    Lost(String),
    /// There is an answer, but it is of no use, and would be none the next time.
    Useless(String),
    /// The server says no.
    Refused { error: ClusterError, retry_after: Option<Duration> },
}

impl Exchange {
    pub(crate) fn new(background: Background, client: Client, options: &ConnectOptions) -> Self {
        Self {
            background,
            client,
            bucket: options.rate.map(Bucket::new),
            attempts: options.attempts.max(1),
            attempts_to_write: options.attempts_to_write.max(1),
            limits: options.limits,
        }
    }

    /// Sends a request and reads the answer, a JSON document.
    pub(crate) fn value(&self, request: &Request) -> Result<Value, ClusterError> {
        parse(&self.text(request)?)
    }

    /// Sends a request and reads the answer as text.
    pub(crate) fn text(&self, request: &Request) -> Result<String, ClusterError> {
        let limit = self.limits.answer;
        let read = move |response: http::Response<Body>| async move { read(response.into_body(), limit).await };
        self.persist(request, self.limits.timeout, read)
    }

    /// Sends a request and reads the answer: a JSON document, or text if the server does not call it JSON.
    pub(crate) fn document_or_text(&self, request: &Request, limits: Limits) -> Result<Value, ClusterError> {
        let read = move |response: http::Response<Body>| async move {
            let json = is_json(response.headers());
            Ok((json, read(response.into_body(), limits.answer).await?))
        };
        let (json, text) = self.persist(request, limits.timeout, read)?;
        match parse(&text) {
            Err(_) if !json => Ok(Value::from(text)),
            read => read,
        }
    }

    /// Sends a request whose answer does not end.
    pub(crate) fn stream(&self, request: &Request) -> Result<Body, ClusterError> {
        self.persist(request, self.limits.timeout, |response| async move { Ok(response.into_body()) })
    }

    fn persist<T, F, A>(&self, request: &Request, timeout: Duration, accept: F) -> Result<T, ClusterError>
    where
        T: Send + 'static,
        F: Fn(http::Response<Body>) -> A + Clone + Send + 'static,
        A: Future<Output = Result<T, Failure>> + Send,
    {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let begun = Instant::now();
        let attempts = if request.method == Method::GET { self.attempts } else { self.attempts_to_write };
        for attempt in 1.. {
            if let Some(bucket) = &self.bucket {
                bucket.take();
            }
            let left = timeout.saturating_sub(begun.elapsed());
            let failure = match self.once(request, left, accept.clone())? {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let pause = backoff.pause();
            let wait = match &failure {
                Failure::NotSent(_) => Some(pause),
                Failure::Lost(_) => Some(pause).filter(|_| request.repeat == Repeat::Safe),
                Failure::Useless(_) => None,
                Failure::Refused { error, retry_after } => retry(error, *retry_after, request.repeat, pause),
            };
            let wait = wait.map(|wait| wait.min(LONGEST_PAUSE));
            match wait.filter(|wait| attempt < attempts && begun.elapsed() + *wait < timeout) {
                None => return Err(failure.into_error()),
                Some(wait) => {
                    tracing::debug!(target = request.target, attempt, failure = failure.text(), "trying again");
                    std::thread::sleep(wait);
                }
            }
        }
        // The loop only ends by returning.
        Err(ClusterError::unreachable("no attempt was made"))
    }

    fn once<T, F, A>(&self, request: &Request, left: Duration, accept: F) -> Result<Result<T, Failure>, ClusterError>
    where
        T: Send + 'static,
        F: Fn(http::Response<Body>) -> A + Send + 'static,
        A: Future<Output = Result<T, Failure>> + Send,
    {
        let http = request.http()?;
        let client = self.client.clone();
        let work = async move {
            let response = client.send(http).await.map_err(|e| unsent(&e))?;
            if response.status().is_success() { accept(response).await } else { Err(refusal(response).await) }
        };
        let timeout = || Failure::Lost(format!("no answer from the API server within {:.1} s", left.as_secs_f64()));
        Ok(self.background.wait_for(left, work).unwrap_or_else(|| Err(timeout())))
    }
}

impl Failure {
    fn into_error(self) -> ClusterError {
        match self {
            Self::NotSent(message) | Self::Lost(message) | Self::Useless(message) => ClusterError::unreachable(message),
            Self::Refused { error, .. } => error,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::NotSent(message) | Self::Lost(message) | Self::Useless(message) => message.clone(),
            Self::Refused { error, .. } => error.to_string(),
        }
    }
}

/// How long to wait before the same request is sent again; `None` for never.
fn retry(error: &ClusterError, asked: Option<Duration>, repeat: Repeat, pause: Duration) -> Option<Duration> {
    match (error.code(), repeat) {
        // Rejected by rate limiting, or asked to retry later.
        (429, _) => Some(asked.unwrap_or(pause)),
        (500.., _) if asked.is_some() => asked,
        (500 | 502..=504, Repeat::Safe) => Some(pause),
        _ => None,
    }
}

/// A request that got no answer. Only a connection that was never made is sure to have carried nothing.
fn unsent(error: &kube::Error) -> Failure {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut message = String::new();
    let mut connecting = false;
    let mut local = false;
    while let Some(error) = cause {
        connecting |= error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect);
        local |= error.is::<kube::client::AuthError>();
        // The innermost causes say what happened, the outer ones which library noticed.
        message = error.to_string();
        cause = error.source();
    }
    if local {
        return Failure::Useless(format!("cannot authenticate: {message}"));
    }
    if connecting {
        Failure::NotSent(format!("cannot connect to the API server: {message}"))
    } else {
        Failure::Lost(format!("the connection to the API server broke: {message}"))
    }
}

async fn refusal(response: http::Response<Body>) -> Failure {
    let code = response.status();
    let seconds = response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
    let text = read(response.into_body(), MAX_ERROR).await.unwrap_or_else(|_| String::new());
    Failure::Refused { error: error(code, &text), retry_after: seconds.map(Duration::from_secs) }
}

/// A refusal; not everything between here and the server speaks of `Status` documents.
fn error(code: StatusCode, text: &str) -> ClusterError {
    match parse(text) {
        Ok(status) if status.str_at(&["kind"]) == Some("Status") => ClusterError::from_status(&status, code.as_u16()),
        _ if code == StatusCode::NOT_FOUND => ClusterError::no_such_path(),
        _ => ClusterError::from_status(&Value::Null, code.as_u16()),
    }
}

async fn read(body: Body, limit: usize) -> Result<String, Failure> {
    let collected = match Limited::new(body, limit).collect().await {
        Ok(collected) => collected,
        Err(e) if e.is::<LengthLimitError>() => {
            return Err(Failure::Useless(format!("the answer is larger than {limit} bytes")));
        }
        Err(e) => return Err(Failure::Lost(format!("the answer broke off: {e}"))),
    };
    String::from_utf8(collected.to_bytes().into()).map_err(|e| Failure::Useless(format!("the answer is no text: {e}")))
}

fn is_json(headers: &http::HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

/// A JSON document of the server.
pub(crate) fn parse(text: &str) -> Result<Value, ClusterError> {
    Value::from_json_nested(text, MAX_LEVELS)
        .map_err(|e| ClusterError::unreachable(format!("the server's answer is no JSON: {e}")))
}
