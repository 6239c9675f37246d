//! Answers: sent as their callers take them, within room and time.
//!
//! A caller may ask a lot and read nothing. A long answer keeps the room of its question until it is sent, in pieces, and
//! is cut off when the caller takes no piece for a while.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures::{SinkExt as _, StreamExt as _};
use tokio::time::timeout;

use super::room::Share;

/// What is handed over at once. Shorter answers keep no room.
const PIECE: usize = 4 << 10;

/// An answer.
pub(super) struct Reply {
    pub(super) json: String,
    /// The room of its question; an answer that says nothing of its own needs none.
    pub(super) share: Option<Share>,
}

impl Reply {
    /// The response. It is cut off when no piece of it is taken for `patience`.
    pub(super) fn respond(self, patience: Duration) -> Response {
        let Self { json, share } = self;
        let length = json.len();
        let body = if length <= PIECE {
            Body::from(json)
        } else {
            let share = share.map(|share| share.shrunk(length));
            let (mut sender, receiver) = futures::channel::mpsc::channel(0);
            tokio::spawn(async move {
                for piece in json.as_bytes().chunks(PIECE) {
                    // A copy, so that a piece that stays with the connection does not keep the whole.
                    let sent = timeout(patience, sender.send(Bytes::copy_from_slice(piece))).await;
                    if !matches!(sent, Ok(Ok(()))) {
                        break;
                    }
                }
                drop((json, share));
            });
            Body::from_stream(receiver.map(Ok::<_, std::convert::Infallible>))
        };
        let mut response = body.into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Tells an answer that was cut off from a whole one.
        headers.insert(header::CONTENT_LENGTH, length.into());
        response
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::super::room::{Peer, Room};
    use super::*;

    async fn reply(room: &Room, length: usize) -> Reply {
        let mut share = room.share(Peer::default());
        share.grow(2 * length).await;
        Reply { json: "x".repeat(length), share: Some(share) }
    }

    #[tokio::test]
    async fn answers_arrive_whole_and_give_their_room_back() {
        let room = Room::new(1 << 20, 1 << 20);
        for length in [0, 1, PIECE, PIECE + 1, 100_000] {
            let response = reply(&room, length).await.respond(Duration::from_mins(1));
            assert_eq!(response.headers()[header::CONTENT_LENGTH], length.to_string());
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), length);
            // All of it is free again, soon after the last piece.
            room.share(Peer::default()).grow(1 << 20).await;
        }
    }

    #[tokio::test]
    async fn an_answer_that_is_not_read_is_cut_off_and_gives_its_room_back() {
        let room = Room::new(1 << 20, 1 << 20);
        let unread = reply(&room, 100_000).await.respond(Duration::from_millis(20));
        room.share(Peer::default()).grow(1 << 20).await;
        let length = unread.into_body().collect().await.unwrap().to_bytes().len();
        assert!(length < 100_000, "{length}");
    }

    #[tokio::test]
    async fn an_answer_on_its_way_holds_the_room_of_its_length() {
        let room = Room::new(1 << 20, 1 << 20);
        let response = reply(&room, 100_000).await.respond(Duration::from_mins(1));
        let mut other = room.share(Peer::default());
        assert!(timeout(Duration::ZERO, other.grow(1 << 20)).await.is_err());
        other.grow((1 << 20) - 100_000).await;
        drop((response, other));
        room.share(Peer::default()).grow(1 << 20).await;
    }
}
