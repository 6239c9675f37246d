//! The webhooks over HTTPS.
//!
//! Anybody who reaches the port can send anything, so everything is bounded before it is judged ([`Limits`]): the
//! connections (`connections`), the memory of requests by the bytes that arrived (`memory_quota`), the time for a
//! handshake, for headers and for a body. A request that gets no memory in its time is answered 503, and the API server
//! does what the webhook's failure policy says. A panic while a review is judged is answered by the failure policy in
//! its path, a panic before that with 500, which to the API server is a failure of the webhook; other requests of the
//! connection go on.
//!
//! A review that is too large or malformed is denied, whatever the failure policy: what a user writes into an object
//! must not decide that nothing judges it. The API server takes a denial only with the UID of the request, which stands
//! at the beginning of the body (`head`). Without a UID the answer is a status code of upstream's, which to the API
//! server is a failure of the webhook.
//!
//! Each review is marked with its [`Sender`]: the API server shows a client certificate, or asks the path with the
//! token that only it is given. Handlers judge reviews of others too, and hand over no work for them.

use std::io;
use std::net::TcpListener;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum_server::Handle;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use ephor_expr::scalar::duration;
use futures::FutureExt as _;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

pub use callers::{Caller, Callers, CallersError, verifier};
use callers::{CallerAcceptor, PlainAcceptor};
use connections::{Bounded, Connections};
use ephor_runtime::decision::{AdmissionRequest, AdmissionReview, Answer, RequestError, Sender, proof};
use head::Head;
use head_quota::{Full, HeadQuota};
pub use limits::Limits;
use memory_quota::{MemoryQuota, Share};
use reading::Read;
use sending::Reply;

mod callers;
mod connections;
mod head;
mod head_quota;
mod limits;
mod memory_quota;
mod meter;
pub mod plain;
mod reading;
mod sending;

/// Answers admission requests, by the path of their webhook.
pub trait Reviews: Send + Sync + 'static {
    /// Whether there is a webhook at this path. Paths come without their token.
    fn serves(&self, path: &str) -> bool;

    /// Whether `token`, at the end of a path, is one that the API server was given.
    fn proves(&self, token: &str) -> bool;

    /// The answer, if it can be given in a moment and without waiting for anything.
    fn at_once(&self, path: &str, request: &AdmissionRequest) -> Option<Answer>;

    /// The answer. May wait for the cluster and compute, until the time of the request is over.
    fn answer(&self, path: &str, request: &AdmissionRequest, until: Instant) -> Answer;

    /// The answer to a review that cannot be read because of what is in it. The failure policy has no say.
    fn unreadable(&self, path: &str, why: &str) -> Answer;

    /// Whether requests may come.
    fn is_ready(&self) -> bool;

    /// A request for this path was answered.
    fn answered(&self, method: &str, path: &str, took: Duration);
}

/// How long the API server waits at most.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);

/// Marks a response that ends its connection, with all other requests on it.
#[derive(Debug, Clone, Copy)]
struct EndConnection;

/// Why there is no verdict on a review whose time is over.
const OVER: &str = "time is over";

/// The bytes of HTTP/2 that a connection takes before a handler reads them.
const WINDOW: u32 = 128 << 10;

struct Served {
    reviews: Arc<dyn Reviews>,
    limits: Limits,
    callers: Callers,
    quota: MemoryQuota,
    heads: HeadQuota,
    /// The reviews that are parsed and judged on threads of their own, at once.
    workers: Arc<Semaphore>,
}

impl Served {
    /// The right to work on a thread of its own; `None` if there is none in time.
    async fn worker(&self, until: Instant) -> Option<OwnedSemaphorePermit> {
        timeout_at(until.into(), Arc::clone(&self.workers).acquire_owned()).await.ok()?.ok()
    }
}

