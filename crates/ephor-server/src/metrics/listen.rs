//! `/metrics` over HTTP, on a port of its own.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use super::{Metrics, text};
use crate::stop::Stop;

/// How often the server looks at its stop signal.
const LOOK: Duration = Duration::from_millis(250);

/// Serves metrics at `address` in a thread of its own until `stop`; gives the address that was bound.
pub fn listen(metrics: &Metrics, address: SocketAddr, stop: &Stop) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let (metrics, stop) = (metrics.clone(), stop.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = async move {
        let answer = move || {
            let text = metrics.text();
            async move { ([(CONTENT_TYPE, text::CONTENT_TYPE)], text) }
        };
        let router = Router::new().route("/metrics", get(answer));
        let stopped = async move {
            while !stop.is_stopped() {
                tokio::time::sleep(LOOK).await;
            }
        };
        let listener = tokio::net::TcpListener::from_std(listener)?;
        // Clients that hold their connection are not waited for.
        tokio::select! {
            served = axum::serve(listener, router) => served,
            () = stopped => Ok(()),
        }
    };
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        if let Err(error) = runtime.block_on(serve) {
            tracing::error!(%error, "metrics are no longer served");
        }
    })?;
    Ok(bound)
}
