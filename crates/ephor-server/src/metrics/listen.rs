//! `/metrics` over HTTP, on a port of its own.

use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use super::{Metrics, text};
use crate::plain_http;
use crate::stop::Stop;

/// Serves metrics at `address` in a thread of its own until `stop`; gives the address that was bound.
pub fn listen(metrics: &Metrics, address: SocketAddr, stop: &Stop) -> std::io::Result<SocketAddr> {
    let metrics = metrics.clone();
    let answer = move || {
        let text = metrics.text();
        async move { ([(CONTENT_TYPE, text::CONTENT_TYPE)], text) }
    };
    plain_http::listen("metrics", address, Router::new().route("/metrics", get(answer)), stop)
}
