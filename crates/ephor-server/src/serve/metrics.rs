//! Serves `/metrics` over HTTP on a separate port.

use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use ephor_admission::http::plain;
use ephor_runtime::cancellation::CancellationToken;
use ephor_runtime::metrics::{Metrics, text};

/// Serves metrics at `address` in a thread of its own until `stop`; gives the address that was bound.
pub(super) fn listen(metrics: &Metrics, address: SocketAddr, stop: &CancellationToken) -> std::io::Result<SocketAddr> {
    let metrics = metrics.clone();
    let answer = move || {
        let text = metrics.text();
        async move { ([(CONTENT_TYPE, text::CONTENT_TYPE)], text) }
    };
    plain::listen("metrics", address, Router::new().route("/metrics", get(answer)), stop)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn metrics_are_served_until_the_end() {
        let stop = CancellationToken::new();
        let address = listen(&Metrics::default(), "127.0.0.1:0".parse().unwrap(), &stop).unwrap();
        let mut connection = std::net::TcpStream::connect(address).unwrap();
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("kyverno_info{"), "{answer}");
        assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
        stop.cancel();
    }
}
