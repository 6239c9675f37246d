//! The webhooks over HTTPS.
//!
//! What a stranger can send is bounded before it is read: the length of a body, the bytes of all bodies in work, the
//! time for a handshake, for headers and for a body. A request that finds no room within [`Limits::patience`] is
//! answered 503, and the API server does what the webhook's failure policy says; one that cannot be judged (a panic) is
//! answered by the failure policy in its path. Status codes are upstream's (controllers 3.1).

use std::io;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum_server::Handle;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use ephor_expr::scalar::duration;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper_util::rt::TokioTimer;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{AdmissionRequest, AdmissionReview, Answer, RequestError};
use crate::plain_http;
use callers::{Caller, CallerAcceptor};
pub use callers::{Callers, CallersError, verifier};

mod callers;

/// Somebody who answers admission requests, by the path of the webhook they came through.
pub trait Reviews: Send + Sync + 'static {
    /// Whether there is a webhook at this path.
    fn serves(&self, path: &str) -> bool;

    /// The answer, if it can be given without waiting for anything.
    fn at_once(&self, path: &str, request: &AdmissionRequest) -> Option<Answer>;

    /// The answer. May wait for the cluster.
    fn answer(&self, path: &str, request: &AdmissionRequest) -> Answer;

    /// Whether requests may come.
    fn is_ready(&self) -> bool;

    /// A request for this path was answered.
    fn answered(&self, method: &str, path: &str, took: Duration);
}

/// What a stranger may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest body, in bytes.
    pub body: usize,
    /// The bytes of all bodies that are in work at once.
    pub in_work: usize,
    /// How long a request waits for room.
    pub patience: Duration,
    /// How long headers may take, and how long a body.
    pub reading: Duration,
}

impl Default for Limits {
    /// An API server takes objects of 3 MiB, and a review of an update holds two.
    fn default() -> Self {
        Self { body: 8 << 20, in_work: 8 << 20, patience: Duration::from_secs(8), reading: Duration::from_secs(10) }
    }
}

/// How long the API server waits at most (controllers 3.4).
const LONGEST: Duration = Duration::from_secs(30);

/// Room is given in pieces of so many bytes, and a request takes at least one.
const PIECE: usize = 1024;

struct Served {
    reviews: Arc<dyn Reviews>,
    limits: Limits,
    callers: Callers,
    room: Arc<Semaphore>,
}

/// All paths: webhooks by POST, the probes of the kubelet by GET.
pub fn router(reviews: Arc<dyn Reviews>, limits: Limits, callers: Callers) -> Router {
    let room = Arc::new(Semaphore::new(limits.in_work.div_ceil(PIECE)));
    let probed = Arc::clone(&reviews);
    plain_http::probes(Arc::new(move || probed.is_ready())).fallback(review).with_state(Arc::new(Served {
        reviews,
        limits,
        callers,
        room,
    }))
}

/// Serves `router` until the handle says otherwise. Certificates come from `tls`, which may change them while running.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    router: Router,
    limits: Limits,
    handle: Handle<std::net::SocketAddr>,
) -> io::Result<()> {
    let acceptor = RustlsAcceptor::new(RustlsConfig::from_config(tls))
        .handshake_timeout(limits.reading)
        .acceptor(NoDelayAcceptor::new());
    let mut server = axum_server::from_tcp(listener)?.acceptor(CallerAcceptor(acceptor)).handle(handle);
    let http = server.http_builder();
    http.http1().timer(TokioTimer::new()).header_read_timeout(limits.reading).max_buf_size(64 << 10);
    http.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30)).max_concurrent_streams(250);
    server.serve(router.into_make_service()).await
}

/// Why a request gets no review as its answer.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("there is no webhook at this path")]
    NoSuchPath,
    #[error("only POST is answered here")]
    NotPost,
    #[error("the caller shows no certificate that is accepted here")]
    Stranger,
    #[error("the content type must be application/json")]
    NotJson,
    #[error("the body has more than {0} bytes")]
    TooLong(usize),
    #[error("the body did not come in time")]
    TooSlow,
    #[error("too much is in work already: try again")]
    NoRoom,
    #[error("the body could not be read: {0}")]
    Broken(String),
    #[error(transparent)]
    Unreadable(#[from] RequestError),
}

impl Refused {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::NotPost => StatusCode::METHOD_NOT_ALLOWED,
            Self::Stranger => StatusCode::FORBIDDEN,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) | Self::Unreadable(RequestError::NoRequest) => StatusCode::BAD_REQUEST,
            Self::Unreadable(_) => StatusCode::EXPECTATION_FAILED,
        }
    }
}

