//! HTTP without TLS on a separate port, for metrics and probes.
//!
//! Every client reaches these ports, so their connections are bounded: 20,000 idle ones used up all file descriptors.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::threads;

use crate::http::{self, Limits};

/// How often a server looks at its stop signal.
const TOKEN_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// What callers may take: a cluster has few that ask, and keeps their connections.
fn limits() -> Limits {
    Limits { connections: 256, peer_connections: 128, ..Limits::default() }
}

/// Whether a process is ready to do its work.
pub type Ready = Arc<dyn Fn() -> bool + Send + Sync>;

/// The paths that the kubelet asks: whether the process lives, and whether it is ready.
pub fn probes<S: Clone + Send + Sync + 'static>(ready: Ready) -> Router<S> {
    let readiness = move || {
        let status = if ready() { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        async move { status }
    };
    Router::new().route("/health/liveness", get(|| async { StatusCode::OK })).route("/health/readiness", get(readiness))
}

/// Serves `router` at `address` in a thread called `name` until `stop`; gives the address that was bound.
pub fn listen(
    name: &'static str,
    address: SocketAddr,
    router: Router,
    stop: &CancellationToken,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let (owned, failing, stop) = (stop.clone(), stop.clone(), stop.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = async move {
        let stopped = async move {
            while !stop.is_cancelled() {
                tokio::time::sleep(TOKEN_POLL_INTERVAL).await;
            }
        };
        // Clients that hold their connection are not waited for.
        tokio::select! {
            served = http::serve_plain(listener, router, limits()) => served,
            () = stopped => Ok(()),
        }
    };
    threads::spawn(name, threads::SMALL, &owned, move || {
        if let Err(error) = runtime.block_on(serve) {
            failing.fail(format!("{name} are no longer served: {error}"));
        }
    });
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn ask(address: SocketAddr, path: &str) -> String {
        let mut connection = std::net::TcpStream::connect(address).unwrap();
        write!(connection, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_crowd_of_idle_connections_leaves_place_for_a_probe() {
        let stop = CancellationToken::new();
        let address = listen("probes", "127.0.0.1:0".parse().unwrap(), probes(Arc::new(|| true)), &stop).unwrap();
        let crowd: Vec<_> =
            (0..=limits().peer_connections).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        assert!(ask(address, "/health/liveness").contains("200"));
        // The oldest had to make place.
        let mut oldest = crowd.into_iter().next().unwrap();
        let ended = oldest.read(&mut [0; 1]);
        assert!(matches!(ended, Ok(0)) || ended.is_err(), "{ended:?}");
        stop.cancel();
    }

    #[test]
    fn probes_tell_life_from_readiness() {
        let (stop, is_ready) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let ready = Arc::clone(&is_ready);
        let router = probes(Arc::new(move || ready.load(Ordering::Relaxed)));
        let address = listen("probes", "127.0.0.1:0".parse().unwrap(), router, &stop).unwrap();
        let status = |path| ask(address, path).split(' ').nth(1).map(str::to_owned);
        assert_eq!(status("/health/liveness").as_deref(), Some("200"));
        assert_eq!(status("/health/readiness").as_deref(), Some("500"));
        is_ready.store(true, Ordering::Relaxed);
        assert_eq!(status("/health/readiness").as_deref(), Some("200"));
        assert_eq!(status("/metrics").as_deref(), Some("404"));
        stop.cancel();
    }
}
