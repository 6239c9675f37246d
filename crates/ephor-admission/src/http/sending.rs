//! Sends responses within memory and time limits.
//!
//! A caller may ask a lot and read nothing. An answer keeps quota until it is sent. A long one is sent in pieces, and
//! cut off when the caller takes no piece for a while. A connection whose caller takes nothing ends ([`Answered`]).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures::{SinkExt as _, Stream, StreamExt as _, stream};
use tokio::time::timeout;

use super::connections::Unsent;
use super::memory_quota::Share;

/// What is handed over at once.
const PIECE: usize = 4 << 10;

/// An answer.
pub(super) struct Reply {
    pub(super) json: String,
    /// The quota of its question.
    pub(super) share: Share,
}

impl Reply {
    /// The response. It is cut off when no piece of it is taken for `limit`.
    pub(super) fn respond(self, limit: Duration) -> Response {
        let Self { json, share } = self;
        let length = json.len();
        let mut share = share.resized(length);
        // The quota of what the connection holds: it goes with the body.
        let held = share.split(PIECE);
        // The last byte goes alone: HTTP/2 sends a piece when the caller's window takes any of it, and keeps the rest.
        // That the last one was sent shows that the caller has taken the others.
        let text = Bytes::from(json);
        let (most, last) = (text.slice(..length.saturating_sub(1)), text.slice(length.saturating_sub(1)..));
        let body = if length <= PIECE {
            from_pieces(stream::iter([most, last]), held)
        } else {
            let (mut sender, receiver) = futures::channel::mpsc::channel(0);
            tokio::spawn(async move {
                for piece in most.chunks(PIECE).chain([last.as_ref()]) {
                    // A copy, so that a piece that stays with the connection does not keep the whole.
                    let sent = timeout(limit, sender.send(Bytes::copy_from_slice(piece))).await;
                    if !matches!(sent, Ok(Ok(()))) {
                        break;
                    }
                }
                drop((most, share));
            });
            from_pieces(receiver, held)
        };
        let mut response = body.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Tells an answer that was cut off from a whole one.
        headers.insert(header::CONTENT_LENGTH, length.into());
        response
    }
}

/// A body whose quota goes with it.
fn from_pieces(pieces: impl Stream<Item = Bytes> + Send + 'static, quota: Share) -> Body {
    Body::from_stream(pieces.map(move |piece| {
        let _ = &quota;
        Ok::<_, Infallible>(piece)
    }))
}

/// The body of an answer. Its connection knows it as not sent until the end is asked for.
#[derive(Debug)]
pub(super) struct Answered<B> {
    body: B,
    unsent: Unsent,
}

impl<B> Answered<B> {
    pub(super) fn new(body: B, unsent: Unsent) -> Self {
        Self { body, unsent }
    }
}

impl<B: http_body::Body + Unpin> http_body::Body for Answered<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<B::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        // A body that has nothing to send yet does not wait for the peer.
        if frame.is_pending() {
            self.unsent.quiet();
        } else {
            self.unsent.moved();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::super::memory_quota::{MemoryQuota, Peer};
    use super::*;

    async fn reply(quota: &MemoryQuota, length: usize) -> Reply {
        let mut share = quota.share(Peer::default());
        share.grow(2 * length).await;
        Reply { json: "x".repeat(length), share }
    }

    #[tokio::test]
    async fn answers_arrive_whole_and_give_their_room_back() {
        let quota = MemoryQuota::new(1 << 20, 1 << 20);
        for length in [0, 1, PIECE, PIECE + 1, 100_000] {
            let response = reply(&quota, length).await.respond(Duration::from_mins(1));
            assert_eq!(response.headers()[header::CONTENT_LENGTH], length.to_string());
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), length);
            // All of it is free again, soon after the last piece.
            quota.share(Peer::default()).grow(1 << 20).await;
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_not_read_is_cut_off_and_keeps_the_room_of_a_piece() {
        let quota = MemoryQuota::new(1 << 20, 1 << 20);
        let unread = reply(&quota, 100_000).await.respond(Duration::from_millis(20));
        // All but the piece that stays with the connection.
        quota.share(Peer::default()).grow((1 << 20) - PIECE).await;
        let length = unread.into_body().collect().await.unwrap().to_bytes().len();
        assert!(length < 100_000, "{length}");
    }

    #[tokio::test]
    async fn an_answer_on_its_way_holds_the_room_of_its_length() {
        let quota = MemoryQuota::new(1 << 20, 1 << 20);
        let response = reply(&quota, 100_000).await.respond(Duration::from_mins(1));
        let mut other = quota.share(Peer::default());
        assert!(timeout(Duration::ZERO, other.grow(1 << 20)).await.is_err());
        other.grow((1 << 20) - 100_000).await;
        drop((response, other));
        quota.share(Peer::default()).grow(1 << 20).await;
    }

    #[tokio::test]
    async fn a_short_answer_holds_room_too_until_it_is_taken() {
        let quota = MemoryQuota::new(1 << 20, 1 << 20);
        let response = reply(&quota, 1000).await.respond(Duration::from_mins(1));
        let mut other = quota.share(Peer::default());
        assert!(timeout(Duration::ZERO, other.grow(1 << 20)).await.is_err());
        drop(response);
        other.grow(1 << 20).await;
    }
}
