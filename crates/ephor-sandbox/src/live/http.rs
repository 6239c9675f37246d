//! Serves the page and its events over HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::stream::{self, Stream, StreamExt as _};
use tokio::sync::broadcast::error::RecvError;

use super::stream::{Event, Live};

/// What the page may do: load its own script and style, and listen to its own server.
const CONTENT_POLICY: &str =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'";

/// Finds an object by its path in the API, as YAML without values of Secrets.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

#[derive(Clone)]
struct Served {
    live: Live,
    token: Arc<str>,
    lookup: Lookup,
}

/// Serves the page at `/ephor/`, and its events and objects to clients that know the token. The page reads the token
/// from its own fragment (`/ephor/#TOKEN`). The caller checks `Host` and `Origin`.
pub fn router(live: Live, token: &str, lookup: Lookup) -> Router {
    Router::new()
        .route("/ephor/", get(|| async { file("text/html; charset=utf-8", include_str!("page/index.html")) }))
        .route("/ephor/page.js", get(|| async { file("text/javascript", include_str!("page/page.js")) }))
        .route("/ephor/feed.js", get(|| async { file("text/javascript", include_str!("page/feed.js")) }))
        .route("/ephor/view.js", get(|| async { file("text/javascript", include_str!("page/view.js")) }))
        .route("/ephor/page.css", get(|| async { file("text/css", include_str!("page/page.css")) }))
        .route("/ephor/events", get(events))
        .route("/ephor/object", get(object))
        .with_state(Served { live, token: token.into(), lookup })
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}

#[derive(serde::Deserialize)]
struct Parameters {
    #[serde(default)]
    token: String,
    #[serde(default)]
    path: String,
}

async fn events(State(served): State<Served>, Query(asked): Query<Parameters>) -> Response {
    // An event source of a browser cannot set headers.
    if !same(asked.token.as_bytes(), served.token.as_bytes()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    Sse::new(follow(&served.live)).keep_alive(KeepAlive::default()).into_response()
}

async fn object(State(served): State<Served>, Query(asked): Query<Parameters>) -> Response {
    if !same(asked.token.as_bytes(), served.token.as_bytes()) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let found = tokio::task::spawn_blocking(move || (served.lookup)(&asked.path)).await;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/yaml")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    match found {
        Ok(Some(text)) => (headers, text).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Compares in a time that does not tell how much was right.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

fn follow(live: &Live) -> impl Stream<Item = Result<Sent, Infallible>> + use<> {
    let (now, receiver) = live.watch();
    let after = stream::unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Ok(event) => Some((event, receiver)),
            // A page that falls behind is cut off: the browser connects again and gets everything.
            Err(RecvError::Lagged(_) | RecvError::Closed) => None,
        }
    });
    stream::iter(now).chain(after).map(|event: Event| {
        let sent = Sent::default().event(event.topic.as_str()).id(event.number.to_string());
        Ok(sent.data(&*event.data))
    })
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use ephor_expr::Value;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;
    use crate::live::Topic;

    async fn get(live: &Live, path: &str) -> Response {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let lookup: Lookup = Arc::new(|path| (path == "/there").then(|| "kind: X".to_owned()));
        router(live.clone(), "secret", lookup).oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn events_are_for_those_who_know_the_token() {
        let live = Live::new();
        live.show(Topic::Decision, &Value::from("b"));
        for path in
            ["/ephor/events", "/ephor/events?token=", "/ephor/events?token=secreT", "/ephor/events?token=secret1"]
        {
            assert_eq!(get(&live, path).await.status(), StatusCode::UNAUTHORIZED, "{path}");
        }
        let mut body = get(&live, "/ephor/events?token=secret").await.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(&first[..], b"event: decision\nid: 1\ndata: \"b\"\n\n");
    }

    #[tokio::test]
    async fn objects_are_for_those_who_know_the_token() {
        let live = Live::new();
        for (query, status) in [
            ("path=/there", StatusCode::UNAUTHORIZED),
            ("path=/there&token=secre", StatusCode::UNAUTHORIZED),
            ("path=/there&token=secret", StatusCode::OK),
            ("path=/elsewhere&token=secret", StatusCode::NOT_FOUND),
            ("token=secret", StatusCode::NOT_FOUND),
        ] {
            assert_eq!(get(&live, &format!("/ephor/object?{query}")).await.status(), status, "{query}");
        }
    }

    #[tokio::test]
    async fn the_page_can_do_nothing_but_show() {
        for path in ["/ephor/", "/ephor/page.js", "/ephor/feed.js", "/ephor/view.js", "/ephor/page.css"] {
            let response = get(&Live::new(), path).await;
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], CONTENT_POLICY, "{path}");
        }
    }
}