/// All paths: webhooks by POST, the probes of the kubelet by GET.
pub fn router(reviews: Arc<dyn Reviews>, limits: Limits, callers: Callers) -> Router {
    let quota = MemoryQuota::new(limits.in_work, limits.peer);
    let probed = Arc::clone(&reviews);
    plain::probes(Arc::new(move || probed.is_ready())).fallback(review).with_state(Arc::new(Served {
        reviews,
        limits,
        callers,
        quota,
        heads: HeadQuota::new(limits.heads, limits.peer_heads),
        workers: Arc::new(Semaphore::new(limits.workers)),
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
        .acceptor(Bounded(Connections::new(limits)));
    let mut server = axum_server::from_tcp(listener)?.acceptor(CallerAcceptor(acceptor)).handle(handle);
    bound(server.http_builder(), limits);
    server.serve(router.into_make_service()).await
}

/// Serves without TLS what tells of the process, within the same limits.
pub(crate) async fn serve_plain(listener: TcpListener, router: Router, limits: Limits) -> io::Result<()> {
    let acceptor = PlainAcceptor(Bounded(Connections::new(limits)));
    let mut server = axum_server::from_tcp(listener)?.acceptor(acceptor);
    bound(server.http_builder(), limits);
    server.serve(router.into_make_service()).await
}

/// Bounds what a connection takes before a handler hears of it.
fn bound(http: &mut Builder<TokioExecutor>, limits: Limits) {
    http.http1().timer(TokioTimer::new()).header_read_timeout(limits.reading).max_buf_size(64 << 10);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_concurrent_streams(250)
        // What arrives before anybody counts it.
        .initial_connection_window_size(WINDOW)
        .initial_stream_window_size(WINDOW)
        .max_header_list_size(8 << 10);
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
    #[error("the review has too many {0} to be judged")]
    TooMuch(&'static str),
    #[error("the body did not come in time")]
    TooSlow,
    #[error("too much is in work already: try again")]
    NoRoom,
    #[error("this peer has too much in work already: try again")]
    Overdrawn,
    #[error("internal error")]
    Internal,
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
            Self::TooMuch(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NoRoom | Self::Overdrawn => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Broken(_) | Self::Unreadable(RequestError::NoRequest) => StatusCode::BAD_REQUEST,
            Self::Unreadable(_) => StatusCode::EXPECTATION_FAILED,
        }
    }
}

async fn review(State(served): State<Arc<Served>>, request: Request<Body>) -> Response {
    let (method, path, begun) =
        (request.method().clone(), proof::split(request.uri().path()).0.to_owned(), Instant::now());
    let answer = AssertUnwindSafe(reviewed(&served, request, begun)).catch_unwind().await;
    let answer = answer.unwrap_or(Err(Refused::Internal));
    served.reviews.answered(method.as_str(), &path, begun.elapsed());
    match answer {
        Ok(reply) => reply.respond(served.limits.reading),
        Err(refused) => {
            tracing::warn!(%refused, "a request is refused");
            let mut response = (refused.status(), refused.to_string()).into_response();
            if matches!(refused, Refused::Overdrawn) {
                response.extensions_mut().insert(EndConnection);
            }
            response
        }
    }
}

/// The answer to a request whose head was read at `begun`. All that follows counts into its time: the body, waiting for
/// quota, and judging.
async fn reviewed(served: &Arc<Served>, request: Request<Body>, begun: Instant) -> Result<Reply, Refused> {
    let (parts, body) = request.into_parts();
    let (path, token) = proof::split(parts.uri.path());
    let path = path.to_owned();
    if !served.reviews.serves(&path) {
        return Err(Refused::NoSuchPath);
    }
    if parts.method != axum::http::Method::POST {
        return Err(Refused::NotPost);
    }
    let caller = parts.extensions.get().cloned().unwrap_or_else(Caller::default);
    if !served.callers.welcome(&caller) {
        return Err(Refused::Stranger);
    }
    let is_proven = served.callers.are_named() || token.is_some_and(|token| served.reviews.proves(token));
    let peer = caller.peer().proven(is_proven);
    if parts.headers.get(header::CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        return Err(Refused::NotJson);
    }
    let until = begun + deadline(parts.uri.query().unwrap_or_default());
    let limits = served.limits;
    let head = limits.request + headers_cost(&parts.headers);
    // A peer that has its part already loses the connection, with all that waits on it.
    let _room = served.heads.take(peer, head).map_err(|full| match full {
        Full::Peer => Refused::Overdrawn,
        Full::Together => Refused::NoRoom,
    })?;
    let share = served.quota.share(peer);
    let (body, share) = match reading::read(body, share, &limits, until.min(begun + limits.reading)).await? {
        (Read::Whole(body), share) => (body, share),
        (Read::TooMuch(beginning, what), share) => {
            return denied(served, &path, &beginning, share, Refused::TooMuch(what));
        }
    };
    let small = body.len() <= limits.at_once;
    let (parsed, body, share, worker) = if small {
        (AdmissionReview::parse(&body), body, share, None)
    } else {
        // A parsed review takes several times its length, so no more of them are parsed at once than are judged.
        let Some(worker) = served.worker(until).await else { return unread(&path, &body, share) };
        // MemoryQuota is kept for as long as the work lasts, also when no caller waits for it any more.
        let parsing = tokio::task::spawn_blocking(move || (AdmissionReview::parse(&body), body, share, Some(worker)));
        timeout_at(until.into(), parsing).await.map_err(|_| Refused::TooSlow)?.map_err(|_| Refused::Internal)?
    };
    let mut asked = match parsed {
        Ok(asked) => asked,
        Err(error) => return denied(served, &path, &body, share, error.into()),
    };
    drop(body);
    if is_proven {
        asked.request.sender = Sender::ApiServer;
    }
    let told = move |asked: &AdmissionReview, answer: Answer| {
        answer.review(&asked.api_version, &asked.kind, &asked.request.uid).to_json()
    };
    if small && let Some(answer) = guarded(&path, || served.reviews.at_once(&path, &asked.request)) {
        return Ok(Reply { json: told(&asked, answer), share });
    }
    let reviews = Arc::clone(&served.reviews);
    let late = Reply { json: late(&asked, &path), share: served.quota.share(peer) };
    let worker = match worker {
        Some(worker) => Some(worker),
        None => served.worker(until).await,
    };
    let Some(worker) = worker else { return Ok(late) };
    // Judging ends a little earlier, so that its verdict still arrives.
    let now = Instant::now();
    let judging_until = now + until.saturating_duration_since(now).mul_f64(0.9);
    let blocking = tokio::task::spawn_blocking(move || {
        let answer = guarded(&path, || Some(reviews.answer(&path, &asked.request, judging_until)));
        // So is the worker.
        drop(worker);
        answer.map(|answer| Reply { json: told(&asked, answer), share })
    });
    match timeout_at(until.into(), blocking).await {
        Ok(Ok(Some(reply))) => Ok(reply),
        Ok(_) => Err(Refused::Internal),
        Err(_) => Ok(late),
    }
}

/// The memory of headers that are longer than those of an API server. They are held about three times.
fn headers_cost(headers: &HeaderMap) -> usize {
    const USUAL: usize = 1 << 10;
    let length: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    3 * length.saturating_sub(USUAL)
}

/// The answer to a review that no worker had time to read; without a UID a status code.
fn unread(path: &str, body: &[u8], share: Share) -> Result<Reply, Refused> {
    let Some(Head { api_version, kind, uid }) = head::of(body) else { return Err(Refused::NoRoom) };
    let answer = unjudged(path, OVER, 504);
    Ok(Reply { json: answer.review(&api_version, &kind, &uid).to_json(), share })
}

/// The denial of a review that is not judged because of what is in it; without a UID the status code of the refusal.
fn denied(served: &Served, path: &str, beginning: &[u8], share: Share, refused: Refused) -> Result<Reply, Refused> {
    let Some(Head { api_version, kind, uid }) = head::of(beginning) else { return Err(refused) };
    tracing::warn!(%refused, uid, path, "a review cannot be judged");
    let answer = served.reviews.unreadable(path, &refused.to_string());
    Ok(Reply { json: answer.review(&api_version, &kind, &uid).to_json(), share })
}

/// How long an answer may take: as long as the API server waits for it, which it writes into the URL, less what the
/// way back takes.
fn deadline(query: &str) -> Duration {
    let given = query.split('&').find_map(|part| part.strip_prefix("timeout="));
    let given = given.and_then(|text| duration::Duration::parse(text).ok()).and_then(|d| u64::try_from(d.0).ok());
    given.map_or(MAX_TIMEOUT, Duration::from_nanos).min(MAX_TIMEOUT).mul_f64(0.95)
}

/// The answer to a review whose time is over.
fn late(asked: &AdmissionReview, path: &str) -> String {
    let answer = unjudged(path, OVER, 504);
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
