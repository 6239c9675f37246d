//! The HTTP server.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use axum::middleware::{self, Next};
use ephor_api::reply::Reply;
use ephor_api::watch::{self, WatchParameters};
use ephor_cluster::{ClusterError, MemoryCluster};
use ephor_runtime::cancellation::CancellationToken;
use hyper_util::rt::TokioTimer;
use tokio::sync::Semaphore;

use super::api;
use super::columns::DefinedColumns;
use super::gate::Gate;
use super::tls::Certificate;
use super::{lists, namespaces};
use crate::live::{self, Live};

/// What is sent to an API server may be so long.
const BODY_LIMIT: usize = 3 << 20;
/// Threads that read and write; requests are answered on others.
const WORKERS: usize = 2;
/// Requests in work at once.
const BLOCKING: usize = 32;
/// Watches at once: each is a thread.
pub const WATCHES: usize = 1000;

/// What a server serves.
#[derive(Clone)]
pub struct Served {
    /// The cluster.
    pub cluster: MemoryCluster,
    /// Who may come in.
    pub gate: Gate,
    /// The certificate, PEM.
    pub certificate: Arc<str>,
    /// Ends watches.
    pub stop: CancellationToken,
    /// The watches that there may still be.
    pub watches: Arc<Semaphore>,
}

/// Takes a port on loopback; 0 for any.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves until the stop signal. Returns when connections are closed, or soon after.
pub fn serve(
    listener: TcpListener,
    certificate: &Certificate,
    served: Served,
    live: Live,
    token: &str,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING)
        .thread_name("api")
        .enable_all()
        .build()?;
    let stop = served.stop.clone();
    let acceptor = certificate.acceptor();
    let result = runtime.block_on(async {
        let application = router(served, live, token).into_make_service();
        let mut server = axum_server::from_tcp(listener)?.acceptor(acceptor);
        // Without a timer, connections wait for their headers without end.
        server.http_builder().http1().timer(TokioTimer::new());
        tokio::select! {
            served = server.serve(application) => served,
            () = until(stop) => Ok(()),
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(500));
    result
}

async fn until(stop: CancellationToken) {
    while !stop.is_cancelled() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The API and the live view.
pub fn router(served: Served, live: Live, token: &str) -> Router {
    let shared = Arc::new(served);
    let cluster = shared.cluster.clone();
    Router::new()
        .fallback(handle)
        .with_state(Arc::clone(&shared))
        .merge(live::router(live, token, Arc::new(move |path| lists::text_of(&cluster, path))))
        .layer(middleware::from_fn_with_state(shared, own_pages_only))
}

async fn own_pages_only(State(served): State<Arc<Served>>, request: Request<Body>, next: Next) -> Response<Body> {
    let authority = request.uri().authority().map(axum::http::uri::Authority::as_str);
    match served.gate.check_origin(authority, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => Reply::error(&error).into_response(),
    }
}

fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/livez" | "/readyz" | "/version")
}

async fn handle(State(served): State<Arc<Served>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let user = match served.gate.user(&parts.headers) {
        Ok(user) => user,
        Err(_) if is_probe(parts.uri.path()) => ephor_cluster::admission::User::new("system:anonymous", [""; 0]),
        Err(error) => return Reply::error(&error).into_response(),
    };
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        let error = ClusterError::denied(413, "RequestEntityTooLarge", format!("limit is {BODY_LIMIT}"));
        return Reply::error(&error).into_response();
    };
    let cluster = served.cluster.acting_as(user).showing_ownership();
    let stop = served.stop.clone();
    let certificate = Arc::clone(&served.certificate);
    let watches = Arc::clone(&served.watches);
    let answered = tokio::task::spawn_blocking(move || match WatchParameters::of(&cluster, &parts) {
        Ok(Some(asked)) => match watches.try_acquire_owned() {
            Ok(permit) => {
                let columns = Arc::new(DefinedColumns(cluster.clone()));
                watch::respond(Arc::new(cluster), columns, asked, stop, permit)
            }
            Err(_) => Reply::error(&ClusterError::denied(429, "TooManyRequests", "too many watches")).into_response(),
        },
        Ok(None) => {
            let reply = api::answer(&cluster, &parts, &body);
            // Not a moment later, when policies would see them as something new.
            if may_make_namespace(&parts) {
                namespaces::create_namespace_defaults(&cluster, &certificate);
            }
            reply.into_response()
        }
        Err(error) => Reply::error(&error).into_response(),
    });
    answered.await.unwrap_or_else(|_| {
        let mut response = Response::new(Body::from("internal error"));
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        response
    })
}

fn may_make_namespace(parts: &axum::http::request::Parts) -> bool {
    let below = parts.uri.path().strip_prefix("/api/v1/namespaces");
    let names_one = |rest: &str| !rest.trim_start_matches('/').contains('/');
    matches!(parts.method, axum::http::Method::POST | axum::http::Method::PATCH) && below.is_some_and(names_one)
}
