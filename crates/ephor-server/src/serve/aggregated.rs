//! Serves the API of reports over TLS to the API server, which forwards requests for it.

use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use axum_server::Handle;
use ephor_admission::http::{self, Caller, Limits};
use ephor_api::front_proxy::ClientCertificates;
use ephor_runtime::CancellationToken;
use rustls::ServerConfig;

use super::{BLOCKING, ServeError, WORKERS, drain, serve_and_drain};

/// Serves `router` until `stop`. Each request carries the certificates of its client, which `tls` has to ask for.
pub fn aggregated(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    stop: &CancellationToken,
) -> Result<(), ServeError> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING)
        .thread_name("reports API")
        .enable_all()
        .build()?;
    let router = router.layer(map_request(with_certificates));
    let served = runtime.block_on(async {
        let handle = Handle::new();
        let draining = drain(stop.clone(), handle.clone());
        serve_and_drain(http::serve(listener, tls, router, Limits::default(), handle), draining).await
    });
    runtime.shutdown_background();
    Ok(served?)
}

/// The request with what its connection has shown, in the form that the API of reports reads.
async fn with_certificates(mut request: Request) -> Request {
    let shown = request.extensions().get::<Caller>().map(|caller| Arc::clone(caller.certificates()));
    if let Some(shown) = shown {
        request.extensions_mut().insert(ClientCertificates(shown));
    }
    request
}