async fn review(State(served): State<Arc<Served>>, request: Request<Body>) -> Response {
    let (method, path, begun) = (request.method().clone(), request.uri().path().to_owned(), Instant::now());
    let answer = reviewed(&served, request).await;
    served.reviews.answered(method.as_str(), &path, begun.elapsed());
    match answer {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(refused) => {
            tracing::warn!(%refused, "a request is refused");
            (refused.status(), refused.to_string()).into_response()
        }
    }
}

async fn reviewed(served: &Arc<Served>, request: Request<Body>) -> Result<String, Refused> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    if !served.reviews.serves(&path) {
        return Err(Refused::NoSuchPath);
    }
    if parts.method != axum::http::Method::POST {
        return Err(Refused::NotPost);
    }
    if !served.callers.welcome(parts.extensions.get().unwrap_or(&Caller::default())) {
        return Err(Refused::Stranger);
    }
    if parts.headers.get(header::CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        return Err(Refused::NotJson);
    }
    let limits = served.limits;
    let declared = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: usize| length > limits.body) {
        return Err(Refused::TooLong(limits.body));
    }
    // Who does not say how much comes may send as much as is allowed.
    let pieces = declared.unwrap_or(limits.body).div_ceil(PIECE).clamp(1, limits.in_work.div_ceil(PIECE));
    let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
    let room = timeout(limits.patience, Arc::clone(&served.room).acquire_many_owned(pieces)).await;
    let Ok(Ok(room)) = room else { return Err(Refused::NoRoom) };
    let body =
        timeout(limits.reading, Limited::new(body, limits.body).collect()).await.map_err(|_| Refused::TooSlow)?;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() { Refused::TooLong(limits.body) } else { Refused::Broken(error.to_string()) }
    })?;
    let asked = AdmissionReview::parse(&body.to_bytes())?;
    let reply = move |asked: &AdmissionReview, answer: Answer| {
        answer.review(&asked.api_version, &asked.kind, &asked.request.uid).to_json()
    };
    if let Some(answer) = guarded(&path, || served.reviews.at_once(&path, &asked.request)) {
        return Ok(reply(&asked, answer));
    }
    let reviews = Arc::clone(&served.reviews);
    let time = deadline(parts.uri.query().unwrap_or_default());
    let late = late(&asked, &path);
    let blocking = tokio::task::spawn_blocking(move || {
        let answer = guarded(&path, || Some(reviews.answer(&path, &asked.request)));
        // Room is kept for as long as the work lasts, also when nobody waits for it any more.
        drop(room);
        answer.map(|answer| reply(&asked, answer))
    });
    match timeout(time, blocking).await {
        Ok(Ok(Some(json))) => Ok(json),
        Ok(_) => Err(Refused::NoRoom),
        Err(_) => Ok(late),
    }
}

/// How long an answer may take: as long as the API server waits for it, which it writes into the URL, less what the
/// way back takes.
fn deadline(query: &str) -> Duration {
    let given = query.split('&').find_map(|part| part.strip_prefix("timeout="));
    let given = given.and_then(|text| duration::Duration::parse(text).ok()).and_then(|d| u64::try_from(d.0).ok());
    given.map_or(LONGEST, Duration::from_nanos).min(LONGEST).mul_f64(0.95)
}

/// The answer to a review whose time is over.
fn late(asked: &AdmissionReview, path: &str) -> String {
    let answer = unjudged(path, "time is over", 504);
    answer.review(&asked.api_version, &asked.kind, &asked.request.uid).to_json()
}

/// Runs a review; a panic in it becomes an answer.
fn guarded(path: &str, review: impl FnOnce() -> Option<Answer>) -> Option<Answer> {
    catch_unwind(AssertUnwindSafe(review)).unwrap_or_else(|_| {
        // The panic hook has logged where.
        tracing::error!(path, "a review panicked");
        Some(unjudged(path, "internal error", 500))
    })
}

/// The verdict on what cannot be judged.
fn unjudged(path: &str, why: &str, code: u16) -> Answer {
    let message = format!("the policies could not be evaluated: {why}");
    if ignores_failures(path) {
        Answer::allow().with_warnings([message])
    } else {
        Answer { code: Some(code), ..Answer::deny(message) }
    }
}

/// Whether the webhook at this path lets pass what cannot be judged.
fn ignores_failures(path: &str) -> bool {
    path.split('/').nth(2) == Some("ignore")
}

#[cfg(test)]
mod tests;
